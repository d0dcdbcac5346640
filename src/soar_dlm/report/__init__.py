"""A report: one page made from result folders, which opens in any browser and needs neither a model nor a network."""

from soar_dlm.report.page import report_page
from soar_dlm.report.pictures import Picture
from soar_dlm.report.runs import Run, read_runs

__all__ = ["Picture", "Run", "read_runs", "report_page"]
