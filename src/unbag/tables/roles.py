"""`Roles`: the meaning of each column of a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from unbag.arguments import check_names
from unbag.bags.batch import Task
from unbag.errors import TableError

__all__ = ["ROUNDING", "Roles"]

ROUNDING = "rounding"


@dataclass(frozen=True)
class Roles:
    """The meaning of each column of a table.

    Parameters
    ----------
    bag : str
        Column that says which bag a row belongs to.
    proportions : tuple of str
        Share of positive labels in the row's bag; several for several classes or labels.
    counts : tuple of str
        Number of positive labels in the bag, instead of `proportions`.
    size : str, optional
        The bag's size as it was counted. If rows of a bag are missing, that is an error.
    noise : str, optional
        Variance of known noise in the bag's proportion; with `counts`, in its count. Where no
        column is called so, "rounding" stands for proportions that were rounded.
    block : str, optional
        Block of the bag, such as its day: bags of a block are held out together.
    keys : tuple of str
        Columns that identify a row: kept by `predict`, never learned from.
    ignored : tuple of str
        Columns to leave out.
    categories : tuple of str
        Columns of numbers to read as categories.
    numbers : tuple of str
        Columns of integers to learn from though they look like IDs.
    task : {"binary", "multiclass", "multilabel", "amount"}, optional
        What the proportions are of; None reads it off them, as `Bags.from_arrays` does. With
        "amount" they are averages of amounts, and counts are sums.

    Examples
    --------
    >>> Roles("group", proportions=("rate",)).of_bags
    ['group', 'rate']
    """

    bag: str
    proportions: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    size: str | None = None
    noise: str | None = None
    keys: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    task: Task | None = None
    block: str | None = None

    def __post_init__(self) -> None:
        for several in ("proportions", "counts", "keys", "ignored", "categories", "numbers"):
            check_names(several, getattr(self, several))
        if bool(self.proportions) == bool(self.counts):
            raise TableError("Name either the proportion column or the count column of the bags.")
        if self.task == "amount" and (len(self.targets) > 1 or self.noise == ROUNDING):
            raise TableError(
                "Amounts have one column of averages or sums, and the variance of noise is a "
                f"column; got {self.targets} and the noise {self.noise!r}."
            )
        named = [*self.of_bags, *self.keys, *self.ignored, *self.categories, *self.numbers]
        for name in named:
            if named.count(name) > 1:
                raise TableError(f"Column {name!r} cannot have two meanings.")

    @property
    def targets(self) -> tuple[str, ...]:
        """Columns with the bags' proportions or counts."""
        return self.proportions or self.counts

    @property
    def of_bags(self) -> list[str]:
        """Columns that describe bags, the bag itself first."""
        noise = None if self.noise == ROUNDING else self.noise
        optional = [name for name in (self.size, noise, self.block) if name is not None]
        return [self.bag, *self.targets, *optional]

    def features(self, names: Iterable[str]) -> list[str]:
        """Columns to learn from: all that have no other meaning."""
        taken = {*self.of_bags, *self.keys, *self.ignored}
        found = [name for name in names if name not in taken]
        if not found:
            raise TableError("No column is left to learn from: all are keys, ignored or of bags.")
        return found

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Roles:
        """From plain values, whose lists become tuples."""
        lists: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in values.items()
        }
        return cls(**lists)
