"""Tables: read files, find bags and columns, fit a model, in memory or out of core."""

from unbag.tables.fit import fit_table
from unbag.tables.model import TableModel
from unbag.tables.options import FitOptions
from unbag.tables.reading import open_table
from unbag.tables.record import learn_table
from unbag.tables.roles import Roles
from unbag.tables.scan import read_bags, scan_table

__all__ = [
    "FitOptions",
    "Roles",
    "TableModel",
    "fit_table",
    "learn_table",
    "open_table",
    "read_bags",
    "scan_table",
]
