"""The paper's experiments: declared grids become rows on disk, rows become tables and figures."""
