"""Example tables whose true labels are known."""

from unbag.datasets.grouped import GroupedTable, make_clicks, make_visits, make_voters

__all__ = ["GroupedTable", "make_clicks", "make_visits", "make_voters"]
