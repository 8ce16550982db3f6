"""The paper's distributions, each with its class of hypotheses, ready to be sampled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag.planning.conditions import require, require_probability, require_whole

__all__ = [
    "BagCounts",
    "CoordinateProblem",
    "FiniteProblem",
    "SampledBags",
    "crossed_problem",
    "one_point_problem",
    "separated_problem",
    "shattered_problem",
]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class SampledBags:
    """Instances in bags: `points` (and the hidden `labels`) of shape (bags, instances)."""

    points: NDArray[np.int64]
    labels: NDArray[np.int64]

    @property
    def proportions(self) -> Array:
        """Mean label of each bag, the only thing a learner sees of `labels`."""
        return self.labels.mean(axis=1)


@dataclass(frozen=True)
class BagCounts:
    """Bags reduced to counts: all that rules on hard predictions read.

    Parameters
    ----------
    predicted : array of shape (trials, hypotheses, bags)
        Number of instances each hypothesis predicts 1 for.
    positives : array of shape (trials, 1, bags)
        Number of positive labels.
    """

    predicted: Integers
    positives: Integers


@dataclass(frozen=True)
class FiniteProblem:
    """A distribution on finitely many points, and finitely many hypotheses on them.

    Parameters
    ----------
    name : str
    mass : array of shape (points,)
        Probability of each point.
    positive_rate : array of shape (points,)
        P(y = 1 | x) at each point.
    hypotheses : array of shape (hypotheses, points)
        0/1 prediction of each hypothesis at each point.

    Examples
    --------
    >>> problem = crossed_problem()
    >>> problem.errors.round(3).tolist(), round(problem.prior, 3)
    ([0.667, 0.333], 0.667)
    >>> problem.sample(n_bags=2, bag_size=3, generator=np.random.default_rng(0)).points.shape
    (2, 3)
    """

    name: str
    mass: Array
    positive_rate: Array
    hypotheses: Integers

    def __post_init__(self) -> None:
        require(len(self.hypotheses) > 0, "`hypotheses` is empty: the class needs a hypothesis.")
        shape = (len(self.mass),)
        require(self.positive_rate.shape == shape, "`positive_rate` needs one number per point.")
        require(self.hypotheses.shape[1:] == shape, "`hypotheses` needs one column per point.")
        require(bool(np.isin(self.hypotheses, (0, 1)).all()), "Predictions must be 0 or 1.")
        require(abs(float(self.mass.sum()) - 1) < 1e-9, "`mass` must sum to one.")

    @property
    def prior(self) -> float:
        """P(y = 1)."""
        return float(self.mass @ self.positive_rate)

    @property
    def errors(self) -> Array:
        """Instance error of each hypothesis, exactly."""
        wrong = np.where(self.hypotheses == 1, 1 - self.positive_rate, self.positive_rate)
        return np.asarray(wrong @ self.mass)

    @property
    def mean_predictions(self) -> Array:
        """E f of each hypothesis, exactly."""
        return np.asarray(self.hypotheses @ self.mass)

    @property
    def excess_errors(self) -> Array:
        """Error of each hypothesis above the best one's."""
        return self.errors - self.errors.min()

    def sample(self, n_bags: int, bag_size: int, *, generator: np.random.Generator) -> SampledBags:
        """Draw bags instance by instance."""
        points = generator.choice(len(self.mass), size=(n_bags, bag_size), p=self.mass)
        labels = generator.random((n_bags, bag_size)) < self.positive_rate[points]
        return SampledBags(points, labels.astype(np.int64))

    def sample_counts(
        self, n_trials: int, n_bags: int, *, bag_size: int, generator: np.random.Generator
    ) -> BagCounts:
        """Draw many data sets at once, as counts: the same law as :meth:`sample`."""
        points = generator.multinomial(bag_size, self.mass, size=(n_trials, n_bags))
        positives = generator.binomial(points, self.positive_rate).sum(axis=-1)
        predicted = np.einsum("tbp,hp->thb", points, self.hypotheses, optimize=True)
        return BagCounts(predicted.astype(np.int64), positives[:, None, :])


def one_point_problem(margin: float) -> FiniteProblem:
    r"""One point, :math:`P(y=1) = 1/2 + \varepsilon`, two constant hypotheses.

    Both constants match a bag only when it is pure, which happens with probability
    :math:`(1/2+\varepsilon)^k + (1/2-\varepsilon)^k`: EPRM is blind below about 2^k bags.

    Examples
    --------
    >>> one_point_problem(0.1).errors.tolist()
    [0.6, 0.4]

    References
    ----------
    li2024optimistic, Section 2.2, first example
    """
    require(0 < margin < 0.5, f"`margin` must lie in (0, 1/2), got {margin!r}.")
    return FiniteProblem(
        "one point", np.array([1.0]), np.array([0.5 + margin]), np.array([[0], [1]])
    )


