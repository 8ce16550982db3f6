"""Tests of bags' proportions and sizes; `unbag.check_bags` runs them all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.bags.noise import rounding_grid
from unbag.bags.validation import are_whole_counts
from unbag.evaluation.bag_report import Bias
from unbag.evaluation.intervals import ResidualMoments, pearson_tail, square_cumulants
from unbag.evaluation.residual_moments import noise_of
from unbag.randomness import numpy_generator

MOST_NUMBERS_DRAWN = 10_000_000
MOST_INSTANCES = 10**9 - 1  # that numpy draws from without replacement


class Answer(NamedTuple):
    """P-value, effect size with a description, and the features concerned, worst first.

    `bias` is the consequence for the estimated risk, if it depends on the effect.
    """

    p_value: float
    effect: float
    detail: str
    features: tuple[int, ...] = ()
    bias: Bias | None = None


def outputs_of(bags: Bags) -> tuple[Array, Array, Array]:
    """Proportions (n_bags, n_outputs), sizes as floats, and the prior of each output."""
    proportions = bags.proportions.reshape(bags.n_bags, -1)
    sizes = bags.sizes.astype(float)
    return proportions, sizes, np.clip(sizes @ proportions / sizes.sum(), 1e-9, 1 - 1e-9)


def not_asked(reason: str) -> Answer:
    """Answer of a test that does not apply."""
    return Answer(float("nan"), float("nan"), reason)


def holm(p_values: Array) -> Array:
    """P-values corrected by Holm's method."""
    ranks = np.argsort(p_values)
    grown = np.maximum.accumulate(p_values[ranks] * np.arange(len(ranks), 0, -1))
    adjusted = np.empty(len(ranks))
    adjusted[ranks] = np.minimum(grown, 1.0)
    return adjusted


def _bonferroni(p_values: list[float]) -> float:
    return float(min(1.0, len(p_values) * min(p_values)))


def dispersion(bags: Bags) -> Answer:
    r"""Whether proportions vary as those of random bags do.

    .. math:: \phi = \frac{1}{n - 1} \sum_i \frac{k_i (a_i - p)^2 - k_i s_i}{p (1 - p)}

    is one for random draws, more if instances of a bag are alike, less if bags were balanced. Under
    random draws it has a gamma distribution with the variance and skewness of binomial counts. If
    that gives a small p-value, random bags are simulated, with Laplace noise if noise is known.
    """
    proportions, sizes, prior = outputs_of(bags)

    def squares(drawn: Array) -> Any:
        return (drawn - (drawn @ sizes / sizes.sum())[..., None]) ** 2 @ sizes

    ratios, p_values = [], []
    for a, p in zip(proportions.T, prior, strict=True):
        total, expected, deviation, skewness = _squares(a, sizes, noise_of(bags), p)
        above = float(pearson_tail((total - expected) / deviation, skewness))
        ratios.append(total / expected)
        p_values.append(_asked_of_draws(2 * min(above, 1 - above), squares, a, bags))
    ratio = ratios[int(np.argmin(p_values))]
    detail = f"proportions vary {ratio:.2f} times as much as those of random bags"
    bias: Bias = "upper" if ratio > 1 else "lower"
    return Answer(_bonferroni(p_values), ratio, detail, bias=bias)


def dispersion_within(bags: Bags, groups: Array) -> float:
    """Standardised dispersion about the means of groups of bags; the least over outputs."""
    proportions, sizes, _ = outputs_of(bags)
    noise, found = noise_of(bags), []
    for a in proportions.T:
        parts = []
        for group in np.unique(groups):
            these = groups == group
            prior = np.clip(sizes[these] @ a[these] / sizes[these].sum(), 1e-9, 1 - 1e-9)
            parts.append(_squares(a[these], sizes[these], noise[these], float(prior)))
        total, expected, deviation, _ = np.array(parts).T
        found.append((total - expected).sum() / max(np.sqrt((deviation**2).sum()), 1e-9))
    return float(min(found))


