"""Scan columns in one pass; float columns of large Parquet files by a sample of their rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unbag.frames.chunks import Chunk
from unbag.frames.columns import ColumnScan
from unbag.tables.reading import TableFiles, TableSource

__all__ = ["sampled_groups", "scan_columns"]

SAMPLE_ROWS, SAMPLE_GROUPS = 1 << 20, 10
FAR = 100  # standard deviations; a column that goes further is scanned in full
Ends = tuple[float, float]


class ChunkVisitor(Protocol):
    """Something that gathers what it needs from chunks."""

    def add(self, chunk: Chunk) -> None:
        """Take in a chunk."""


def scan_columns(
    source: TableSource,
    names: Sequence[str],
    *,
    categories: Collection[str] = (),
    numbers: Collection[str] = (),
    beside: tuple[Sequence[str], Sequence[ChunkVisitor]] = ((), ()),
) -> list[ColumnScan]:
    """Scan columns in one pass over a table.

    Float columns of large Parquet files whose statistics state the extremes and no missing value
    are scanned in a sample of row groups, which estimates mean and scale well enough. Statistics
    do not count NaN: if the sample has none, a NaN becomes the mean.

    Parameters
    ----------
    source : TableSource
    names : sequence of str
    categories, numbers : collection of str
        Columns declared to be one or the other.
    beside : pair of columns and visitors
        Visitors that take in every chunk, with these columns, in the same pass.

    Examples
    --------
    >>> from unbag.tables import open_table
    >>> [scan] = scan_columns(open_table(pa.table({"x": [1.0, 3.0]})), ["x"])
    >>> scan.decided(), scan.moments.mean
    ('number', 2.0)
    """
    known = _sampled(source, [name for name in names if name not in categories])
    scans = [
        known.get(name) or ColumnScan(name, name in categories, name in numbers) for name in names
    ]
    columns, visitors = beside
    rest = [scan for scan in scans if scan.name not in known]
    if rest or visitors:
        _visit(source.chunks([*columns, *(scan.name for scan in rest)]), [*visitors, *rest])
    return scans


def _visit(chunks: Iterable[Chunk], visitors: Sequence[ChunkVisitor]) -> None:
    for chunk in chunks:
        for visitor in visitors:
            visitor.add(chunk)


def _sampled(source: TableSource, names: Sequence[str]) -> dict[str, ColumnScan]:
    """Scans of the columns for which a sample is enough."""
    if not isinstance(source, TableFiles) or source.format != "Parquet":
        return {}
    files = {path: pq.read_metadata(path) for path in source.paths}
    places = [(path, group) for path, data in files.items() for group in range(data.num_row_groups)]
    groups = sampled_groups([files[path].row_group(group).num_rows for path, group in places])
    if groups is None:
        return {}
    ends = {name: found for name in names if (found := _extremes(files, name)) is not None}
    scans = [ColumnScan(name) for name in ends]
    for path in files if ends else ():
        here = [places[group][1] for group in groups if places[group][0] == path]
        _visit(source.chunks_of(path, list(ends), here), scans)
    return {scan.name: scan for scan in scans if _is_enough(scan, ends[scan.name])}


def sampled_groups(sizes: Sequence[int]) -> list[int] | None:
    """Row groups spread evenly, enough for a sample; None if that would be most of them.

    Examples
    --------
    >>> sampled_groups([500_000] * 30)
    [1, 4, 7, 10, 13, 16, 19, 22, 25, 28]
    """
    n_groups, n_rows = len(sizes), sum(sizes)
    wanted = max(SAMPLE_GROUPS, -(-SAMPLE_ROWS * n_groups // max(n_rows, 1)))
    if 2 * wanted > n_groups:
        return None
    return ((np.arange(wanted) + 0.5) * n_groups / wanted).astype(int).tolist()


def _extremes(files: dict[Path, pq.FileMetaData], name: str) -> Ends | None:
    """Extremes of a float column without missing values, if all row groups state them."""
    values: list[float] = []
    for data in files.values():
        schema = data.schema.to_arrow_schema()
        if name not in schema.names or schema.field(name).type not in (pa.float32(), pa.float64()):
            return None
        place = data.schema.names.index(name)
        for group in range(data.num_row_groups):
            stated = data.row_group(group).column(place).statistics
            if stated is None or not stated.has_min_max or stated.null_count != 0:
                return None
            values += [stated.min, stated.max]
    return (min(values), max(values)) if values else None


def _is_enough(scan: ColumnScan, ends: Ends) -> bool:
    """Whether the sample varies, and the extremes are not far beyond it."""
    moments = scan.moments
    farthest = max(abs(end - moments.mean) for end in ends)
    return moments.low < moments.high and farthest <= FAR * moments.scale
