"""Columns found out from some rows, where a file's own notes vouch for all the others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unbag.frames.columns import ColumnScan
from unbag.tables.prefetch import ChunkVisitor, visit
from unbag.tables.reading import TableFiles, TableSource

__all__ = ["noted_ends", "sampled_groups", "scan_columns"]

SAMPLE_ROWS, SAMPLE_GROUPS = 1 << 20, 10
FAR = 100  # standard deviations; a column that goes further is looked at in full
Ends = tuple[float, float]


def scan_columns(
    source: TableSource,
    names: Sequence[str],
    *,
    categories: Collection[str] = (),
    numbers: Collection[str] = (),
    beside: tuple[Sequence[str], Sequence[ChunkVisitor]] = ((), ()),
) -> list[ColumnScan]:
    """Look at columns in one pass, in which others may look at theirs.

    Every row is looked at, but for columns of floating numbers in large Parquet files that note
    their ends and no missing value. Of these, what is left to know are mean and scale, and row
    groups spread over the files tell them well enough. NaN is not noted: if it comes in none of
    these row groups, it is a missing value that the encoder does not expect, and becomes the mean.

    Parameters
    ----------
    source : TableSource
    names : sequence of str
    categories, numbers : collection of str
        Columns that are declared to be one or the other.
    beside : pair of columns and visitors
        Shown every row, in the same pass.

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
        visit(source.chunks([*columns, *(scan.name for scan in rest)]), [*visitors, *rest])
    return scans


def _sampled(source: TableSource, names: Sequence[str]) -> dict[str, ColumnScan]:
    """Columns of which a sample tells enough."""
    if not isinstance(source, TableFiles) or source.format != "Parquet":
        return {}
    notes = [_Notes.of(path) for path in source.paths]
    groups = sampled_groups([size for note in notes for size in note.sizes])
    ends = noted_ends(notes, names) if groups is not None else {}
    if groups is None or not ends:
        return {}
    scans = [ColumnScan(name) for name in ends]
    starts = [0, *accumulate(len(note.sizes) for note in notes)]
    for path, (start, stop) in zip(source.paths, pairwise(starts), strict=True):
        here = [int(group) - start for group in groups if start <= group < stop]
        visit(source.chunks_of(path, list(ends), here), scans)
    return {scan.name: scan for scan in scans if _is_enough(scan, ends[scan.name])}


def sampled_groups(sizes: Sequence[int]) -> list[int] | None:
    """Row groups spread evenly over all, enough of them for a sample; None if it takes most.

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


def noted_ends(notes: Sequence[_Notes], names: Sequence[str]) -> dict[str, Ends]:
    """Least and greatest value of the floating columns in which no value is missing, by the notes.

    A column is left out if any row group does not say both.
    """
    found = {name: [note.ends(name) for note in notes] for name in names}
    return {
        name: (min(low for low, _ in ends), max(high for _, high in ends))
        for name, per_file in found.items()
        if (ends := [e for e in per_file if e is not None]) and len(ends) == len(per_file)
    }


def _is_enough(scan: ColumnScan, ends: Ends) -> bool:
    """Whether the sample is of a quantity that the noted ends are not far beyond."""
    moments = scan.moments
    farthest = max(abs(end - moments.mean) for end in ends)
    return moments.low < moments.high and farthest <= FAR * moments.scale


@dataclass(frozen=True)
class _Notes:
    """What a Parquet file notes of its row groups."""

    metadata: pq.FileMetaData
    floating: frozenset[str]
    places: dict[str, int]

    @classmethod
    def of(cls, path: Path) -> _Notes:
        metadata, schema = pq.read_metadata(path), pq.read_schema(path)
        floating = {f.name for f in schema if f.type in (pa.float32(), pa.float64())}
        places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
        return cls(metadata, frozenset(floating), places)

    @property
    def sizes(self) -> list[int]:
        """Rows of each row group."""
        return [self.metadata.row_group(i).num_rows for i in range(self.metadata.num_row_groups)]

    def ends(self, name: str) -> Ends | None:
        """Least and greatest value of a floating column without missing ones, if that is noted."""
        if name not in self.floating:
            return None
        place, groups = self.places[name], range(self.metadata.num_row_groups)
        noted = [self.metadata.row_group(group).column(place).statistics for group in groups]
        if any(n is None or not n.has_min_max or n.null_count != 0 for n in noted):
            return None
        values = list(chain.from_iterable((n.min, n.max) for n in noted))
        return (min(values), max(values)) if values else None
