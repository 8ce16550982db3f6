"""Tables: read files, find bags and columns, fit a model, in memory or out of core."""

from unbag.tables.fit import fit_table
from unbag.tables.index import BagIndex
from unbag.tables.model import TableModel
from unbag.tables.options import FitOptions
from unbag.tables.reading import TableSource, open_table
from unbag.tables.record import learn_table
from unbag.tables.roles import Roles
from unbag.tables.scan import BagTable, make_bags_of, read_bags, scan_table

__all__ = [
    "BagIndex",
    "BagTable",
    "FitOptions",
    "Roles",
    "TableModel",
    "TableSource",
    "fit_table",
    "learn_table",
    "make_bags_of",
    "open_table",
    "read_bags",
    "scan_table",
]
