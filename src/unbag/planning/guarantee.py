"""The certificate for a rule, a hypothesis class and a best error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unbag.planning.certificates import debiased_excess_certificate
from unbag.planning.conditions import require, require_probability, require_whole
from unbag.planning.realizable import (
    realizable_error_certificate,
    realizable_vc_error_certificate,
    smallest_sample_size,
)

PLANNED_RULES = ("eprm", "proportion_square", "debiased_square")


@dataclass(frozen=True)
class Guarantee:
    """Assumptions on rule, class and data; a call with (n_bags, bag_size) bounds the error.

    Parameters are those of :func:`plan_bags`.

    Examples
    --------
    >>> round(Guarantee(n_hypotheses=1000)(55, 20), 4)
    0.0099
    """

    rule: str = "debiased_square"
    n_hypotheses: int | None = None
    vc_dimension: int | None = None
    best_error: float = 0.0
    confidence: float = 0.95

    def __post_init__(self) -> None:
        require(self.rule in PLANNED_RULES, f"`rule` must be one of {PLANNED_RULES}.")
        named = {"n_hypotheses": self.n_hypotheses, "vc_dimension": self.vc_dimension}
        given = {name: value for name, value in named.items() if value is not None}
        require(bool(given), "Give `n_hypotheses` or `vc_dimension`: how rich the class is.")
        require(len(given) < 2, "Give `n_hypotheses` or `vc_dimension`, not both.")
        for name, value in given.items():
            require_whole(name, value)
        require_probability("confidence", self.confidence)
        require(
            0 <= self.best_error < 1, f"`best_error` must lie in [0, 1), got {self.best_error!r}."
        )
        require(
            self.best_error == 0 or self.rule == "debiased_square",
            f"{self.rule!r} has no guarantee when the best hypothesis errs: it can be 1/3 worse "
            "than the best for any number of bags. Use 'debiased_square'.",
        )
        require(
            self.best_error == 0 or self.vc_dimension is None,
            "`vc_dimension` has a certificate for a `best_error` of 0 only, because the paper's "
            "bound hides its constant. Give `n_hypotheses`.",
        )

    @property
    def source(self) -> str:
        """Inequality behind the answer."""
        if self.best_error == 0:
            return "the probability q that a wrong hypothesis misses a bag"
        return "Bernstein's or Hoeffding's inequality with exact ranges"

    def __call__(self, n_bags: int, bag_size: int) -> float:
        """Excess error at the given confidence."""
        if self.vc_dimension is not None:
            return realizable_vc_error_certificate(
                n_bags, bag_size, vc_dimension=self.vc_dimension, confidence=self.confidence
            )
        finite: dict[str, Any] = {"n_hypotheses": self.n_hypotheses, "confidence": self.confidence}
        if self.best_error == 0:
            return realizable_error_certificate(n_bags, bag_size, **finite)
        finite["best_error"] = self.best_error
        return debiased_excess_certificate(max(n_bags, 2), bag_size, **finite)

    def bags_needed(self, error: float, bag_size: int) -> int:
        """Smallest number of bags that reduces the excess error to `error`."""
        require(0 < error < 0.5, f"`error` must lie in (0, 1/2), got {error!r}.")
        return smallest_sample_size(lambda n_bags: self(n_bags, bag_size), error)
