"""The paper: declared grids, rows on disk, tables and figures."""
