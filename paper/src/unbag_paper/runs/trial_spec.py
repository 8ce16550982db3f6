"""What defines a trial of an experiment, and the key that follows from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from unbag.rules import Rule

__all__ = ["RIDGE", "RIDGE_POINTS", "Conditions", "TrialSpec", "teachers_of"]

Conditions = Literal["ours", "exact"]
"""Bags drawn for each seed, or images, bags and batches as the paper's code has them."""

RIDGE = "ridge"
"""The rule that is solved in closed form rather than trained."""

RIDGE_POINTS = 61
"""Points of its curve: 60 penalties, and the one it chooses."""

# Raised when the meaning of a stored number changes, so that old rows are not taken for new ones.
VERSION = 1
_ADDED_LATER = {"redraw": False, "schedule": "constant", "conditions": "ours", "teacher": ""}
_SHARED_WITH_TEACHER = (
    "dataset",
    "data",
    "bag_size",
    "seed",
    "epochs",
    "measures",
    "version",
    "conditions",
)


@dataclass(frozen=True)
class TrialSpec:
    """Everything that defines a trial; device, precision and versions are only noted in its row.

    Attributes
    ----------
    dataset, data : str
        Name of the problem, and fingerprint of its arrays.
    model, rule : str
        Names in the registries.
    options : str
        The rule's options as JSON with sorted keys, so that a spec can be compared and hashed.
    bag_size, bags_per_batch : int
        Zero bags a batch means all of them: gradient descent on the full batch.
    learning_rate : float, optional
        None for a rule solved in closed form.
    seed, epochs : int
    measures : str
        Which monitors are recorded: "errors", or "estimates" for Figure 2.
    redraw : bool
        Whether each epoch cuts the bags into batches anew.
    schedule : str
        Learning rate over the epochs, as in the engine's `Settings`.
    teacher : str
        What `as_teacher` of another trial gives, or empty. That trial learns from the bags, this
        one from bags of one instance, whose proportions are its teacher's probabilities.
    conditions : {"ours", "exact"}
        Whether bags are drawn for each seed, or all is as the paper's own code has it.

    Examples
    --------
    >>> spec = TrialSpec("mnist", "0f", "linear", "easy_log", 100, 10, 0.001, seed=0, epochs=100)
    >>> spec.key == TrialSpec.from_json(spec.to_json()).key
    True
    """

    dataset: str
    data: str
    model: str
    rule: str
    bag_size: int
    bags_per_batch: int
    learning_rate: float | None
    seed: int
    epochs: int
    options: str = "{}"
    measures: str = "errors"
    version: int = VERSION
    redraw: bool = False
    schedule: Literal["constant", "cosine"] = "constant"
    teacher: str = ""
    conditions: Conditions = "ours"

    def to_json(self) -> str:
        """The spec as JSON with sorted keys; what was added later is left out where it is off."""
        entries = asdict(self)
        for name, off in _ADDED_LATER.items():
            if entries[name] == off:
                del entries[name]
        return json.dumps(entries, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> TrialSpec:
        """Read back what `to_json` wrote."""
        return cls(**json.loads(text))

    @property
    def key(self) -> str:
        """Hash of the whole spec."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:32]

    @property
    def cell(self) -> TrialSpec:
        """What the trials of one cell of a table share: all but learning rate, seed and data."""
        return replace(self, learning_rate=None, seed=0, data="")

    @property
    def stack(self) -> TrialSpec:
        """What trials that can be trained at once share."""
        rule = RIDGE if self.rule == RIDGE else ""
        return replace(self, learning_rate=None, seed=0, rule=rule, options="{}")

    def as_teacher(self) -> str:
        """The spec as JSON without what a teacher and a trial that it teaches share."""
        entries = json.loads(self.to_json())
        own = {name: entries[name] for name in entries if name not in _SHARED_WITH_TEACHER}
        return json.dumps(own, sort_keys=True)

    @property
    def taught_by(self) -> TrialSpec | None:
        """The trial whose probabilities this one learns from, if it has a teacher.

        Examples
        --------
        >>> teacher = TrialSpec("mnist", "0f", "mlp100", "easy_log", 100, 10, 0.001, 7, epochs=9)
        >>> taught = replace(teacher, model="linear", teacher=teacher.as_teacher())
        >>> taught.taught_by == teacher
        True
        """
        if not self.teacher:
            return None
        shared = {name: getattr(self, name) for name in _SHARED_WITH_TEACHER}
        return TrialSpec(**shared, **json.loads(self.teacher))

    def make_rule(self) -> Rule:
        """The rule with its options."""
        from unbag.rules import get_rule  # rows are read without torch

        options: dict[str, Any] = json.loads(self.options)
        return get_rule(self.rule, **options)


def teachers_of(trials: Iterable[TrialSpec]) -> list[TrialSpec]:
    """The teachers of these trials, each of them once."""
    every = (trial.taught_by for trial in trials)
    return list(dict.fromkeys(teacher for teacher in every if teacher is not None))
