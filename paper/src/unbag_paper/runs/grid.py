"""Declared grids: one TOML file for each table and figure, and the trials it stands for."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any, Literal

from unbag.rules import RULES
from unbag_paper.nets import NETS
from unbag_paper.runs.trial_spec import RIDGE, RIDGE_POINTS, Conditions, TrialSpec

__all__ = ["GRIDS", "Cell", "Grid", "Part", "RuleEntry", "Teacher", "check_known", "load_grids"]

Part = Literal["models", "rules", "bag_sizes"]
"""What a grid can be cut down in."""

GRIDS = ("mnist", "cifar", "mnist_exact", "cifar_exact", "figure1", "figure2", "figure3")


@dataclass(frozen=True)
class RuleEntry:
    """A column of a table: a rule with its options, and how many bags its batches hold.

    Attributes
    ----------
    label : str
        What tables and figures call it.
    name : str
        In the registry of rules, or "ridge".
    options : mapping
    bags_per_batch : mapping from str to int
        By bag size; others get as many bags as make `instances_per_batch`.
    redraw : bool
        Whether each epoch cuts the bags into batches anew; the paper keeps them.
    schedule : {"constant", "cosine"}
        Learning rate over the epochs; the paper's is constant.
    models : tuple of str
        Models it serves; empty for all.
    published : bool
        Whether the paper has a number for it.
    teacher : Teacher, optional
        Who turns the bags into probabilities for this rule to learn from, one for each instance.
    """

    label: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    bags_per_batch: Mapping[str, int] = field(default_factory=dict)
    redraw: bool = False
    schedule: Literal["constant", "cosine"] = "constant"
    models: tuple[str, ...] = ()
    published: bool = False
    teacher: Teacher | None = None

    def __post_init__(self) -> None:
        if self.name not in RULES and self.name != RIDGE:
            raise ValueError(f"rules: name must be one of {sorted(RULES)}, got {self.name!r}.")


@dataclass(frozen=True)
class Teacher:
    """A net trained from the same bags: a model, the column it is trained as, a learning rate."""

    model: str
    rule: RuleEntry
    learning_rate: float

    def __post_init__(self) -> None:
        check_known("teacher: model", [self.model], NETS)


@dataclass(frozen=True)
class Cell:
    """One cell of a table: a problem, a model, a bag size and a rule."""

    dataset: str
    model: str
    bag_size: int
    rule: RuleEntry
    spec: TrialSpec
    learning_rates: tuple[float | None, ...]
    seeds: tuple[int, ...]

    def trial(self, learning_rate: float | None, seed: int, data: str) -> TrialSpec:
        """The trial of this cell with a learning rate and a seed."""
        return replace(self.spec, learning_rate=learning_rate, seed=seed, data=data)


@dataclass(frozen=True)
class Grid:
    """All trials of a table or figure; the attributes are the entries of its TOML file.

    Examples
    --------
    >>> [grid] = load_grids("mnist")
    >>> small = grid.restrict(models=["linear"], bag_sizes=[100], n_seeds=2)
    >>> sum(len(cell.learning_rates) * len(cell.seeds) for cell in small.cells())
    92
    """

    name: str
    title: str
    datasets: tuple[str, ...]
    models: tuple[str, ...]
    bag_sizes: tuple[int, ...]
    rules: tuple[RuleEntry, ...]
    learning_rates: tuple[float, ...]
    seeds: tuple[int, ...]
    epochs: int
    instances_per_batch: int = 1000
    full_batch: bool = False
    measures: str = "errors"
    conditions: Conditions = "ours"
    stacks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_known("models", self.models, NETS)

    def cells(self) -> Iterator[Cell]:
        """Every cell, model by model and bag size by bag size."""
        for dataset in self.datasets:
            for model in self.models:
                for bag_size in self.bag_sizes:
                    for rule in self.rules:
                        if not rule.models or model in rule.models:
                            yield self._cell(dataset, model, bag_size, rule)

    def _cell(self, dataset: str, model: str, bag_size: int, rule: RuleEntry) -> Cell:
        trained = rule.name != RIDGE
        spec = TrialSpec(
            dataset=dataset,
            data="",
            model=model,
            rule=rule.name,
            options=json.dumps(dict(rule.options), sort_keys=True),
            bag_size=bag_size,
            bags_per_batch=self._bags_per_batch(rule, bag_size) if trained else 0,
            learning_rate=None,
            seed=0,
            epochs=self.epochs if trained else RIDGE_POINTS,
            measures=self.measures,
            redraw=rule.redraw,
            schedule=rule.schedule,
            conditions=self.conditions,
            teacher=self._teacher(dataset, bag_size, rule.teacher),
        )
        rates: tuple[float | None, ...] = self.learning_rates if trained else (None,)
        return Cell(dataset, model, bag_size, rule, spec, rates, self.seeds)

    def _teacher(self, dataset: str, bag_size: int, teacher: Teacher | None) -> str:
        if teacher is None:
            return ""
        cell = self._cell(dataset, teacher.model, bag_size, teacher.rule)
        return replace(cell.spec, learning_rate=teacher.learning_rate).as_teacher()

    def _bags_per_batch(self, rule: RuleEntry, bag_size: int) -> int:
        if self.full_batch:
            return 0
        n_instances = 1 if rule.teacher else bag_size
        default = max(1, self.instances_per_batch // n_instances)
        return rule.bags_per_batch.get(str(bag_size), default)

    def stack_size(self, model: str, device: str) -> int:
        """Trials of a model that are trained at once on a device such as "cuda:0"."""
        return self.stacks.get(device.partition(":")[0], {}).get(model, 1)

    def restrict(
        self,
        *,
        models: Iterable[str] | None = None,
        rules: Iterable[str] | None = None,
        bag_sizes: Iterable[int] | None = None,
        n_seeds: int | None = None,
        epochs: int | None = None,
    ) -> Grid:
        """Part of the grid; rules go by their label or by their registered name.

        Without names, a taught rule stays only where its teacher's model does.
        """
        kept = _part("rows", self.models, models)
        return replace(
            self,
            models=kept,
            bag_sizes=_part("ks", self.bag_sizes, bag_sizes),
            rules=_teachable(self.rules, kept) if rules is None else _named(self.rules, rules),
            seeds=self.seeds if n_seeds is None else self.seeds[:n_seeds],
            epochs=self.epochs if epochs is None else epochs,
        )

    def names(self, part: Part) -> list[Any]:
        """What `restrict` knows a part of the grid by; rules have two names each."""
        return _rule_names(self.rules) if part == "rules" else list(getattr(self, part))


def load_grids(name: str) -> list[Grid]:
    """Read a declared grid: one, or where it extends others, one for each of them.

    Parameters
    ----------
    name : str
        One of `GRIDS`.
    """
    if name not in GRIDS:
        raise ValueError(f"name must be one of {GRIDS}, got {name!r}.")
    declared = tomllib.loads(_text(name))
    if "extends" not in declared:
        return [_grid(name, declared)]
    parents = declared.pop("extends")
    return [_derived(name, grid, declared) for parent in parents for grid in load_grids(parent)]


def _derived(name: str, parent: Grid, declared: dict[str, Any]) -> Grid:
    """A figure of a table, or a table under other conditions; models may depend on the parent."""
    changes = {key: v for key, v in declared.items() if key not in ("models", "rules")}
    models = declared["models"]
    models = models[parent.name] if isinstance(models, dict) else models
    kept = declared.get("rules")
    rules = _teachable(parent.rules, models) if kept is None else _columns(parent.rules, kept)
    return replace(parent, name=name, models=tuple(models), rules=rules, **_tuples(changes))


def _columns(every: tuple[RuleEntry, ...], declared: list[Any]) -> tuple[RuleEntry, ...]:
    """A name is a column of the parent, a table one of its own."""
    found = [[_rule(c, [])] if isinstance(c, dict) else _named(every, [c]) for c in declared]
    return tuple(rule for rules in found for rule in rules)


def _text(name: str) -> str:
    return (resources.files("unbag_paper.runs") / "grids" / f"{name}.toml").read_text("utf-8")


def _grid(name: str, declared: dict[str, Any]) -> Grid:
    columns = declared.pop("rules")
    rules = tuple(_rule(column, columns) for column in columns)
    return Grid(name=name, rules=rules, **_tuples(declared))


def _rule(column: dict[str, Any], columns: list[dict[str, Any]]) -> RuleEntry:
    entries = _tuples(column)
    if "teacher" in entries:
        entries["teacher"] = _teacher(entries["teacher"], columns)
    return RuleEntry(**entries)


def _teacher(entries: dict[str, Any], columns: list[dict[str, Any]]) -> Teacher:
    """A teacher names another column: a net that is trained, and from the bags themselves."""
    able = {c["label"]: c for c in columns if c["name"] != RIDGE and "teacher" not in c}
    label = entries["rule"]
    check_known("teacher: rule", [label], able)
    return Teacher(**entries | {"rule": _rule(able[label], columns)})


def _tuples(table: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in table.items()}


def _part(option: str, every: tuple[Any, ...], wanted: Iterable[Any] | None) -> tuple[Any, ...]:
    if wanted is None:
        return every
    wanted = list(wanted)
    check_known(option, wanted, every)
    return tuple(value for value in every if value in wanted)


def _teachable(every: tuple[RuleEntry, ...], models: Iterable[str]) -> tuple[RuleEntry, ...]:
    return tuple(rule for rule in every if rule.teacher is None or rule.teacher.model in models)


def _named(every: tuple[RuleEntry, ...], wanted: Iterable[str]) -> tuple[RuleEntry, ...]:
    names = {name.lower() for name in wanted}
    check_known("rules", names, _rule_names(every))
    return tuple(rule for rule in every if {rule.label.lower(), rule.name} & names)


def _rule_names(rules: Iterable[RuleEntry]) -> list[str]:
    return sorted({name for rule in rules for name in (rule.label.lower(), rule.name)})


def check_known(option: str, wanted: Iterable[Any], known: Iterable[Any]) -> None:
    """Refuse what is not known, and say what is."""
    unknown = [value for value in wanted if value not in known]
    if unknown:
        listed = ", ".join(str(value) for value in known)
        raise ValueError(f"{option} must be among {listed}, got {unknown[0]!r}.")
