"""`Roles`: the meaning of each column of a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from unbag.arguments import check_names
from unbag.bags.batch import Task
from unbag.errors import TableError

ROUNDING = "rounding"


@dataclass(frozen=True)
class Roles:
    """Meaning of each column of a table.

    Parameters
    ----------
    bag : str
        ID of the row's bag.
    proportions : tuple of str
        Share of positive labels in the row's bag; one column per class or label.
    counts : tuple of str
        Number of positive labels in the bag, instead of `proportions`.
    size : str, optional
        Size of the bag, which is compared with the number of rows.
    noise : str, optional
        Variance of known noise in the proportion of the bag, or with `counts` in its count.
        "rounding" means rounded proportions, unless it is the name of a column.
    block : str, optional
        Block of the bag, such as its day. Bags of a block are held out together.
    keys : tuple of str
        IDs of rows. `predict` copies them; they are not features.
    ignored : tuple of str
        Columns to leave out.
    categories : tuple of str
        Numeric columns to read as categories.
    numbers : tuple of str
        Integer features that look like IDs.
    task : {"binary", "multiclass", "multilabel", "amount"}, optional
        By default inferred from the proportions, as in `Bags.from_arrays`. For "amount",
        `proportions` are averages and `counts` are sums.

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
            raise TableError(
                "Name either proportion columns or count columns, not both or neither."
            )
        if self.task == "amount" and (len(self.targets) > 1 or self.noise == ROUNDING):
            raise TableError(
                "Amounts need one column of averages or sums, and a column of noise variances; "
                f"got {self.targets} and the noise {self.noise!r}."
            )
        named = [*self.of_bags, *self.keys, *self.ignored, *self.categories, *self.numbers]
        for name in named:
            if named.count(name) > 1:
                raise TableError(f"Column {name!r} has two roles; give it one.")

    @property
    def targets(self) -> tuple[str, ...]:
        """Columns of the bags' proportions or counts."""
        return self.proportions or self.counts

    @property
    def of_bags(self) -> list[str]:
        """Columns that describe bags, the ID first."""
        noise = None if self.noise == ROUNDING else self.noise
        optional = [name for name in (self.size, noise, self.block) if name is not None]
        return [self.bag, *self.targets, *optional]

    def features(self, names: Iterable[str]) -> list[str]:
        """Columns without another meaning."""
        taken = {*self.of_bags, *self.keys, *self.ignored}
        found = [name for name in names if name not in taken]
        if not found:
            raise TableError("No feature is left: all columns are keys, ignored or describe bags.")
        return found

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Roles:
        """Build from plain values, turning lists into tuples."""
        lists: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in values.items()
        }
        return cls(**lists)
