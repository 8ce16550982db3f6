"""Read the values of a column as an array; an error names the file, row and column."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbag.arrays import Array
from unbag.errors import TableError
from unbag.frames.chunks import Chunk

# Text that means a number, a truth value or a date; infinity is a number, and refused as one.
PATTERNS = {
    "number": r"^[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:inf|infinity))$",
    "boolean": r"^(?i:true|false|yes|no|0|1)$",
    "date": r"^(\d{4}[-/.]\d{2}[-/.]\d{2}|\d{2}\.\d{2}\.\d{4})"
    r"([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?([+-]\d{2}(:?\d{2})?|Z)?)?$",
}
# Dates with the year first, or with points, where the day comes first in every country.
DATE_ORDERS = {
    r"^(\d{4})[/.](\d{2})[/.](\d{2})": r"\1-\2-\3",
    r"^(\d{2})\.(\d{2})\.(\d{4})": r"\3-\2-\1",
}
# Text that may be a number or a date but is ambiguous between countries, and what to write instead.
LOCAL = {
    r"[+-]?\d+([.,]\d+)?\s?%": "percentages: write 0.45 for 45%",
    r"[+-]?(\d+|\d{1,3}([.' \u00a0\u202f]\d{3})+),\d+|[+-]?\d{1,3}(,\d{3})+\.\d+": (
        "numbers with a comma: write 1234.5, with a point and nothing else"
    ),
    r"(\d{1,2}([./-])\d{1,2}\2\d{4}|\d{1,2}/\d{1,2}/\d{2}|\d{4}([./])\d{1,2}\3\d{1,2})"
    r"([T ,]+\d.*)?": "dates: write 2026-12-31, the year first",
}
LARGEST = 1e100  # its square is still a double
MICROSECONDS_A_DAY = 86_400_000_000


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type holds strings."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    views = getattr(pa.types, "is_string_view", lambda _: False)
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or views(kind)


def text_of(values: pa.Array) -> pa.Array:
    """Any column as trimmed strings; empty ones are missing."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary.cast(pa.string()).take(values.indices)  # views do not decode
    if not pa.types.is_string(values.type):
        values = values.cast(pa.string())
    trimmed = pc.utf8_trim_whitespace(values)
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)


def as_text(chunk: Chunk, column: str) -> pa.Array:
    """Read categories or identifiers as strings."""
    values = chunk.batch.column(column)
    try:
        return text_of(values)
    except pa.ArrowException as error:
        raise TableError(
            f"{chunk.at(0, column)}: values of type {values.type} cannot be used. "
            f"Ignore the column."
        ) from error


def as_numbers(chunk: Chunk, column: str) -> Array:
    """Read numbers in their own precision; missing ones are NaN, infinite ones an error."""
    numbers = numbers_of(chunk, column)
    refuse_beyond(numbers, chunk, column)
    return numbers


def numbers_of(chunk: Chunk, column: str) -> Array:
    """Like `as_numbers`, without the check for infinite values."""
    values = chunk.batch.column(column)
    if is_text(values.type):
        values = _matching(chunk, column, "number")
    try:
        if not pa.types.is_float32(values.type):
            values = values.cast(pa.float64(), safe=False)
        return values.to_numpy(zero_copy_only=False)
    except pa.ArrowException as error:
        raise TableError(f"{chunk.at(0, column)}: {values.type} cannot be read as numbers.") from (
            error
        )


def refuse_beyond(numbers: Array, chunk: Chunk, column: str) -> None:
    """Raise for the first number that is infinite or too large."""
    ends = (np.fmin, np.fmax) if len(numbers) else ()  # they pass over missing ones
    if not any(abs(float(end.reduce(numbers))) > LARGEST for end in ends):  # NaN is not
        return
    bad = int(np.argmax(np.abs(numbers) > np.float64(LARGEST)))
    value = numbers[bad]
    what = "infinite" if np.isinf(value) else f"{value:g}, which is too large"
    place = chunk.at(bad, column)
    raise TableError(f"{place}: the value is {what}. Correct it, or leave it empty.")


def as_booleans(chunk: Chunk, column: str) -> Array:
    """Read truth values as 0.0 and 1.0; missing ones are NaN."""
    values = chunk.batch.column(column)
    if is_text(values.type):
        values = pc.match_substring_regex(_matching(chunk, column, "boolean"), r"^(?i:true|yes|1)$")
    if not pa.types.is_boolean(values.type):
        return _zeros_and_ones(as_numbers(chunk, column), column)
    return values.cast(pa.uint8()).cast(pa.float64()).to_numpy(zero_copy_only=False)


def _zeros_and_ones(values: Array, column: str) -> Array:
    if not (np.isnan(values) | np.isin(values, (0, 1))).all():
        worst = values[~np.isin(values, (0, 1)) & ~np.isnan(values)][0]
        raise TableError(
            f"column {column!r} was read as yes or no, which are true, false, 1 and 0; got "
            f"{worst:g}."
        )
    return values


def as_days(chunk: Chunk, column: str) -> Array:
    """Read dates and times as days since 1970 in UTC; missing ones are NaN."""
    values = chunk.batch.column(column)
    if is_text(values.type):
        values = _matching(chunk, column, "date")
        for pattern, order in DATE_ORDERS.items():
            values = pc.replace_substring_regex(values, pattern, order)
    try:
        stamps = _as_timestamps(values)
    except pa.ArrowException as error:
        raise TableError(_first_bad_date(chunk, column, values, error)) from error
    micros = stamps.cast(pa.int64()).cast(pa.float64(), safe=False)
    return micros.to_numpy(zero_copy_only=False) / MICROSECONDS_A_DAY


def _as_timestamps(values: pa.Array) -> pa.Array:
    if is_text(values.type):
        values = pc.replace_substring_regex(values, r"^(.{10})$", r"\1 00:00")
        # Without an offset it is taken for UTC, as in a typed column without a time zone.
        values = pc.replace_substring_regex(values, r"([T ][0-9:.]+)$", r"\1Z")
        values = values.cast(pa.timestamp("us", "UTC"))
    elif pa.types.is_date(values.type):
        values = values.cast(pa.timestamp("ms"))
    return values.cast(pa.timestamp("us"), safe=False)


def _first_bad_date(chunk: Chunk, column: str, values: pa.Array, error: Exception) -> str:
    for position, value in enumerate(values):
        try:
            _as_timestamps(pa.array([value.as_py()], values.type))
        except (pa.ArrowException, ValueError, OverflowError):
            return f"{chunk.at(position, column)}: {value.as_py()!r} is no date."
    return f"{chunk.at(0, column)}: {error}"


def _matching(chunk: Chunk, column: str, kind: str) -> pa.Array:
    """Text of a column; raise unless all of it can be read as this kind."""
    text = as_text(chunk, column)
    good = pc.fill_null(pc.match_substring_regex(text, PATTERNS[kind]), True)
    if not pc.all(good).as_py() and len(good):
        position = int(np.flatnonzero(~good.to_numpy(zero_copy_only=False))[0])
        value = text[position].as_py()
        hint = " Write percentages as fractions, 0.5 for 50%." if value.endswith("%") else ""
        hint = " Write a decimal point, 0.5." if re.fullmatch(r"[+-]?\d+,\d+", value) else hint
        raise TableError(f"{chunk.at(position, column)}: {value[:60]!r} is no {kind}.{hint}")
    return text
