"""Results of an experiment: rows, claims with a verdict, and a figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from matplotlib.figure import Figure

__all__ = ["Claim", "ExperimentResult", "Options", "Progress"]

Options = dict[str, Any]
Progress = Callable[[], None]


@dataclass(frozen=True)
class Claim:
    """One line of the final table.

    Parameters
    ----------
    claim, where : str
        What is claimed, and where in the paper ("new" when it is not in the paper).
    measured, expected : str
        What came out of the simulation, and what the paper says.
    passed : bool
        Whether the outcome lies within the tolerance of the claim.
    note : str
        What a reader should know beyond pass or fail, such as a bound that holds but is loose.
    refuted : bool
        The claim is known to be false as stated: it is reported as failed, and only its passing
        would be a surprise.
    """

    claim: str
    where: str
    measured: str
    expected: str
    passed: bool
    note: str = ""
    refuted: bool = False

    def __post_init__(self) -> None:
        # Comparisons of numpy numbers give numpy booleans, which JSON does not know.
        object.__setattr__(self, "passed", bool(self.passed))

    @property
    def expected_outcome(self) -> bool:
        """Whether the verdict is the known one: pass, or fail for a refuted claim."""
        return self.passed != self.refuted

    @property
    def verdict(self) -> str:
        """Pass or fail, in words."""
        if self.passed:
            return "pass"
        return "FAIL as stated" if self.refuted else "FAIL"


@dataclass(frozen=True)
class ExperimentResult:
    """The result of one experiment."""

    name: str
    claims: list[Claim]
    rows: list[dict[str, Any]]
    figure: Figure | None = field(default=None, compare=False)
