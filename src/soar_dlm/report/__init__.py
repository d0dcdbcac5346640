"""A report: one page made from result folders, which opens in any browser and needs neither a model nor a network."""

from soar_dlm.report.page import report_page
from soar_dlm.report.pictures import Picture

__all__ = ["Picture", "report_page"]
