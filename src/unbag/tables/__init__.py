"""Tables: reading files and frames, columns as numbers, bags of any size."""

from unbag.tables.encoder import Column, TableEncoder
from unbag.tables.index import BagIndex
from unbag.tables.roles import Roles
from unbag.tables.scan import BagTable, make_bags_of, read_bags, scan_table
from unbag.tables.sources import Chunk, TableSource, open_table

__all__ = [
    "BagIndex",
    "BagTable",
    "Chunk",
    "Column",
    "Roles",
    "TableEncoder",
    "TableSource",
    "make_bags_of",
    "open_table",
    "read_bags",
    "scan_table",
]
