"""Detect the content of a column in one pass over its chunks."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbag.arrays import Array
from unbag.errors import TableError
from unbag.frames.chunks import Chunk
from unbag.frames.parsing import (
    LARGEST,
    LOCAL,
    PATTERNS,
    as_booleans,
    as_days,
    as_text,
    is_text,
    numbers_of,
    refuse_beyond,
)

MAX_DISTINCT = 10_000
MAX_KEPT = 65_536  # values that later chunks are compared with
MOSTLY = 0.9  # of a column's different values
MIN_IDS = 50  # so many different values or fewer may be chance
TINY, HUGE = 1e-28, 1e28  # mean squares that single precision holds well
READERS = {"number": numbers_of, "boolean": as_booleans, "date": as_days}


@dataclass
class Moments:
    """Count, mean and spread of values so far; NaN is a missing value."""

    count: int = 0
    missing: int = 0
    mean: float = 0.0
    spread: float = 0.0
    low: float = np.inf
    high: float = -np.inf

    def add(self, values: Array) -> None:
        """Update with more values (Chan's formula)."""
        low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
        if np.isnan(low):
            known = values[~np.isnan(values)]
            self.missing += len(values) - len(known)
            self.add(known)
        elif len(values):
            mean, spread = _mean_and_spread(values, self.mean if self.count else None)
            total, gap = self.count + len(values), mean - self.mean
            self.spread += spread + gap * gap * (self.count * len(values) / total)
            self.mean += gap * (len(values) / total)
            self.count = total
            self.low, self.high = min(self.low, float(low)), max(self.high, float(high))

    @property
    def scale(self) -> float:
        """Standard deviation, or 1 for a constant."""
        deviation = float(np.sqrt(self.spread / max(self.count, 1)))
        return deviation if deviation > 1e-9 * max(abs(self.mean), 1e-30) else 1.0


def _mean_and_spread(values: Array, near: float | None) -> tuple[float, float]:
    """Mean and centred sum of squares, computed from differences to a number near the mean.

    Squares that overflow or underflow single precision are computed in double precision.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        centre = values.dtype.type(values.mean() if near is None else near)
        gaps = values - centre
        gap = float(gaps.sum()) / len(values)
        square = float(np.square(gaps, out=gaps).sum())
    if values.dtype != np.float64 and not TINY < square / len(values) < HUGE:
        return _mean_and_spread(values.astype(np.float64), near)
    return float(centre) + gap, max(square - len(values) * gap * gap, 0.0)


@dataclass
class ColumnScan:
    """Statistics of one column for the encoder, gathered chunk by chunk."""

    name: str
    forced_category: bool = False
    forced_number: bool = False
    kind: str | None = None
    moments: Moments = field(default_factory=Moments)
    values: Counter[str] = field(default_factory=Counter)
    overflown: bool = False
    all_distinct: bool = True
    n_values: int = 0
    matches: Counter[str] = field(default_factory=Counter)
    first_other: dict[str, str] = field(default_factory=dict)
    has_time: bool = False
    whole: bool = True
    repeated: bool = False
    first_values: Array = field(default_factory=lambda: np.empty(0))

    def add(self, chunk: Chunk) -> None:
        """Scan some rows."""
        values = chunk.batch.column(self.name)
        if self.forced_category or is_text(values.type):
            self._add_text(chunk)
        elif not pa.types.is_null(values.type):
            kind = _kind_of(values.type, chunk, self.name)
            if self.kind not in (None, kind):
                raise TableError(f"{chunk.at(0, self.name)}: a {kind} follows a {self.kind}.")
            self.kind = kind
            self._add_moments(chunk, kind)
        else:
            self.moments.missing += len(values)

    def decided(self) -> str:
        """Kind of the column: number, boolean, date, category, hash, identifier or constant."""
        kind = self.kind or self._kind_of_text()
        if self.forced_number:
            self._check_number(kind)
        if kind in READERS:
            constant = self.moments.low >= self.moments.high and not self.moments.missing
            if constant or not self.moments.count:
                return "constant"
            return "identifier" if kind == "number" and self._numbers_rows() else kind
        if len(self.values) + bool(self.moments.missing) <= 1 and not self.overflown:
            return "constant"
        identifier = self.all_distinct and self.n_values > MIN_IDS and not self.forced_category
        return "identifier" if identifier else kind

    def _check_number(self, kind: str) -> None:
        """Raise if a declared number is of another kind; an empty column is accepted."""
        if kind != "number" and (self.kind or self.n_values):
            other = self.first_other.get("number")
            found = f"{other} is none" if other else f"it is a {kind}"
            raise TableError(f"Column {self.name!r} is declared a number, but {found}.")

    def _numbers_rows(self) -> bool:
        """Whether this is an ID: integers without a repeated value, where a quantity would repeat.

        n integers from a range have at least n**2 / 2 / range equal pairs on average. Where ten are
        expected, none occurs once in 20,000 columns. Integers that span more than a double can
        distinguish are IDs as well.
        """
        if self.forced_number or not self.whole or self.repeated:
            return False
        n_values, span = self.moments.count, self.moments.high - self.moments.low
        return n_values > MIN_IDS and (n_values**2 >= 20 * span or span >= 2**53)

    def _add_moments(self, chunk: Chunk, kind: str) -> None:
        values = READERS[kind](chunk, self.name)
        self.moments.add(values)
        if kind == "number":
            if max(-self.moments.low, self.moments.high) > LARGEST:
                refuse_beyond(values, chunk, self.name)
            self._find_repeats(chunk, values)
        if kind == "date":
            days = values[~np.isnan(values)]
            self.has_time |= bool((days != np.floor(days)).any())

    def _find_repeats(self, chunk: Chunk, values: Array) -> None:
        self.whole = self.whole and not self.repeated and _are_whole(chunk, self.name)
        if not self.whole:
            return
        known = values[~np.isnan(values)]
        # Values between two late chunks are not compared: that would keep the whole column.
        again = np.isin(known, self.first_values).any()
        self.repeated = bool(again) or len(np.unique(known)) < len(known)
        if len(self.first_values) < MAX_KEPT:
            self.first_values = np.concatenate([self.first_values, known])[:MAX_KEPT]

    def _add_text(self, chunk: Chunk) -> None:
        """Count values of text, and how many of them could be numbers, booleans or dates."""
        text = as_text(chunk, self.name)
        known = text.drop_null()
        self.n_values += len(known)
        patterns = {} if self.forced_category else PATTERNS
        for kind, pattern in patterns.items():
            fits = pc.fill_null(pc.match_substring_regex(text, pattern), True)
            n_fits = len(known) - (len(text) - pc.sum(fits.cast(pa.int64())).as_py()) if text else 0
            self.matches[kind] += n_fits
            if n_fits < len(known) and kind not in self.first_other:
                position = int(np.flatnonzero(~fits.to_numpy(zero_copy_only=False))[0])
                value = text[position].as_py()
                self.first_other[kind] = f"{chunk.at(position, self.name)}: {value[:60]!r}"
        possible = [kind for kind in READERS if self.matches[kind] == self.n_values]
        if possible and self.n_values:
            self._add_moments(chunk, possible[0])
            self.overflown |= len(known) > 0
        else:
            self.moments.missing += len(text) - len(known)
            self._count(known)

    def _count(self, known: pa.Array) -> None:
        if len(self.values) > MAX_DISTINCT:
            self.overflown = True
            return
        for pair in pc.value_counts(known).to_pylist():
            self.values[pair["values"]] += pair["counts"]
        self.all_distinct &= self.values.total() == len(self.values)

    def _kind_of_text(self) -> str:
        if self.forced_category:
            return "category"
        for kind in READERS:
            if self.n_values and self.matches[kind] == self.n_values:
                return kind
        for kind in ("number", "date"):
            if self.matches[kind] > self.n_values / 2:
                raise TableError(
                    f"{self.first_other[kind]} is no {kind}, but {self.matches[kind]} of "
                    f"{self.n_values} values of the column are. Repair it, leave it empty, or "
                    "declare the column a category."
                )
        self._refuse_local()
        return "category"

    def _refuse_local(self) -> None:
        """Raise for numbers and dates in a format that is ambiguous between countries."""
        other = [value for value in self.values if not re.search(PATTERNS["number"], value)]
        for pattern, what in LOCAL.items():
            local = [value for value in other if re.fullmatch(pattern, value)]
            if len(local) > max(MOSTLY * len(other), 1):  # a constant is left out anyway
                raise TableError(
                    f"Column {self.name!r}: values such as {local[0]!r} look like {what}; or keep "
                    "the column as text with --category (`categories` in Python)."
                )


def _are_whole(chunk: Chunk, column: str) -> bool:
    """Whether all values are integers: by type, or as text without point or exponent."""
    values = chunk.batch.column(column)
    if not is_text(values.type):
        return bool(pa.types.is_integer(values.type))
    other = pc.match_substring_regex(as_text(chunk, column), r"[^0-9+-]")
    return not pc.any(other).as_py()


def _kind_of(kind: pa.DataType, chunk: Chunk, column: str) -> str:
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "date"
    raise TableError(
        f"{chunk.at(0, column)}: values of type {kind} cannot be learned from. Ignore the column."
    )