def _squares(
    a: Array, sizes: Array, noise: Array, prior: float
) -> tuple[float, float, float, float]:
    """Sum of k (a - p)^2, and its mean, deviation and skewness in random bags."""
    variance = prior * (1 - prior)
    # A centred label: its risk is its variance, its fourth and sixth moments follow.
    fourth = 1 - 3 * variance
    sixth = 1 - 5 * variance + 5 * variance**2
    law = ResidualMoments(fourth=fourth, sixth=sixth)
    spread, third = square_cumulants(law, np.array(variance), sizes, noise)
    n_bags = len(sizes)
    total = float((sizes * (a - prior) ** 2 - sizes * noise * (1 - sizes / sizes.sum())).sum())
    deviation = np.sqrt(spread.sum() * (n_bags - 1) / n_bags)
    skewness = third.sum() / max(spread.sum(), 1e-200) ** 1.5
    return total, (n_bags - 1) * variance, max(float(deviation), 1e-300), float(skewness)


def _asked_of_draws(
    p_value: float, statistic: Callable[[Array], Any], proportions: Array, bags: Bags
) -> float:
    """Two-sided p-value of a statistic among simulated random bags.

    Asymptotic p-values are too small if positives are few, noise is heavy or some bags are very
    large. Below the resolution of the simulation the asymptotic p-value is used, except under
    noise.
    """
    n_draws = min(2000 * bags.n_outputs, MOST_NUMBERS_DRAWN // bags.n_bags)
    noisy = bags.noise_variance is not None
    whole = noisy or are_whole_counts(proportions[:, None], bags.sizes).all()
    if p_value > 0.05 or not whole or n_draws < 200 or bags.n_instances > MOST_INSTANCES:
        return p_value
    drawn = draw_random_bags(proportions, bags, n_draws)
    found, others = statistic(proportions), statistic(drawn)
    tied = 1e-9 * np.abs(found)
    beyond = min((others <= found + tied).sum(), (others >= found - tied).sum())
    chance = min(1.0, 2 * (beyond + 1) / (n_draws + 1))
    return float(chance if noisy or beyond >= 10 else min(p_value, chance))


def draw_random_bags(proportions: Array, bags: Bags, n_draws: int) -> Array:
    """Proportions of random bags of these sizes, shape (n_draws, n_bags).

    Without noise they have the same number of positives in total; known noise is Laplace noise.
    """
    rng = numpy_generator(0, "random bags")
    if bags.noise_variance is None:
        total = int(np.rint(proportions * bags.sizes).sum())
        return rng.multivariate_hypergeometric(bags.sizes, total, n_draws, "marginals") / bags.sizes
    prior = float(np.clip(proportions @ bags.sizes / bags.sizes.sum(), 0, 1))
    counts = rng.binomial(bags.sizes, prior, (n_draws, bags.n_bags))
    return counts / bags.sizes + rng.laplace(0, np.sqrt(bags.noise_variance / 2), counts.shape)


def one_class(bags: Bags) -> Answer:
    """Whether more bags have one class only than random draws would give."""
    proportions, sizes, prior = outputs_of(bags)
    found = []
    for a, p in zip(proportions.T, prior, strict=True):
        chances = np.where(sizes > 1, p**sizes + (1 - p) ** sizes, 0)
        pure = int((((a == 0) | (a == 1)) & (sizes > 1)).sum())
        found.append((_count_tail(pure, chances), pure, chances.sum()))
    _, pure, expected = min(found)
    detail = f"{pure} bags have only one class; expected were {expected:.1f}"
    return Answer(_bonferroni([f[0] for f in found]), pure / max(expected, 0.1), detail)


def _count_tail(count: int, chances: Array) -> float:
    """P(at least `count` successes), by the binomial distribution of the same mean and variance."""
    mean, variance = chances.sum(), (chances * (1 - chances)).sum()
    if mean <= 0:
        return 1.0 if count == 0 else 0.0
    success = max(1 - variance / mean, 1e-12)
    return float(stats.binom.sf(count - 1, max(round(mean / success), 1), success))


def rounding(bags: Bags) -> Answer:
    """Whether proportions are not counts of instances, or multiples of a coarser step than counts.

    The effect is the relative increase of a proportion's variance by rounding.
    """
    proportions, sizes, prior = outputs_of(bags)
    step, chance = rounding_grid(bags.proportions, bags.sizes)
    whole = are_whole_counts(proportions, sizes)
    if not step:
        if whole.all():
            return Answer(1.0, 0.0, "proportions are whole counts, not rounded further")
        return Answer(0.0, float(1 - whole.mean()), "proportions are no counts")
    added = float(step**2 / 12 * sizes.mean() / (prior * (1 - prior)).mean())
    detail = (
        f"proportions are multiples of {step:g}, as if rounded; rounding adds {100 * added:.1f} % "
        "to their variance"
    )
    return Answer(chance, added, detail)


def suppression(bags: Bags) -> Answer:
    """Whether small counts are missing, as when counts below a threshold are withheld."""
    proportions, sizes, prior = outputs_of(bags)
    found = []
    for a, p in zip(proportions.T, prior, strict=True):
        counts = np.rint(a * sizes)
        for flip in (False, True):
            c, q = (sizes - counts, 1 - p) if flip else (counts, p)
            found += [_missing_below(c, sizes, q, t) for t in (2, 3, 5, 10, 11, 20)]
    p_value, expected, threshold = min(found)
    detail = f"no bag has a count from 1 to {threshold - 1}; expected were {expected:.1f}"
    if p_value > 0.05:
        detail = "small counts are as frequent as expected"
    return Answer(_bonferroni([f[0] for f in found]), expected, detail)


def _missing_below(
    counts: Array, sizes: Array, prior: float, threshold: int
) -> tuple[float, float, int]:
    inside = stats.binom.cdf(threshold - 1, sizes, prior) - stats.binom.pmf(0, sizes, prior)
    inside = np.where(sizes > threshold, np.clip(inside, 0, 1 - 1e-12), 0)
    small_counts = ((counts >= 1) & (counts < threshold) & (sizes > threshold)).any()
    chance = 1.0 if small_counts else float(np.exp(np.log1p(-inside).sum()))
    return chance, float(inside.sum()), threshold


def clipping(bags: Bags) -> Answer:
    """Whether proportions accumulate at their largest or smallest value."""
    proportions, sizes, prior = outputs_of(bags)
    found = []
    for a, p in zip(proportions.T, prior, strict=True):
        for edge in (a.min(), a.max()):
            if not 0 < edge < 1:
                continue
            at_edge = int((np.abs(a - edge) < 1e-12).sum())
            counts = np.rint(edge * sizes)
            whole = np.abs(edge * sizes - counts) < 1e-6 * sizes
            chances = np.where(whole, stats.binom.pmf(counts, sizes, p), 0)
            # One bag is at the edge because it defines it.
            found.append((_count_tail(at_edge - 1, chances), at_edge, edge))
    if not found:
        return Answer(1.0, 0.0, "proportions reach 0 and 1")
    p_value, at_edge, edge = min(found)
    detail = f"{at_edge} bags have the extreme proportion {edge:.3g}"
    # Every distinct value could have been the edge.
    tries = len(found) * len(np.unique(proportions))
    return Answer(min(1.0, tries * p_value), at_edge / len(sizes), detail)


def size_drift(bags: Bags) -> Answer:
    r"""Whether larger bags have larger proportions.

    The score statistic :math:`\sum k_i (k_i - \bar k)(a_i - p)` has mean zero for random bags, and
    its variance is estimated from the residuals.
    """
    proportions, sizes, prior = outputs_of(bags)
    if (sizes == sizes[0]).all():
        return not_asked("all bags have the same size")
    lever = sizes * (sizes - (sizes @ sizes) / sizes.sum())

    def standard(drawn: Array, p: float) -> Any:
        residuals = drawn - p
        scale = (residuals**2 @ sizes) / (len(sizes) - 1)
        return residuals @ lever / np.sqrt(np.maximum(scale * (lever**2 @ (1 / sizes)), 1e-300))

    scores, p_values = [], []
    for a, p in zip(proportions.T, prior, strict=True):
        scores.append(standard(a, p))
        p_value = 2 * float(stats.t.sf(abs(scores[-1]), len(sizes) - 2))
        p_values.append(_asked_of_draws(p_value, partial(standard, p=p), a, bags))
    effect = float(scores[int(np.argmin(p_values))] / np.sqrt(len(sizes)))
    detail = f"size and proportion have correlation {effect:.2f}"
    return Answer(_bonferroni(p_values), effect, detail)
