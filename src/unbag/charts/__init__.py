"""Charts: drawn as SVG without any dependency, or by matplotlib if it is installed."""

from unbag.charts.chart import Chart, Series, calibration_chart, roc_chart

__all__ = ["Chart", "Series", "calibration_chart", "roc_chart"]
