"""The bound for a rule, a hypothesis class and a best error, and whether it is certified."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from unbag.planning.certificates import debiased_excess_certificate
from unbag.planning.conditions import check_sample, require, require_probability, require_whole
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
    constant: float = 1.0

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

    @property
    def certified(self) -> bool:
        """Whether every constant is known; otherwise only the shape is."""
        return self.best_error == 0 or self.n_hypotheses is not None

    @property
    def source(self) -> str:
        """Inequality behind the answer."""
        if self.best_error == 0:
            return "the probability q that a wrong hypothesis misses a bag"
        if self.vc_dimension is not None:
            return f"the paper's bound with its hidden constant set to {self.constant:g}"
        return "Bernstein's or Hoeffding's inequality with exact ranges"

    def __call__(self, n_bags: int, bag_size: int) -> float:
        """Excess error at the given confidence."""
        finite: dict[str, Any] = {"n_hypotheses": self.n_hypotheses, "confidence": self.confidence}
        vc: dict[str, Any] = {"vc_dimension": self.vc_dimension, "confidence": self.confidence}
        if self.best_error == 0:
            if self.vc_dimension is None:
                return realizable_error_certificate(n_bags, bag_size, **finite)
            return realizable_vc_error_certificate(n_bags, bag_size, **vc)
        if self.vc_dimension is None:
            finite["best_error"] = self.best_error
            return debiased_excess_certificate(max(n_bags, 2), bag_size, **finite)
        vc |= {"best_error": self.best_error, "constant": self.constant}
        return min(1.0, debiased_excess_bound(n_bags, bag_size, **vc))

    def bags_needed(self, error: float, bag_size: int) -> int:
        """Smallest number of bags that reduces the excess error to `error`."""
        require(0 < error < 0.5, f"`error` must lie in (0, 1/2), got {error!r}.")
        return smallest_sample_size(lambda n_bags: self(n_bags, bag_size), error)


def debiased_excess_bound(
    n_bags: int,
    bag_size: int,
    *,
    vc_dimension: int,
    best_error: float = 0.0,
    confidence: float = 0.95,
    constant: float = 1.0,
) -> float:
    r"""Excess error of the debiased square loss (Theorem 2): a shape with an unknown constant C.

    .. math:: C \left( \frac{k^2 (d \log(kn) + \log(1/\delta))}{n}
              + \sqrt{\frac{L^* k^2 (d \log(kn) + \log(1/\delta))}{n}} \right)

    Examples
    --------
    >>> round(debiased_excess_bound(100_000, 10, vc_dimension=3), 4)
    0.0444
    """
    check_sample(n_bags, vc_dimension, confidence)
    require_whole("bag_size", bag_size)
    require_probability("best_error", best_error, closed=True)
    complexity = vc_dimension * math.log(bag_size * n_bags + 1) - math.log(1 - confidence)
    rate = bag_size**2 * complexity / n_bags
    return constant * (rate + math.sqrt(best_error * rate))
