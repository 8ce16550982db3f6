"""Declared tables of the league: TOML files, the cells they have, and the runs these need."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

from unbag_paper.league.rows import LeagueRow, runs_by_cell
from unbag_paper.league.spec import Kind, RunSpec

__all__ = ["GRIDS", "LeagueGrid", "load_grid"]

GRIDS = ("peers", "goal", "strongest", "smoke")


@dataclass(frozen=True)
class LeagueGrid:
    """All runs of a table; the attributes are the entries of its TOML file.

    Attributes
    ----------
    name, title, dataset, net : str
    methods : tuple of str
    bags : tuple of str
    bag_sizes, seeds : tuple of int
    learning_rates : tuple of float
        The first is run first, for all cells.
    epochs, start_epochs, images_per_batch, check_every : int
    start_for_all : bool
        Whether methods that do not ask for a contrastive start have it too.
    held_out : float
    seconds_per_epoch : float
        A guess for one run alone, used until rows of this device are there.
    options : mapping
        Options of methods, by name.
    published : mapping
        By label, accuracies in percent that others report, by bag size.
    goal : mapping
        Accuracies in percent to reach, by bag size.
    """

    name: str
    title: str
    dataset: str
    net: str
    methods: tuple[str, ...]
    bags: tuple[Kind, ...]
    bag_sizes: tuple[int, ...]
    learning_rates: tuple[float, ...]
    seeds: tuple[int, ...]
    epochs: int
    start_epochs: int = 0
    start_for_all: bool = False
    images_per_batch: int = 1024
    check_every: int = 2
    held_out: float = 0.1
    seconds_per_epoch: float = 1.0
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    goal: Mapping[str, float] = field(default_factory=dict)

    def cell(self, method: str, kind: Kind, bag_size: int) -> RunSpec:
        """What the runs of a cell share."""
        return RunSpec(
            dataset=self.dataset,
            data="",
            net=self.net,
            method=method,
            bags=kind,
            bag_size=bag_size,
            seed=0,
            learning_rate=0.0,
            epochs=self.epochs,
            start_epochs=self.start_epochs if self.start_for_all or needs_start(method) else 0,
            images_per_batch=self.images_per_batch,
            check_every=self.check_every,
            held_out=self.held_out,
            options=json.dumps(dict(self.options.get(method, {})), sort_keys=True),
        )

    def cells(self) -> Iterator[RunSpec]:
        """Every cell, kind by kind and size by size."""
        for kind in self.bags:
            for bag_size in self.bag_sizes:
                for method in self.methods:
                    yield self.cell(method, kind, bag_size)

    def missing(self, rows: Iterable[LeagueRow], data: str) -> list[RunSpec]:
        """Runs that are without a row, in the order they should be done.

        First each cell once, at the first rate; then the other rates on the first seed; then the
        other seeds, at the rates that won on the first one by the test set or by held-out bags.
        """
        found = runs_by_cell(row for row in rows if row.spec.data == data)
        first, rates, seeds = [], [], []
        for cell in self.cells():
            runs = found.get(cell, [])
            own = replace(cell, data=data)
            first.append(replace(own, seed=self.seeds[0], learning_rate=self.learning_rates[0]))
            rates += [
                replace(own, seed=self.seeds[0], learning_rate=rate)
                for rate in self.learning_rates[1:]
            ]
            seeds += [
                replace(own, seed=seed, learning_rate=rate)
                for seed in self.seeds[1:]
                for rate in self._winners(runs)
            ]
        done = {run.spec for runs in found.values() for run in runs}
        return [run for run in [*first, *rates, *seeds] if run not in done]

    def _winners(self, runs: list[LeagueRow]) -> list[float]:
        """Rates that won on the first seed; none before all of them are there."""
        of_first = [run for run in runs if run.spec.seed == self.seeds[0]]
        if {run.spec.learning_rate for run in of_first} < set(self.learning_rates):
            return []
        best = [min(of_first, key=lambda r: r.best_error(by)) for by in ("test", "held_out")]
        return list(dict.fromkeys(run.spec.learning_rate for run in best))

    def restrict(self, **parts: Iterable[Any] | None) -> LeagueGrid:
        """Part of the grid: `methods`, `bags`, `bag_sizes`, `seeds`, `learning_rates`."""
        changes: dict[str, Any] = {}
        for part, wanted in parts.items():
            if wanted is None:
                continue
            every = getattr(self, part)
            unknown = [value for value in wanted if value not in every]
            if unknown:
                listed = ", ".join(map(str, every))
                raise ValueError(f"{part} must be among {listed}, got {unknown[0]!r}.")
            changes[part] = tuple(value for value in every if value in list(wanted))
        return replace(self, **changes)


def needs_start(method: str) -> bool:
    """Whether a method asks for a contrastive start."""
    from unbag_paper.league.methods import METHODS

    return METHODS[method].needs_start


def load_grid(name: str) -> LeagueGrid:
    """Read a declared table.

    Examples
    --------
    >>> len(list(load_grid("peers").cells()))
    90
    """
    if name not in GRIDS:
        raise ValueError(f"grid must be one of {', '.join(GRIDS)}, got {name!r}.")
    folder = resources.files("unbag_paper.league") / "grids"
    declared = tomllib.loads((folder / f"{name}.toml").read_text("utf-8"))
    entries: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in declared.items()
    }
    return LeagueGrid(name=name, **entries)
