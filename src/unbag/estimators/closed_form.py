"""Ridge regression of proportions on bag means, also of several reports about the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg, optimize, sparse

from unbag.arrays import Array
from unbag.bags import Bags, Task
from unbag.bags.validation import check_proportions_differ
from unbag.errors import BagDataError
from unbag.evaluation.residual_moments import noise_of
from unbag.evaluation.risk import pairwise_value

LABEL_VARIANCE = 0.25  # the largest that a label can have, and that of a guess
LARGEST_FEATURE = 1e140  # squares, times as many rows as there may be, are finite
NUMBERS_AT_ONCE = 2_000_000  # gathered for bag means
CHUNK = 8192  # rows that are multiplied at once
# Directions whose variance is below this share of the largest are linear dependences of reports.
DEPENDENT = 1e-9


@dataclass(frozen=True, eq=False)
class BagStatistics:
    """Statistics of bags for closed-form learning; `variance` is that of a single label."""

    means: Array
    proportions: Array
    sizes: Array
    noise: Array
    variance: float = LABEL_VARIANCE

    @classmethod
    def of(cls, data: Bags) -> BagStatistics:
        """Statistics of all bags."""
        values, sizes, noise = _averages(data), data.effective_sizes, noise_of(data)
        variance = single_variance(data.task, values, sizes, noise)
        return cls(_bag_means(data), values, sizes, noise, variance)

    def joined(self, other: BagStatistics) -> BagStatistics:
        """Statistics of these bags and others."""
        of_bags = "means", "proportions", "sizes", "noise"
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in of_bags}
        both: dict[str, Any] = {name: np.concatenate(pair) for name, pair in pairs.items()}
        return replace(self, **both)

    def along(self, directions: Array) -> BagStatistics:
        """Statistics of the features projected on directions, one per column."""
        return replace(self, means=self.means @ directions)

    @property
    def weights(self) -> Array:
        """Weight of each bag."""
        return residual_weights(self.sizes, self.noise, self.variance)


def check_sizes(features: Array) -> None:
    """Raise if squares of features exceed double precision."""
    largest = np.maximum(features.max(axis=0), -features.min(axis=0)).astype(float)
    if not (largest < LARGEST_FEATURE).all():
        column = int(np.argmax(largest))
        raise BagDataError(
            f"X must hold numbers below {LARGEST_FEATURE:g} in size, but column {column} reaches "
            f"{largest[column]:.3g}. Rescale it, or take its logarithm."
        )


def single_variance(task: Task, averages: Array, sizes: Array, noise: Array) -> float:
    """Variance of single labels at most, or of amounts by the method of Mandel and Paule.

    Residuals weighted by it have their expected size, so very noisy bags have little influence. One
    for amounts without noise, where weights do not depend on it.
    """
    if task != "amount":
        return LABEL_VARIANCE
    values = averages.reshape(-1)
    if not noise.any() or len(values) < 2:
        return 1.0
    highest = pairwise_value(values - np.average(values, weights=sizes), sizes)
    if highest == 0:
        return 1.0

    def excess(logarithm: float) -> float:
        weights = sizes / (np.exp(logarithm) + sizes * noise)
        squares = (values - np.average(values, weights=weights)) ** 2
        return float(weights @ squares) - len(values) + 1

    low, high = np.log(highest) - 20, np.log(highest) + 1
    return float(np.exp(optimize.brentq(excess, low, high) if excess(low) > 0 else low))


def residual_weights(sizes: Array, noise: Array, variance: float) -> Array:
    """Inverse variance of each bag's residual up to a factor; for exact bags their size.

    A residual has variance (R - B)/k + noise, and R - B is at most the variance of a single label.
    """
    return sizes / (1 + sizes * noise / variance)


def _averages(data: Bags) -> Array:
    return data.proportions.reshape(data.n_bags, -1)


def _bag_means(data: Bags) -> Array:
    """Bag means in double precision, of some bags at a time."""
    step = max(1, int(NUMBERS_AT_ONCE / (data.sizes.mean() * data.X.shape[1])))
    means = []
    for positions in np.split(np.arange(data.n_bags), range(step, data.n_bags, step)):
        part = data.take(positions).gathered()
        instances = np.asarray(part.X, dtype=float)
        if part.weights is not None:
            instances = instances * part.weights[:, None]
        means.append(np.add.reduceat(instances, part.starts) / part.totals[:, None])
    return np.concatenate(means)


def shares_of(data: Bags) -> Array:
    """Share of each instance in the average of its bag, bag by bag."""
    own = 1.0 if data.weights is None else data.weights[data.rows]
    return np.asarray(own / np.repeat(data.totals, data.sizes))


def principal_directions(X: Array) -> Array:
    """Principal directions of the instances, one per column, by decreasing variance."""
    centre = np.mean(X, axis=0, dtype=float)
    covariance = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, len(X), CHUNK):
        part = X[start : start + CHUNK] - centre
        covariance += part.T @ part
    return np.linalg.eigh(covariance)[1][:, ::-1]


class RidgeSolution:
    """Centred, weighted bag means, and the eigenvectors of the smaller of their Gram matrices.

    With `standardise`, the penalty applies to weights of standardised features.
    """

    def __init__(self, bags: BagStatistics, *, standardise: bool = False) -> None:
        self.weights, self.sizes, self.noise = bags.weights, bags.sizes, bags.noise
        self.share = self.weights / self.weights.sum()
        self.mean_x = self.share @ bags.means
        self.mean_y = self.share @ bags.proportions
        root = np.sqrt(self.share)[:, None]
        self.design = root * _deviations(bags.means, self.mean_x)
        lengths = np.sqrt((self.design**2).sum(axis=0))
        self.scale = np.where(lengths > 0, lengths, 1.0) if standardise else np.ones(len(lengths))
        self.design /= self.scale
        self.target = root * (bags.proportions - self.mean_y)
        self.squares, self.left = _eigenvectors(self.design)
        self.rotated = self.left.T @ self.target
        # Penalties are in units of the mean squared singular value, so that scale does not matter.
        self.unit = float(self.squares.mean())

    def leave_one_out(self, penalty: float) -> float:
        """Instance square loss, estimated from each bag's residual under the fit without it.

        A bag estimates it by its size times its squared residual minus noise. Bags are weighted as
        in the fit, so equally without noise.
        """
        shrinkage = self.squares / (self.squares + penalty * self.unit)
        residual = self.target - self.left @ (shrinkage[:, None] * self.rotated)
        # The intercept is refitted too, which is the share a bag has in the weighted mean.
        leverage = self.left**2 @ shrinkage + self.share
        left_out = residual / (np.maximum(1 - leverage, 1e-12) * np.sqrt(self.share))[:, None]
        excess = (left_out**2 - self.noise[:, None]).sum(axis=1)
        return float((self.weights * excess).sum() / (self.weights / self.sizes).sum())

    def coefficients(self, penalty: float) -> tuple[Array, Array]:
        """Weights of the features, and the intercept."""
        scaled = self.rotated / (self.squares + penalty * self.unit)[:, None]
        weights = self.design.T @ (self.left @ scaled) / self.scale[:, None]
        return weights, self.mean_y - self.mean_x @ weights


def _deviations(means: Array, centre: Array) -> Array:
    """Differences from the centre; zero in columns whose means differ by rounding only."""
    found = means - centre
    found[:, np.abs(found).max(axis=0) <= 1e-12 * np.abs(means).max(axis=0)] = 0
    return np.asarray(found)


def _eigenvectors(design: Array) -> tuple[Array, Array]:
    """Squared singular values and left singular vectors, except those that are rounding errors."""
    wide = design.shape[0] <= design.shape[1]
    squares, vectors = np.linalg.eigh(design @ design.T if wide else design.T @ design)
    kept = squares > 1e-12 * max(squares[-1], 1e-300)
    if not kept.any():  # every bag has the same mean: only the intercept can be learned
        return np.ones(1), np.zeros((len(design), 1))
    squares, vectors = squares[kept], vectors[:, kept]
    return squares, vectors if wide else design @ vectors / np.sqrt(squares)


def project_to_simplex(scores: Array) -> Array:
    """Nearest point of the probability simplex, row by row; keeps the order of the classes."""
    descending = -np.sort(-scores, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1) / np.arange(1, scores.shape[1] + 1)
    last = (descending > excess).sum(axis=1) - 1
    return np.maximum(scores - excess[np.arange(len(scores)), last][:, None], 0)


def check_reports(reports: Sequence[Bags]) -> Bags:
    """Return the first report; raise unless all are about the same rows and task."""
    if not reports or not all(isinstance(report, Bags) for report in reports):
        raise BagDataError(f"data must be a Bags, or a sequence of some of them, got {reports!r}.")
    first = reports[0]
    for number, report in enumerate(reports):
        if report.X is not first.X and not np.array_equal(report.X, first.X):
            raise BagDataError(
                f"reports must be about the same rows, but report {number} holds another X than "
                "the first. Put all rows into one array; a report need not cover all of them."
            )
        if (report.task, report.n_outputs) != (first.task, first.n_outputs):
            raise BagDataError(
                f"reports must be of one task, but report {number} is {report.task} with "
                f"{report.n_outputs} outputs, the first {first.task} with {first.n_outputs}."
            )
    return first


def joint_statistics(reports: Sequence[Bags]) -> BagStatistics:
    r"""Independent averages of equal size with the information of all reports.

    Averages over bags :math:`A` and :math:`B` have the covariance :math:`\sigma^2 |A \cap B| / (|A|
    |B|)`, plus known noise. They are multiplied by the inverse root of this matrix, on the
    directions in which it is not zero, and then by a reflection after which the intercept has the
    same coefficient in all of them. Least squares on the result is generalised least squares on the
    reports. Exact reports that contradict each other are an error.
    """
    averaging = sparse.vstack([_averaging(report) for report in reports]).tocsr()
    values = np.concatenate([_averages(report) for report in reports])
    check_proportions_differ(values)
    variances, directions = linalg.eigh(_covariance(averaging, values, reports))
    kept = variances > DEPENDENT * variances[-1]
    _refuse_contradictions(directions[:, ~kept].T @ values, values)
    rows = directions[:, kept].T / np.sqrt(variances[kept])[:, None]
    rows, root = _with_equal_sums(rows)
    means = averaging @ np.asarray(reports[0].X, dtype=float)
    sizes = np.full(len(rows), root**2)
    return BagStatistics(rows @ means / root, rows @ values / root, sizes, np.zeros(len(rows)))


def _averaging(report: Bags) -> sparse.csr_array:
    """Matrix that maps values of all rows to averages of bags."""
    bags = np.repeat(np.arange(report.n_bags), report.sizes)
    shape = report.n_bags, len(report.X)
    return sparse.csr_array((shares_of(report), (bags, report.rows)), shape=shape)


def _covariance(averaging: Any, values: Array, reports: Sequence[Bags]) -> Array:
    """Covariance of all averages, in units of the variance of a single label or amount."""
    noise = np.concatenate([noise_of(report) for report in reports])
    sizes = np.concatenate([report.effective_sizes for report in reports])
    variance = single_variance(reports[0].task, values, sizes, noise)
    return np.asarray((averaging @ averaging.T).toarray() + np.diag(noise / variance))


def _refuse_contradictions(gaps: Array, values: Array) -> None:
    largest = float(np.abs(gaps).max(initial=0.0))
    if largest > 1e-6 * max(float(np.abs(values).max()), 1e-300):
        raise BagDataError(
            "reports contradict each other: sums over the same rows differ, by up to about "
            f"{largest:.3g} in an average. Check the rows of each report. If "
            "averages were rounded or noise was added, pass its variance as noise_variance."
        )


def _with_equal_sums(rows: Array) -> tuple[Array, float]:
    """Reflect rows so that all have the same sum, which is returned too."""
    sums = rows.sum(axis=1)
    root = float(np.linalg.norm(sums)) / np.sqrt(len(rows))
    mirror = sums - root
    length = mirror @ mirror
    if length > 1e-20 * (sums @ sums):
        rows = rows - np.outer(mirror, 2 * (mirror @ rows) / length)
    return rows, root