def crossed_problem() -> FiniteProblem:
    r"""Two points where matching proportions is 1/3 worse than predicting well.

    :math:`(x, y)` is uniform on :math:`\{(x_1, 1), (x_1, 0), (x_2, 1)\}`, and
    :math:`f_i = 1\{x = x_i\}`: :math:`f_1` has the right mean and error 2/3, :math:`f_2` the wrong
    mean and error 1/3.

    References
    ----------
    li2024optimistic, Proposition 1 and Appendix A
    """
    return FiniteProblem(
        "crossed", np.array([2 / 3, 1 / 3]), np.array([0.5, 1.0]), np.array([[1, 0], [0, 1]])
    )


def separated_problem() -> FiniteProblem:
    r"""Two equally likely points with labels 0 and 1: the truth is in the class.

    With bags of two, EasyLLP's estimate of the true hypothesis is :math:`\pm 1/2`, a fair coin.

    Examples
    --------
    >>> separated_problem().errors.tolist()
    [0.0, 1.0]

    References
    ----------
    li2024optimistic, Proposition 2
    """
    return FiniteProblem(
        "separated", np.array([0.5, 0.5]), np.array([0.0, 1.0]), np.array([[0, 1], [1, 0]])
    )


def shattered_problem(dimension: int, *, rare_mass: float, margin: float = 0.5) -> FiniteProblem:
    r"""d rare points that the class labels freely, and one common point that is always 0.

    The rare points share `rare_mass` and have :math:`P(y=1) = 1/2 + \gamma`. The best error is
    :math:`m (1/2 - \gamma)`. Over all (m, gamma) of a given best error this is the family on which
    supervised learning attains its optimistic rate :math:`\sqrt{L^* d / n} + d / n`; the worst
    member depends on n.

    Parameters
    ----------
    dimension : int
        d; the class has ``2**d`` hypotheses and VC dimension d.

    Examples
    --------
    >>> problem = shattered_problem(3, rare_mass=0.2, margin=0.25)
    >>> len(problem.hypotheses), round(float(problem.errors.min()), 3)
    (8, 0.05)
    """
    require_whole("dimension", dimension)
    require_probability("rare_mass", rare_mass, closed=True)
    require(0 <= margin <= 0.5, f"`margin` must lie in [0, 1/2], got {margin!r}.")
    mass = np.concatenate([[1 - rare_mass], np.full(dimension, rare_mass / dimension)])
    rate = np.concatenate([[0.0], np.full(dimension, 0.5 + margin)])
    free = (np.arange(2**dimension)[:, None] >> np.arange(dimension)) & 1
    hypotheses = np.concatenate([np.zeros((2**dimension, 1), dtype=np.int64), free], axis=1)
    return FiniteProblem(f"shattered {dimension}", mass, rate, hypotheses)


@dataclass(frozen=True)
class CoordinateProblem:
    r"""The lower bound's problem: uniform bits, the label is one coordinate, seen through noise.

    :math:`x \sim U(\{0,1\}^{2^d})`, :math:`y = x[i]` with probability :math:`1/2 + \gamma`, and the
    class is all coordinates. The labels' coordinate is number 0.

    Parameters
    ----------
    dimension : int
        d; there are ``2**d`` coordinates.
    margin : float
        gamma; 1/2 is the realizable case.

    Examples
    --------
    >>> problem = CoordinateProblem(3, margin=0.5)
    >>> problem.errors.tolist()
    [0.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    >>> bags = problem.sample_counts(2, 5, bag_size=4, generator=np.random.default_rng(0))
    >>> bool((bags.predicted[:, :1] == bags.positives).all())
    True

    References
    ----------
    li2024optimistic, Theorem 4 and Appendix E
    """

    dimension: int
    margin: float = 0.5

    def __post_init__(self) -> None:
        require_whole("dimension", self.dimension)
        require(0 < self.margin <= 0.5, f"`margin` must lie in (0, 1/2], got {self.margin!r}.")

    @property
    def prior(self) -> float:
        """P(y = 1)."""
        return 0.5

    @property
    def errors(self) -> Array:
        """Instance error of each coordinate: 1/2 but for the first."""
        errors = np.full(2**self.dimension, 0.5)
        errors[0] -= self.margin
        return errors

    @property
    def excess_errors(self) -> Array:
        """Error of each coordinate above the first one's."""
        return self.errors - self.errors.min()

    def sample(
        self, n_bags: int, bag_size: int, *, generator: np.random.Generator
    ) -> tuple[ArrayLike, Integers]:
        """Draw bits of shape (bags, instances, 2**d) and labels of shape (bags, instances)."""
        bits = generator.integers(2, size=(n_bags, bag_size, 2**self.dimension), dtype=np.int8)
        flip = generator.random((n_bags, bag_size)) >= 0.5 + self.margin
        return bits, (bits[..., 0] ^ flip).astype(np.int64)

    def sample_counts(
        self, n_trials: int, n_bags: int, *, bag_size: int, generator: np.random.Generator
    ) -> BagCounts:
        """Draw many data sets at once, as counts: the same law as :meth:`sample`."""
        shape = (n_trials, 2**self.dimension, n_bags)
        predicted = generator.binomial(bag_size, 0.5, size=shape)
        truth = predicted[:, :1]
        positives = generator.binomial(truth, 0.5 + self.margin)
        positives = positives + generator.binomial(bag_size - truth, 0.5 - self.margin)
        return BagCounts(predicted, positives)
