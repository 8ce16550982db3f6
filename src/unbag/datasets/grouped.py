"""Simulated tables in bags, with known labels to compare results with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unbag.arrays import Array

if TYPE_CHECKING:
    import pyarrow as pa

Columns = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class GroupedTable:
    """Rows in bags, the counts of the bags, and the hidden labels.

    Attributes
    ----------
    rows : pyarrow.Table
        One row per instance. The column named like the first one of `bags` is its bag.
    bags : pyarrow.Table
        One row per bag: its name, its size, its number of positive labels.
    labels : array of shape (n_instances,)
        The label of every row, which nothing but a comparison with the truth should use.
    """

    rows: pa.Table
    bags: pa.Table
    labels: Array

    @property
    def bag_of_row(self) -> Array:
        """Name of each row's bag."""
        return np.asarray(self.rows[self.bags.column_names[0]])

    def of_rows(self, column: str) -> Array:
        """A column of `bags`, repeated for the rows of each bag.

        Examples
        --------
        >>> made = make_clicks(5, seed=0)
        >>> made.of_rows("clicks").shape == made.labels.shape
        True
        """
        names, values = (
            np.asarray(self.bags[name]) for name in (self.bags.column_names[0], column)
        )
        order = np.argsort(names)
        return values[order[np.searchsorted(names[order], self.bag_of_row)]]


def make_clicks(n_reports: int, *, seed: int, first: int = 0) -> GroupedTable:
    """Clicks on an ad in reports of 10 to 20, dealt at random; a label is a sale.

    Parameters
    ----------
    n_reports : int
    seed : int
    first : int
        Number of the first click, so that two tables can have different ones.

    Examples
    --------
    >>> made = make_clicks(300, seed=0)
    >>> made.bags.column_names, made.rows.num_rows
    (['report', 'clicks', 'conversions'], 4584)
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    sizes = rng.integers(10, 21, n_reports)
    n = int(sizes.sum())
    device = rng.choice(["phone", "laptop", "tablet"], n, p=[0.55, 0.35, 0.10])
    country = rng.choice(["AT", "BE", "CH", "DE", "FR", "NL"], n)
    returning = rng.random(n) < 0.3
    price = np.round(np.exp(rng.normal(3.2, 0.7, n)), 2)
    seconds = np.round(rng.gamma(2.0, 40.0, n), 1)
    day = rng.integers(0, 31, n)
    logit = 3.2 * returning + 0.04 * (seconds - 80) - 1.6 * (price > 40) - 1.2
    logit += 1.2 * (device == "laptop") - 0.8 * (country == "CH")
    sold = rng.random(n) < _sigmoid(1.6 * logit)
    unknown = rng.random(n) < 0.05
    columns = {
        "event_id": [f"e{number:06d}" for number in range(first, first + n)],
        "clicked_on": np.datetime64("2026-03-01") + day,
        "device": device,
        "country": country,
        "returning": returning,
        "price": price,
        "seconds_on_page": pa.array(seconds, mask=unknown),
    }
    bag = rng.permutation(np.repeat(np.arange(n_reports), sizes))
    names = [f"r{first // 1000:02d}-{number:03d}" for number in range(n_reports)]
    return _grouped(columns, sold, bag, names, ("report", "clicks", "conversions"))


def make_voters(n_precincts: int, *, seed: int, sorting: float = 0.5) -> GroupedTable:
    """Voters in precincts of 20 to 200; a label is a vote for the measure.

    Parameters
    ----------
    n_precincts : int
    seed : int
    sorting : float
        How far neighbours are alike in age and income, from 0 (precincts are random draws of
        voters) to 1 (they are cut from one long line of them).

    Examples
    --------
    >>> made = make_voters(60, seed=0)
    >>> made.rows.column_names
    ['voter', 'age', 'income', 'children', 'owns_home', 'commute', 'precinct']
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(20, 201, n_precincts)
    n = int(sizes.sum())
    age = rng.integers(18, 91, n)
    income = np.round(np.exp(rng.normal(10.4 + 0.4 * np.sin(age / 25), 0.5, n)), -2)
    children = rng.poisson(np.where((age > 25) & (age < 55), 1.2, 0.3))
    owns = rng.random(n) < _sigmoid((age - 45) / 12 + (income - 35_000) / 20_000)
    commute = rng.choice(["car", "bus", "bicycle", "none"], n, p=[0.5, 0.2, 0.15, 0.15])
    logit = 1.2 - 0.07 * (age - 45) - 1.5 * owns + 0.8 * children - 1.2 * (commute == "car")
    voted = rng.random(n) < _sigmoid(1.5 * logit)
    columns = {
        "voter": [f"v{number:06d}" for number in range(n)],
        "age": age,
        "income": income.astype(int),
        "children": children,
        "owns_home": owns,
        "commute": commute,
    }
    alike = _standardised(age) + _standardised(np.log(income))
    bag = _deal(sizes, alike, sorting, rng)
    names = [f"p{number:03d}" for number in range(n_precincts)]
    return _grouped(columns, voted, bag, names, ("precinct", "votes", "in_favour"))


