"""Rows and records become one self-contained HTML page."""

from unbag.report.page import render_report

__all__ = ["render_report"]
