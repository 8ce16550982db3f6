"""Several reports about the same rows: averages over bags that overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from unbag.bags import Bags
from unbag.bags.validation import check_proportions_differ
from unbag.errors import BagDataError
from unbag.estimators.bag_gradients import shares_of
from unbag.estimators.closed_form import BagStatistics, amount_variance
from unbag.evaluation.residual_moments import noise_of

Array = NDArray[Any]
# Directions whose variance is below this share of the largest are linear dependences of reports.
DEPENDENT = 1e-9


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
    values = np.concatenate([r.proportions.reshape(r.n_bags, -1) for r in reports])
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
    amounts = reports[0].task == "amount"
    variance = amount_variance(values, sizes, noise) if amounts else 0.25
    return np.asarray((averaging @ averaging.T).toarray() + np.diag(noise / variance))


def _refuse_contradictions(gaps: Array, values: Array) -> None:
    largest = float(np.abs(gaps).max(initial=0.0))
    if largest > 1e-6 * max(float(np.abs(values).max()), 1e-300):
        raise BagDataError(
            "reports contradict each other: sums over the same rows differ, by up to about "
            f"{largest:.3g} in an average. Check that each report covers the rows it says. If "
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
