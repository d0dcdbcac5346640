"""A report: one page made from result folders, which opens in any browser and needs neither a model nor a network."""

from soar_dlm.report.drawings import Drawing
from soar_dlm.report.figures import figures_of
from soar_dlm.report.page import report_page

__all__ = ["Drawing", "figures_of", "report_page"]
