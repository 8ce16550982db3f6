"""`bag_posterior`: label probabilities given the proportion of the bag."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logit, softmax

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.bags.tasks import refuse_amounts
from unbag.errors import BagDataError
from unbag.posterior.labels import exact_posterior, tilted_posterior

# Nobody is surer than this: a score of 0 in a bag of ones would have no posterior at all.
SUREST = 1e-9
EXACT_UP_TO = 1000
FAR = 1e-12  # a range of less probability cannot be distinguished from rounding
WHOLE = 1e-3  # a count this near a whole number is one: proportions are often single precision


def bag_posterior(probabilities: Any, bags: Bags) -> Array:
    r"""Label probabilities given the proportion of the instance's bag.

    Labels that are independent given the features, with probabilities :math:`p_j`, have

    .. math:: q_j = P\Big(Y_j = 1 \Big| \sum_l Y_l = k a\Big)

    once the proportion :math:`a` of their bag is known.

    Parameters
    ----------
    probabilities : array of shape (n_instances,) or (n_instances, n_outputs)
        Probability of the positive label, of each class, or of each label, in the order of
        ``bags.X``. They should come from a model that was not fitted to these bags.
    bags : Bags

    Returns
    -------
    array like `probabilities`

    Notes
    -----
    Posteriors are exact for whole counts of bags of up to 1000 instances, and of several classes in
    bags with few vectors of counts: ten classes in bags of ten, three in bags of 80. Elsewhere the
    odds of all instances of a bag are multiplied by one number, or their class probabilities by one
    number per class, so that the expected counts are the known ones. Posteriors of a bag add up to
    its count. Noise of known variance :math:`s` in the proportion
    makes the count uncertain: with :math:`\mu` its expectation and :math:`V` its variance under the
    model, it is tilted to the posterior mean :math:`\mu + V (V + k^2 s)^{-1} (k a - \mu)`, which is
    exact for Gaussian counts. Where only a range of counts is known, posteriors are averaged over
    it.

    Examples
    --------
    >>> bags = Bags.from_arrays(np.zeros((4, 1)), bags=[0, 0, 1, 1], y=[0.5, 0.5, 1.0, 1.0])
    >>> bag_posterior([0.5, 0.2, 0.5, 0.2], bags).round(3)
    array([0.8, 0.2, 1. , 1. ])
    """
    scores = _checked(probabilities, bags)
    inner = _classes if bags.task == "multiclass" and bags.n_outputs > 2 else _labels
    found = np.empty_like(scores)
    found[bags.rows] = inner(scores[bags.rows], bags)
    found[bags.bag_of_row < 0] = scores[bags.bag_of_row < 0]
    return found if np.ndim(probabilities) > 1 else found[:, 0]


def _checked(probabilities: Any, bags: Bags) -> Array:
    refuse_amounts(bags.task, "bag_posterior")
    values = np.asarray(probabilities, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    if values.shape != (len(bags.X), bags.n_outputs):
        raise BagDataError(
            f"probabilities must have shape ({len(bags.X)}, {bags.n_outputs}), one row per "
            f"instance of bags.X, got {values.shape}."
        )
    if not ((values >= 0) & (values <= 1)).all():
        raise BagDataError("probabilities must lie in [0, 1]. Pass predict_proba, not logits.")
    return values


def _labels(scores: Array, bags: Bags) -> Array:
    """Each column by itself; the second of two classes is what the first leaves."""
    pair = bags.task == "multiclass"
    values = bags.proportions.reshape(bags.n_bags, -1)[:, pair:]
    columns = zip(scores[:, pair:].T, values.T, strict=True)
    found = np.column_stack([_one_label(*column, bags) for column in columns])
    return np.column_stack([1 - found, found]) if pair else found


def _one_label(scores: Array, proportions: Array, bags: Bags) -> Array:
    scores = np.clip(scores, SUREST, 1 - SUREST)
    if bags.ranges is not None:
        return _given_ranges(scores, bags)
    counts, logits = bags.sizes * proportions, logit(scores)
    exact = np.zeros(bags.n_bags, dtype=bool)
    if bags.noise_variance is not None:
        counts = _expected_count(scores, counts, bags)
    else:
        exact = (bags.sizes <= EXACT_UP_TO) & (np.abs(counts - np.rint(counts)) < WHOLE)
    found = np.empty_like(scores)
    for kind, law in ((exact, exact_posterior), (~exact, tilted_posterior)):
        rows = np.repeat(kind, bags.sizes)
        if kind.any():
            found[rows] = law(logits[rows], counts[kind], bags.sizes[kind])
    return found


def _given_ranges(scores: Array, bags: Bags) -> Array:
    """Average over the counts of each range, by their probabilities under the scores."""
    assert bags.ranges is not None
    low, high = bags.ranges.astype(int).T
    parts = np.split(scores, bags.starts[1:])
    chances = [_range_law(part, *ends) for part, *ends in zip(parts, low, high, strict=True)]
    found, known = np.zeros_like(scores), replace(bags, ranges=None)
    for step in range(int((high - low).max()) + 1):
        counts = np.minimum(low + step, high)
        share = np.array([law[step] if step < len(law) else 0.0 for law in chances])
        likely = share > FAR
        rows, here = np.repeat(likely, bags.sizes), known.take(np.flatnonzero(likely))
        given = _one_label(scores[rows], (counts / bags.sizes)[likely], here)
        found[rows] += np.repeat(share[likely], here.sizes) * given
    return found


def _range_law(scores: Array, low: int, high: int) -> Array:
    """Probabilities of the counts from `low` to `high`, which add up to one.

    Counts of large bags are treated as Gaussian.
    """
    if len(scores) > EXACT_UP_TO:
        gaps = np.arange(low, high + 1) - scores.sum()
        return np.asarray(softmax(-0.5 * gaps**2 / (scores * (1 - scores)).sum()))
    n = len(scores) + 1
    turns = np.exp(-2j * np.pi * np.arange(n // 2 + 1) / n)
    law = np.fft.irfft(np.prod(1 + scores[:, None] * (turns - 1), axis=0), n)
    inside = np.clip(law[low : high + 1], 0, None)
    if inside.sum() < FAR:  # rounding: the end that is nearer to what the scores expect
        inside = np.zeros(high - low + 1)
        inside[0 if scores.sum() < low else -1] = 1.0
    return np.asarray(inside / inside.sum())


def _expected_count(scores: Array, counts: Array, bags: Bags) -> Array:
    """Posterior mean of a count that was seen with Gaussian noise; never quite none or all."""
    mean = np.add.reduceat(scores, bags.starts)
    variance = np.add.reduceat(scores * (1 - scores), bags.starts)
    noise = bags.sizes**2 * np.asarray(bags.noise_variance, dtype=float)
    found = mean + variance / (variance + noise) * (counts - mean)
    return np.clip(found, bags.sizes * SUREST, bags.sizes * (1 - SUREST))


def _classes(scores: Array, bags: Bags) -> Array:
    import torch  # imported here: one label needs none of it

    from unbag.bags.batch import BagBatch
    from unbag.posterior.classes import class_posterior, tilted_classes

    scores = np.clip(scores, SUREST, 1)
    scores /= scores.sum(axis=1, keepdims=True)
    counts, noisy = bags.sizes[:, None] * bags.proportions, bags.noise_variance is not None
    counts = _expected_counts(scores, counts, bags) if noisy else np.clip(counts, 0, None)
    counts *= (bags.sizes / counts.sum(axis=1))[:, None]
    law = tilted_classes if noisy else class_posterior
    shares = torch.as_tensor(counts / bags.sizes[:, None])
    batch = BagBatch(shares, torch.as_tensor(bags.sizes), task="multiclass")
    return law(torch.as_tensor(np.log(scores)), batch).numpy()


def _expected_counts(scores: Array, counts: Array, bags: Bags) -> Array:
    """Posterior mean of the counts of classes that were seen with Gaussian noise."""
    sums = [np.add.reduceat(scores * scores[:, [c]], bags.starts) for c in range(scores.shape[1])]
    covariance, own = -np.stack(sums, axis=1), np.arange(scores.shape[1])
    mean = np.add.reduceat(scores, bags.starts)
    covariance[:, own, own] += mean
    noise = bags.sizes**2 * np.asarray(bags.noise_variance, dtype=float)
    total = covariance + noise[:, None, None] * np.eye(len(own)) + 1e-12 * np.eye(len(own))
    gain = np.linalg.solve(total, (counts - mean)[:, :, None])
    found = mean + (covariance @ gain)[:, :, 0]
    return np.clip(found, bags.sizes[:, None] * SUREST, None)
