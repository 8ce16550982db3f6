"""Charts as SVG without dependencies, or drawn by matplotlib if installed."""

from unbag.charts.chart import Chart, Series, calibration_chart, roc_chart

__all__ = ["Chart", "Series", "calibration_chart", "roc_chart"]
