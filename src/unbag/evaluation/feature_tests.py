"""Tests of the features of bags; `unbag.check_bags` runs them all."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.evaluation.bag_report import Bias
from unbag.evaluation.bag_tests import (
    Answer,
    dispersion_within,
    noise_of,
    not_asked,
    outputs_of,
)
from unbag.evaluation.intervals import pearson_tail

MAX_FEATURES = 500
# Where chance would put fewer pairs of a feature's rarer values into one bag, pairs are counted.
MIN_PAIRS = 5.0
# A share of rows that are in two bags makes intervals too short by half of it at most.
SHARED_ROWS = 0.01
# Rows that occur more often are equal by nature.
MOST_REPEATS = 5
# Share of the labels' variance that informative features explain at least.
LEAST_SIGNAL = 0.1
# In deviations below what random bags have.
LEAST_DISPERSION = 4.0


def homogeneity(bags: Bags) -> Answer:
    """Whether features have the same distribution in every bag.

    The ranks of each feature are compared between bags by an analysis of variance, with false
    discoveries controlled by Benjamini and Hochberg; many features are sampled, and those constant
    within bags are left to `one_value`. The variance between bags has a gamma distribution with the
    variance and skewness of the ranks. If almost all ranks are tied, pairs of rarer values within
    bags are counted instead, with a Poisson distribution.
    """
    features = _features(bags)
    asked = np.setdiff1d(np.arange(features.shape[1]), _with_one_value(features, bags))
    if len(asked) > MAX_FEATURES:
        asked = np.sort(np.random.default_rng(0).permutation(asked)[:MAX_FEATURES])
    asked = asked[np.ptp(features[:, asked], axis=0) > 0]
    spread = bags.n_instances - bags.n_bags
    if spread < 2:
        return not_asked("bags of one cannot be compared")
    if not len(asked):
        return not_asked("no feature varies")
    p_values, shares = _compare_between(features[:, asked], bags, spread)
    adjusted = stats.false_discovery_control(p_values)
    different = int((adjusted < 0.05).sum())
    detail = (
        f"{different} of {len(p_values)} features differ between bags; the largest share of a "
        f"feature's variance that lies between bags is {max(shares.max(), 0):.3f}"
    )
    worst = asked[np.argsort(-shares, kind="stable")[:different]]
    return Answer(float(adjusted.min()), float(shares.max()), detail, tuple(worst.tolist()))


def one_value(bags: Bags) -> Answer:
    """Whether numbers are constant within bags, as those computed from labels are.

    The effect is their largest rank correlation with the proportions, or zero if chance explains
    it. Features of two values are mostly categories and left to `homogeneity`, unless bags that
    share a value vary less than by chance, so that it was made from their labels.
    """
    features = _features(bags)
    found = _with_one_value(features, bags)
    spread = bags.n_instances - bags.n_bags
    if spread < 2 or not len(found):
        return not_asked("no numeric column is constant within bags")
    p_values, _ = _compare_between(features[:, found], bags, spread)
    ties = _rank_correlations(features[np.ix_(bags.starts, found)], bags)
    chance = 2 * stats.t.sf(ties * np.sqrt((bags.n_bags - 2) / (1 - ties**2)), bags.n_bags - 2)
    related = ties.size * chance.min() < 0.05
    detail = f"{len(found)} of {features.shape[1]} features are constant within bags; " + (
        f"their rank correlation with the proportions is up to {ties.max():.2f}"
        if related
        else "none is correlated with the proportions"
    )
    worst = found[np.argsort(-ties.max(axis=1), kind="stable")]
    p_value = min(1.0, len(found) * float(p_values.min()))
    effect = float(ties.max()) if related else 0.0
    bias: Bias | None = None if related else "upper"
    return Answer(p_value, effect, detail, tuple(worst.tolist()), bias)


def _features(bags: Bags) -> Array:
    """All features, bag by bag."""
    return np.asarray(bags.X).reshape(len(bags.X), -1)[bags.rows]


def _with_one_value(features: Array, bags: Bags) -> Array:
    """Features, other than ordinary categories, that are constant within every bag."""
    low, high = (end.reduceat(features, bags.starts, axis=0) for end in (np.minimum, np.maximum))
    same = np.flatnonzero((low == high).all(axis=0))
    chosen = [_is_number_or_leak(low[:, number], bags) for number in same]
    return same[np.array(chosen, dtype=bool)]


def _is_number_or_leak(values: Array, bags: Bags) -> bool:
    """Whether a constant of bags has many values, or two that are too informative about labels."""
    n_values = len(np.unique(values))
    if n_values != 2 or bags.task == "amount":
        return n_values > 2
    too_little = dispersion_within(bags, values) < -LEAST_DISPERSION
    # Unless all bags were balanced.
    return too_little and dispersion_within(bags, np.zeros(bags.n_bags)) > -LEAST_DISPERSION / 2


def _rank_correlations(values: Array, bags: Bags) -> Array:
    """Absolute rank correlation of each feature with each proportion, by bag."""
    columns = np.hstack([values, bags.proportions.reshape(bags.n_bags, -1)])
    ranks = stats.rankdata(columns, axis=0)
    ranks -= ranks.mean(axis=0)
    ranks /= np.maximum(np.sqrt((ranks**2).sum(axis=0)), 1e-30)
    n_features = values.shape[1]
    return np.minimum(np.abs(ranks[:, :n_features].T @ ranks[:, n_features:]), 1 - 1e-12)


def _compare_between(features: Array, bags: Bags, spread: int) -> tuple[Array, Array]:
    """P-value of each feature, and the share of its variance between bags."""
    ranks = stats.rankdata(features, axis=0)
    values = (ranks - ranks.mean(axis=0)) / ranks.std(axis=0)
    means = np.add.reduceat(values, bags.starts, axis=0) / bags.sizes[:, None]
    between = (bags.sizes[:, None] * means**2).sum(axis=0)
    n_rows = len(ranks)
    p_values = _between_tail(values, between, bags.sizes.astype(float))
    for number, own in enumerate(ranks.T):
        codes = (2 * own).astype(int)
        counts = np.bincount(codes)
        expected = _pairs(n_rows - counts.max()) * _chance_of_one_bag(bags)
        if expected < MIN_PAIRS:
            rare = np.add.reduceat((codes != counts.argmax()).astype(int), bags.starts)
            p_values[number] = stats.poisson.sf(_pairs(rare).sum() - 1, expected)
    shares = (between - (bags.n_bags - 1) * (n_rows - between) / spread) / n_rows
    return p_values, shares


def _between_tail(values: Array, between: Array, sizes: Array) -> Array:
    """P-value of the sum of k_i mean_i^2, for standardised values in random bags."""
    squares = values**2
    third, fourth, sixth = (squares * values).mean(0), (squares**2).mean(0), (squares**3).mean(0)
    kappa4, kappa6 = fourth - 3, sixth - 15 * fourth - 10 * third**2 + 30
    n_bags, n_rows = len(sizes), len(values)
    variance = np.maximum(2 * n_bags + kappa4 * (1 / sizes).sum(), 1e-12)
    cube = 8 * n_bags + (12 * kappa4 + 10 * third**2) * (1 / sizes).sum()
    cube = cube + kappa6 * (sizes**-2.0).sum()
    # Rows that are dealt out without replacement scatter less, by one bag in all.
    mean, kept = (n_bags - 1) * n_rows / (n_rows - 1), (n_bags - 1) / n_bags
    return pearson_tail((between - mean) / np.sqrt(kept * variance), cube / variance**1.5)


def _pairs(n_rows: Any) -> Any:
    return n_rows * (n_rows - 1) / 2


def _chance_of_one_bag(bags: Bags) -> float:
    """Probability that two rows share a bag, if bags are random."""
    return float(_pairs(bags.sizes.astype(float)).sum() / _pairs(float(bags.n_instances)))


def duplicates(bags: Bags) -> Answer:
    """Whether the same instance is in more than one bag.

    If some feature is nearly unique, equal rows are the same instance, and the p-value is that of
    as many equal pairs of independent features; shares of rows below a threshold raise nothing. If
    rows repeat by nature, see `_copies_among_repeats`.
    """
    features = np.ascontiguousarray(_features(bags))
    rows = features.view(np.dtype((np.void, features.dtype.itemsize * features.shape[1])))
    code = np.unique(rows.reshape(-1), return_inverse=True)[1].reshape(-1)
    owner = np.repeat(np.arange(bags.n_bags), bags.sizes)
    counts = [np.unique(column, return_counts=True)[1] for column in features.T[:MAX_FEATURES]]
    if max(len(c) for c in counts) < len(features) / 2:
        return _copies_among_repeats(code, owner, bags)
    pairs = np.unique(np.stack([code, owner]), axis=1)[0]
    bags_of_row = np.bincount(pairs)
    shared = int((bags_of_row > 1).sum())
    collisions = np.prod([((c / len(features)) ** 2).sum() for c in counts])
    expected = len(features) ** 2 / 2 * collisions
    share = float(np.isin(code, np.flatnonzero(bags_of_row > 1)).mean())
    detail = f"{shared} instances are in more than one bag, {100 * share:.1f} % of all rows"
    if share < SHARED_ROWS:
        return Answer(1.0, share, detail if not shared else f"{detail}: too few to matter")
    return Answer(float(stats.poisson.sf(shared - 1, expected)), share, detail)


def _copies_among_repeats(code: Array, owner: Array, bags: Bags) -> Answer:
    """Whether equal rows share a bag less often than in random bags.

    Rows that are equal by nature share a bag as often as others; an instance and its copy in
    another bag never do. Pairs of rows that occur few times have a Poisson distribution.
    """
    repeats = np.bincount(code)
    rare = np.flatnonzero((repeats >= 2) & (repeats <= MOST_REPEATS))
    n_pairs = float(_pairs(repeats[rare]).sum())
    expected = n_pairs * _chance_of_one_bag(bags)
    if expected < MIN_PAIRS:
        return not_asked("too few rows are equal to detect copies")
    chosen = np.isin(code, rare)
    together = np.unique(np.stack([code[chosen], owner[chosen]]), axis=1, return_counts=True)[1]
    inside = float(_pairs(together).sum())
    share = max(0.0, 2 * n_pairs * (1 - inside / expected) / bags.n_instances)
    detail = f"{inside:.0f} pairs of equal rows share a bag; expected were {expected:.1f}"
    if share < SHARED_ROWS:
        return Answer(1.0, share, detail)
    return Answer(float(stats.poisson.cdf(inside, expected)), share, detail)


def signal(bags: Bags) -> Answer:
    """Whether the features predict the proportions, as they do unless joined wrongly.

    Proportions are regressed on the leading principal components of the bag means. Raised if the
    regression is not significant, and its F statistic is smaller than that of features which
    explain a tenth of the labels' variance (less for rare labels or known noise).
    """
    features = _features(bags)
    features = features[:, :: max(1, -(-features.shape[1] // MAX_FEATURES))].astype(float)
    means = np.add.reduceat(features, bags.starts, axis=0) / bags.sizes[:, None]
    design = np.sqrt(bags.sizes)[:, None] * _standardised(means, bags.sizes)
    vectors, singular, _ = np.linalg.svd(design, full_matrices=False)
    n_parts = min(int((singular > 1e-9 * max(singular[0], 1e-300)).sum()), bags.n_bags // 5)
    n_rest = bags.n_bags - n_parts - 1
    if n_parts < 1 or singular[0] < 1e-9:
        return not_asked("no feature varies, or there are too few bags")
    target = bags.proportions.reshape(bags.n_bags, -1)
    target = np.sqrt(bags.sizes)[:, None] * (target - np.average(target, 0, bags.sizes))
    share = (vectors[:, :n_parts].T @ target) ** 2
    share = share.sum(axis=0) / np.maximum((target**2).sum(axis=0), 1e-300)
    ratio = share / np.maximum(1 - share, 1e-12) * n_rest / n_parts
    least = _least_signal(bags)
    p_values = stats.ncf.cdf(ratio, n_parts, n_rest, bags.n_bags * least / (1 - least))
    found = stats.f.sf(ratio, n_parts, n_rest) * len(ratio)
    explained = max(0.0, float((1 - (1 - share) * (bags.n_bags - 1) / n_rest).max()))
    what = "averages" if bags.task == "amount" else "proportions"
    detail = f"bag means of the features explain {100 * explained:.0f} % of the {what}"
    return Answer(1.0 if found.min() <= 0.05 else float(p_values.max()), explained, detail)


def _least_signal(bags: Bags) -> Array:
    """Explained share of each output's proportions under the alternative."""
    if bags.task == "amount":
        return np.array([LEAST_SIGNAL])
    _, sizes, prior = outputs_of(bags)
    variance = prior * (1 - prior)
    noise = float(np.average(sizes * noise_of(bags), weights=sizes))
    return LEAST_SIGNAL * 4 * variance**2 / (variance + noise)


def _standardised(values: Array, weights: Array) -> Array:
    centred = values - np.average(values, 0, weights)
    deviations = np.sqrt(np.average(centred**2, 0, weights))
    return centred / np.where(deviations > 1e-9 * np.abs(values).max(0), deviations, np.inf)
