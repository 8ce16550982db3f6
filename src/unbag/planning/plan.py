"""`plan_bags`: how many bags of which size for which error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from unbag.errors import ConditionError
from unbag.planning.conditions import require, require_whole
from unbag.planning.guarantee import Guarantee

USUAL_BAG_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class PlanRow:
    """One line of a plan: this many bags of this size reach this excess error."""

    bag_size: int
    n_bags: int
    error: float

    @property
    def n_instances(self) -> int:
        """Instances in all bags."""
        return self.n_bags * self.bag_size


@dataclass(frozen=True)
class BagPlan:
    """An answer of :func:`plan_bags`, with the alternatives around it.

    Parameters
    ----------
    asked : {"n_bags", "error", "bag_size"}
        What was computed.
    answer : PlanRow
    table : tuple of PlanRow
        Neighbouring choices, the answer among them.
    guarantee : Guarantee
        The assumptions.
    """

    asked: str
    answer: PlanRow
    table: tuple[PlanRow, ...]
    guarantee: Guarantee

    @property
    def n_bags(self) -> int:
        """Number of bags of the answer."""
        return self.answer.n_bags

    @property
    def bag_size(self) -> int:
        """Bag size of the answer."""
        return self.answer.bag_size

    @property
    def error(self) -> float:
        """Excess error of the answer, above the best hypothesis of the class."""
        return self.answer.error

    def __str__(self) -> str:
        """The answer in one sentence."""
        answer = self.answer
        return (
            f"Certified: {answer.n_bags} bags of {answer.bag_size} ({answer.n_instances} "
            f"instances) bring the excess error to {answer.error:.3g} with confidence "
            f"{self.guarantee.confidence:g}, by {self.guarantee.source}."
        )


def plan_bags(
    error: float | None = None,
    bag_size: int | None = None,
    *,
    n_bags: int | None = None,
    n_instances: int | None = None,
    n_hypotheses: int | None = None,
    vc_dimension: int | None = None,
    best_error: float = 0.0,
    confidence: float = 0.95,
    rule: str = "debiased_square",
    bag_sizes: Iterable[int] = USUAL_BAG_SIZES,
) -> BagPlan:
    """Compute how many bags are needed, which bag size is best, or which error the data allow.

    Parameters
    ----------
    error : float, optional
        Excess error wanted: above `best_error`, the error of the best hypothesis of the class.
    bag_size : int, optional
        Instances per bag; all bags equal.
    n_bags : int, optional
        Bags at hand. With `bag_size`: which error do they allow?
    n_instances : int, optional
        Instances at hand, the bag size being free: which of `bag_sizes` gives the least error? With
        `error`: which is the largest that still reaches it?
    n_hypotheses, vc_dimension : int
        How rich the class is: exactly one of the two. `vc_dimension` needs a `best_error` of 0.
    best_error : float
        Error of the best hypothesis of the class; 0 means that the truth is in it.
    confidence : float
        Probability 1 - delta with which the answer holds.
    rule : {"debiased_square", "eprm", "proportion_square"}
        Which rule is minimised exactly.
    bag_sizes : iterable of int
        Sizes to choose from when `n_instances` is given.

    Returns
    -------
    BagPlan

    Notes
    -----
    Certificates hold for every distribution, so they ask for more bags than a typical one needs.

    Examples
    --------
    >>> plan_bags(error=0.01, bag_size=20, n_hypotheses=1000).n_bags
    55
    >>> round(plan_bags(n_bags=55, bag_size=20, n_hypotheses=1000).error, 4)
    0.0099
    >>> plan_bags(error=0.05, n_instances=5000, n_hypotheses=1000).bag_size
    200
    """
    guarantee = Guarantee(
        rule=rule,
        n_hypotheses=n_hypotheses,
        vc_dimension=vc_dimension,
        best_error=best_error,
        confidence=confidence,
    )
    if n_instances is not None:
        require(n_bags is None and bag_size is None, "`n_instances` leaves bags and size free.")
        return _plan_size(guarantee, n_instances, error, tuple(bag_sizes))
    if bag_size is None:
        raise ConditionError("Give `bag_size`, or `n_instances` to have it chosen.")
    require_whole("bag_size", bag_size)
    require(
        (error is None) != (n_bags is None), "Give `error` or `n_bags`: the other is the answer."
    )
    if n_bags is not None:
        require_whole("n_bags", n_bags)
        return _plan_error(guarantee, int(n_bags), int(bag_size))
    return _plan_number(guarantee, float(error or 0.0), int(bag_size))


def _row(guarantee: Guarantee, n_bags: int, bag_size: int) -> PlanRow:
    return PlanRow(bag_size, n_bags, guarantee(n_bags, bag_size))


def _plan_number(guarantee: Guarantee, error: float, bag_size: int) -> BagPlan:
    sizes = sorted({max(1, bag_size // 10), max(1, bag_size // 3), bag_size, 3 * bag_size})
    rows = tuple(_row(guarantee, guarantee.bags_needed(error, size), size) for size in sizes)
    return BagPlan("n_bags", rows[sizes.index(bag_size)], rows, guarantee)


def _plan_error(guarantee: Guarantee, n_bags: int, bag_size: int) -> BagPlan:
    numbers = sorted({max(1, n_bags // 4), max(1, n_bags // 2), n_bags, 2 * n_bags, 4 * n_bags})
    rows = tuple(_row(guarantee, n, bag_size) for n in numbers)
    return BagPlan("error", rows[numbers.index(n_bags)], rows, guarantee)


def _plan_size(
    guarantee: Guarantee, n_instances: int, error: float | None, bag_sizes: tuple[int, ...]
) -> BagPlan:
    require_whole("n_instances", n_instances)
    sizes = [size for size in sorted(bag_sizes) if 1 <= size <= n_instances]
    require(bool(sizes), "`bag_sizes` holds no size between 1 and `n_instances`.")
    rows = tuple(_row(guarantee, n_instances // size, size) for size in sizes)
    reached = [row for row in rows if error is not None and row.error <= error]
    best = min(rows, key=lambda row: row.error)
    require(
        error is None or bool(reached),
        f"{n_instances} instances reach an excess error of {best.error:.3g} at best (bags of "
        f"{best.bag_size}), not {error}.",
    )
    answer = max(reached, key=lambda row: row.bag_size) if reached else best
    return BagPlan("bag_size", answer, rows, guarantee)
