"""Effects of bags: variation of counts that the features do not explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, special, stats

from unbag.arguments import check_share
from unbag.arrays import Array
from unbag.bags import Bags
from unbag.bags.validation import are_whole_counts
from unbag.errors import BagDataError
from unbag.evaluation.intervals import pearson_tail

N_NODES = 11
LARGEST = 10.0  # deviation of logits beyond which all bags are of one class
SURE = 1e-6


@dataclass(frozen=True)
class BagEffects:
    """Deviation of the effects that bags have on the logits of their instances.

    Attributes
    ----------
    deviation, low, high : float
        Estimate, and the ends of its interval.
    shift : float
        What the average bag adds to the logits: zero for calibrated probabilities.
    p_value : float
        Of the hypothesis that there are no effects: the features explain how counts vary.
    confidence : float
    n_bags : int
    """

    deviation: float
    low: float
    high: float
    shift: float
    p_value: float
    confidence: float
    n_bags: int

    def __str__(self) -> str:
        return (
            f"bag effects on the logit have a standard deviation of {self.deviation:.2g} "
            f"({self.low:.2g} to {self.high:.2g}; {self.n_bags} bags, p = {self.p_value:.2g})"
        )


def estimate_bag_effects(probabilities: Any, bags: Bags, *, confidence: float = 0.95) -> BagEffects:
    r"""Estimate how much bags differ beyond what their instances' features explain, and test it.

    .. math:: \mathrm{logit}\, P(y_{ij} = 1) = z_{ij} + u_i, \qquad u_i \sim N(m, \tau^2)

    where :math:`z` are the logits of the probabilities.

    Parameters
    ----------
    probabilities : array of shape (n_instances,)
        P(y = 1) of each instance, in the order of ``bags.X``, by a model that was not fitted to its
        bag.
    bags : Bags
        Binary, with exact counts. They need not be random groups.
    confidence : float

    Notes
    -----
    The likelihood ratio of a count is exact for every bag size, since a common shift of all logits
    tilts its law: :math:`P(n \mid u) / P(n \mid 0) = e^{un} / \prod_j (1 - p_j + p_j e^u)`. The
    integral over :math:`u` is by adaptive quadrature, the estimate by maximum likelihood, times
    :math:`n / (n - 1)` for the variance. The interval is that of the profile likelihood. The test
    is the score test, which adds up squared residuals of counts; its law is a gamma law with the
    skewness of Poisson-binomial counts.

    Probabilities that are off for single instances, and not only by a common shift, show up as bag
    effects too.
    """
    check_share("confidence", confidence)
    check_exact_counts(bags, "Bag effects are estimated")
    if bags.task != "binary":
        raise BagDataError(f"bags must have one label, got {bags!r}. Take one against the rest.")
    counts = np.rint(bags.proportions * bags.sizes)
    values = np.asarray(probabilities, dtype=float)
    if values.shape != (len(bags.X),) or not ((values >= 0) & (values <= 1)).all():
        raise BagDataError(
            f"probabilities must be {len(bags.X)} numbers from 0 to 1, one per instance, got shape "
            f"{values.shape}. Of two columns pass the second."
        )
    likelihood = _Likelihood(values[bags.rows], counts, bags)
    null_shift = likelihood.shift_without_effects()
    p_value = likelihood.score_test(null_shift)
    shift, deviation = likelihood.maximum(null_shift)
    # Student's law for few bags, as for the variance of normal effects.
    drop = stats.t.ppf((1 + confidence) / 2, bags.n_bags - 1) ** 2 / 2
    low, high = likelihood.interval(shift, deviation, drop)
    scale = float(np.sqrt(bags.n_bags / (bags.n_bags - 1)))
    deviation, low, high = (min(scale * value, LARGEST) for value in (deviation, low, high))
    return BagEffects(deviation, low, high, shift, p_value, confidence, bags.n_bags)


def has_exact_counts(bags: Bags) -> bool:
    """Whether the bags determine exact counts of labels."""
    if bags.task == "amount" or bags.noise_variance is not None:
        return False
    return bool(are_whole_counts(bags.proportions.reshape(bags.n_bags, -1), bags.sizes).all())


def check_exact_counts(bags: Bags, what: str) -> None:
    """Raise if the bags do not determine counts of labels."""
    if not has_exact_counts(bags):
        raise BagDataError(
            f"{what} from exact counts of labels, got {bags!r}. Noisy or rounded proportions do "
            "not determine counts."
        )


class _Likelihood:
    """Log likelihood of counts, up to a constant, by the shift and deviation of bag effects."""

    def __init__(self, chances: Array, counts: Array, bags: Bags) -> None:
        self.counts, self.sizes, self.starts = counts, bags.sizes, bags.starts
        self.logits = special.logit(np.clip(chances, SURE, 1 - SURE))
        self.base = self._sum(np.logaddexp(0, self.logits))
        self.mode = np.zeros(bags.n_bags)

    def _sum(self, values: Array) -> Array:
        return np.add.reduceat(values, self.starts)

    def _moved(self, effects: Array) -> Array:
        return self.logits + np.repeat(effects, self.sizes)

    def _log_ratio(self, effects: Array) -> Array:
        """Log of P(count | effect) / P(count | 0)."""
        return effects * self.counts - self._sum(np.logaddexp(0, self._moved(effects))) + self.base

    def __call__(self, shift: float, deviation: float) -> float:
        """Log likelihood, the effects integrated out."""
        if deviation < 1e-4:
            return float(self._log_ratio(np.full(len(self.counts), shift)).sum())
        spread = self._find_mode(shift, deviation)
        nodes, weights = np.polynomial.hermite.hermgauss(N_NODES)
        terms = []
        for node, weight in zip(nodes, weights, strict=True):
            effects = self.mode + np.sqrt(2) * spread * node
            prior = -0.5 * ((effects - shift) / deviation) ** 2
            terms.append(self._log_ratio(effects) + prior + node**2 + np.log(weight))
        integral = special.logsumexp(terms, axis=0) + np.log(spread / deviation / np.sqrt(np.pi))
        return float(integral.sum())

    def _find_mode(self, shift: float, deviation: float) -> Array:
        """Move `mode` to each bag's likeliest effect, and return the deviation about it."""
        for _ in range(30):
            scores = special.expit(self._moved(self.mode))
            slope = self.counts - self._sum(scores) - (self.mode - shift) / deviation**2
            curvature = self._sum(scores * (1 - scores)) + 1 / deviation**2
            step = np.clip(slope / curvature, -1, 1)
            self.mode = self.mode + step
            if np.abs(step).max() < 1e-6:
                break
        return 1 / np.sqrt(curvature)

    def shift_without_effects(self) -> float:
        """Shift of all logits at which the expected number of positives is the known one."""
        total = float(np.clip(self.counts.sum(), 0.5, self.sizes.sum() - 0.5))

        def excess(shift: float) -> float:
            return float(special.expit(self.logits + shift).sum()) - total

        return float(optimize.brentq(excess, -50, 50))

    def score_test(self, shift: float) -> float:
        """Chance of so large squared residuals of counts, if bags have no effects."""
        scores = special.expit(self.logits + shift)
        variance = scores * (1 - scores)
        second, third, fourth, sixth = (
            self._sum(values)
            for values in (
                variance,
                variance * (1 - 2 * scores),
                variance * (1 - 6 * variance),
                variance * (1 - 30 * variance + 120 * variance**2),
            )
        )
        # The shift was fitted, which takes the variance of the total off, by each bag's share.
        expected = second.sum() - (second**2).sum() / second.sum()
        found = ((self.counts - self._sum(scores)) ** 2).sum() - expected
        spread = (2 * second**2 + fourth).sum()
        cube = (8 * second**3 + 12 * second * fourth + 10 * third**2 + sixth).sum()
        return float(pearson_tail(found / np.sqrt(spread), max(cube, 0) / spread**1.5))

    def maximum(self, start: float) -> tuple[float, float]:
        """Shift and deviation of the greatest likelihood."""
        found = optimize.minimize(
            lambda point: -self(point[0], float(np.clip(np.exp(point[1]), 1e-5, LARGEST))),
            [start, np.log(0.3)],
            method="Nelder-Mead",
            options={"xatol": 1e-3, "fatol": 1e-4, "maxiter": 200},
        )
        if self(start, 0.0) >= -found.fun - 1e-3:  # no more than the optimum's own error
            return start, 0.0
        return float(found.x[0]), float(np.clip(np.exp(found.x[1]), 0, LARGEST))

    def interval(self, shift: float, deviation: float, drop: float) -> tuple[float, float]:
        """Deviations at which the likelihood has fallen by `drop`, the shift refitted."""
        highest = self._profile(shift, deviation)

        def excess(value: float) -> float:
            return highest - self._profile(shift, value) - drop

        low = 0.0 if excess(0.0) <= 0 else float(optimize.brentq(excess, 0.0, deviation, xtol=1e-3))
        far = max(2 * deviation, 0.1)
        while far < LARGEST and excess(far) < 0:
            far *= 2
        if excess(far) < 0:
            return low, LARGEST
        return low, float(optimize.brentq(excess, max(deviation, 1e-4), far, xtol=1e-3))

    def _profile(self, shift: float, deviation: float) -> float:
        reach = 0.2 + 3 * deviation / np.sqrt(len(self.counts))
        found = optimize.minimize_scalar(
            lambda value: -self(value, deviation),
            bounds=(shift - reach, shift + reach),
            method="bounded",
            options={"xatol": 1e-3},
        )
        return -float(found.fun)