def make_visits(n_sheets: int, *, seed: int, sorting: float = 0.0) -> GroupedTable:
    """Visits to clinics, on sheets of 15 to 40; a label is a confirmed case.

    Parameters
    ----------
    n_sheets : int
    seed : int
    sorting : float
        How far the visits of a sheet are alike in age and temperature; 0 deals them at random.

    Examples
    --------
    >>> made = make_visits(100, seed=0)
    >>> made.bags.column_names
    ['sheet', 'visits', 'cases']
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    sizes = rng.integers(15, 41, n_sheets)
    n = int(sizes.sum())
    age = rng.integers(0, 95, n)
    case = rng.random(n) < 0.15 + 0.25 * (age > 60)
    temperature = np.round(rng.normal(36.8 + 1.4 * case, 0.5), 1)
    cough = np.where(case, rng.choice(3, n, p=[0.1, 0.3, 0.6]), rng.choice(3, n, p=[0.6, 0.3, 0.1]))
    contact = rng.random(n) < 0.1 + 0.5 * case
    columns = {
        "visit_id": [f"n{number:06d}" for number in range(n)],
        "visited_on": np.datetime64("2026-01-05") + rng.integers(0, 90, n),
        "age": age,
        "temperature": pa.array(temperature, mask=rng.random(n) < 0.08),
        "cough": np.array(["none", "dry", "wet"])[cough],
        "contact": contact,
    }
    bag = _deal(sizes, _standardised(age) + _standardised(temperature), sorting, rng)
    names = [f"s{number:04d}" for number in range(n_sheets)]
    return _grouped(columns, case, bag, names, ("sheet", "visits", "cases"))


def _deal(sizes: Array, alike: Array, sorting: float, rng: np.random.Generator) -> Array:
    """Bag of each row: rows lined up by likeness and chance, and the line cut into bags."""
    if not 0 <= sorting <= 1:
        raise ValueError(f"sorting must lie between 0 and 1, got {sorting}.")
    chance = rng.normal(size=len(alike))
    place = sorting * _standardised(alike) + (1 - sorting) * chance
    bag = np.empty(len(alike), dtype=int)
    bag[np.argsort(place)] = np.repeat(np.arange(len(sizes)), sizes)
    return bag


def _grouped(
    columns: Columns, labels: Array, bag: Array, names: list[str], words: tuple[str, str, str]
) -> GroupedTable:
    import pyarrow as pa

    name, size, positives = words
    sizes = np.bincount(bag, minlength=len(names))
    counts = np.bincount(bag, labels, minlength=len(names)).astype(int)
    rows = pa.table({**columns, name: pa.array(names).take(pa.array(bag))})
    return GroupedTable(rows, pa.table({name: names, size: sizes, positives: counts}), labels)


def _standardised(values: Array) -> Array:
    return (values - values.mean()) / values.std()


def _sigmoid(values: Array) -> Array:
    return 1 / (1 + np.exp(-values))
