"""A report about a fitted model: one self-contained HTML page."""

from unbag.report.page import render_report

__all__ = ["render_report"]
