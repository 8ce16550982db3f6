"""Convex weights of models, from cross-fitted scores of bags alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.special import expit, logit

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.estimators.count_regression import EFFECTS, ROUNDING
from unbag.evaluation.residual_moments import noise_of
from unbag.randomness import numpy_generator

# Fewer bags cannot show whether a model is better than the prior.
MIN_TO_SCREEN = 100
# How many bags a first guess of weights is worth, in units of a model's risk and of a log
# likelihood: found on tables for tuning, a gain where bags are few and little elsewhere.
RISK_GUESS, LIKELIHOOD_GUESS = 20, 10
# Prior probability that features predict the label; the deviation of the
# slope of a mixture that learned it; and what difference of bag means is rounding.
USEFUL, SLOPE_DEVIATION, SAME = 0.8, 0.25, 1e-6


@dataclass(frozen=True, eq=False)
class CrossFit:
    """What weights are made of: sums over bags of scores that did not see them.

    Attributes
    ----------
    counts : array of shape (n_bags, n_outputs)
    sizes, folds : array of shape (n_bags,)
    sums : array of shape (n_bags, n_models, n_outputs)
        Sums of scores.
    products : array of shape (n_bags, n_models, n_models, n_outputs)
        Sums of products of two models' scores.
    noise : array of shape (n_bags,)
        Variance of the noise in the proportions.
    """

    counts: Array
    sizes: Array
    folds: Array
    sums: Array
    products: Array
    noise: Array

    @classmethod
    def of(cls, scores: Array, bags: Bags, folds: Array) -> CrossFit:
        """From scores of shape (n_models, n_instances, n_outputs), bag by bag."""
        by_row = scores.transpose(1, 0, 2)
        counts = bags.sizes[:, None] * bags.proportions.reshape(bags.n_bags, -1)
        sums = np.add.reduceat(by_row, bags.starts)
        rows = [np.add.reduceat(by_row * by_row[:, [m]], bags.starts) for m in range(len(scores))]
        products = np.stack(rows, axis=1)
        return cls(counts, bags.sizes, folds, sums, products, noise_of(bags))

    def take(self, positions: Array) -> CrossFit:
        """Some of the bags."""
        return CrossFit(*(part[positions] for part in vars(self).values()))

    def only(self, models: Any) -> CrossFit:
        """Some of the models."""
        products = self.products[:, models][:, :, models]
        return replace(self, sums=self.sums[:, models], products=products)

    @property
    def n_models(self) -> int:
        """Number of models."""
        return int(self.sums.shape[1])


def risk_matrix(data: CrossFit) -> Array:
    r"""Matrix :math:`Q` for which :math:`w^\top Q w` is the pairwise risk of the mixture.

    With :math:`r_{im}` the residual of model :math:`m` in bag :math:`i`, a fold of :math:`n` bags
    has

    .. math:: Q_{ml} = \bar r_m \bar r_l + \frac{1 - 1/N}{n - 1} \sum_i k_i (r_{im} - \bar r_m)
              (r_{il} - \bar r_l),

    and :math:`Q` is the average over folds, by bags. Noise adds the same to all entries, which
    changes no choice of weights that add up to one.

    Notes
    -----
    For weights that do not depend on the bags, unbiased for the square risk of the mixture up to
    that constant, if bags are random draws.
    """
    residuals = (data.sums - data.counts[:, None]) / data.sizes[:, None, None]
    found = np.zeros((data.n_models, data.n_models))
    for fold in np.unique(data.folds):
        own = data.folds == fold
        found += own.mean() * _risk_matrix(residuals[own], data.sizes[own].astype(float))
    return found


def _risk_matrix(residuals: Array, sizes: Array) -> Array:
    mean = np.einsum("i,imc->mc", sizes / sizes.sum(), residuals)
    centred = residuals - mean
    spread = np.einsum("i,imc,ilc->ml", sizes, centred, centred)
    # A fold of one bag has no standard deviation.
    return mean @ mean.T + (1 - 1 / sizes.sum()) * spread / max(len(sizes) - 1, 1)


def risk_weights(matrix: Array, *, guess: Array | None = None, strength: float = 0.0) -> Array:
    r"""Weights :math:`w \ge 0` that add up to one and minimise :math:`w^\top Q w + s |w - w_0|^2`.

    :math:`Q` is `matrix` and :math:`s` is `strength`. The `guess` :math:`w_0`, which weights are
    drawn to, is by default that all are equal.

    Examples
    --------
    >>> risk_weights(np.diag([1.0, 3.0])).round(3)
    array([0.75, 0.25])
    >>> risk_weights(np.diag([1.0, 3.0]), guess=np.array([0.0, 1.0]), strength=4.0).round(3)
    array([0.25, 0.75])
    """
    n_models = len(matrix)
    if guess is None:
        guess = np.full(n_models, 1 / n_models)
    values, vectors = np.linalg.eigh(matrix)
    root = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    pull = np.sqrt(strength)
    # The last row makes weights add up to one, up to a scale that is divided out.
    heavy = 1e3 * np.sqrt(max(values[-1] + strength, 1e-12))
    design = np.vstack([root, pull * np.eye(n_models), np.full(n_models, heavy)])
    weights, _ = nnls(design, np.r_[np.zeros(n_models), pull * guess, heavy])
    return np.asarray(weights / weights.sum())


def likelihood_weights(
    data: CrossFit, *, guess: Array | None = None, strength: float = 0.0
) -> Array:
    r"""Weights of the mixture under which held-out counts are likeliest, drawn to a first guess.

    A count is Gaussian with mean :math:`m_i = \sum_j f_j` and variance
    :math:`v_i + \tau^2 v_i^2 + k_i^2 s_i`, where :math:`v_i = \sum_j f_j (1 - f_j)` and
    :math:`\tau^2`, the variance of an effect of the bag on its logits, is the likeliest. The mean
    of minus the log likelihood gets the penalty of `risk_weights`.
    """
    weights = np.full(data.n_models, 1 / data.n_models)
    guess = weights if guess is None else guess
    for _ in range(3):
        found = minimize(
            _penalised,
            weights,
            args=(data, _likeliest_effect(weights, data), guess, strength),
            jac=True,
            method="SLSQP",
            bounds=[(0, 1)] * data.n_models,
            constraints={
                "type": "eq",
                "fun": lambda w: w.sum() - 1,
                "jac": lambda w: np.ones_like(w),
            },
            options={"maxiter": 100, "ftol": 1e-8},
        )
        weights = np.clip(found.x, 0, 1) / np.clip(found.x, 0, 1).sum()
    return weights


def _penalised(
    weights: Array, data: CrossFit, effect: float, guess: Array, strength: float
) -> tuple[float, Array]:
    value, slope = _minus_log(weights, data, effect)
    away, scale = weights - guess, 1 + strength  # for a minimiser that wants values near one
    return (value + strength * float(away @ away)) / scale, (slope + 2 * strength * away) / scale


def _minus_log(weights: Array, data: CrossFit, effect: float) -> tuple[float, Array]:
    mean = np.einsum("m,imc->ic", weights, data.sums)
    half = np.einsum("imlc,l->imc", data.products, weights)
    own = np.maximum(mean - np.einsum("m,imc->ic", weights, half), 1e-9)
    noise = (data.sizes**2 * data.noise)[:, None]
    variance = np.maximum(own + effect * own**2 + noise, ROUNDING)
    gap = data.counts - mean
    value = 0.5 * (gap**2 / variance + np.log(variance))
    by_variance = 0.5 * (1 / variance - gap**2 / variance**2) * (1 + 2 * effect * own)
    slope = np.einsum("ic,imc->m", by_variance, data.sums - 2 * half)
    slope -= np.einsum("ic,imc->m", gap / variance, data.sums)
    return float(value.sum()) / len(gap), slope / len(gap)


def _likeliest_effect(weights: Array, data: CrossFit) -> float:
    return float(min(EFFECTS, key=lambda effect: _minus_log(weights, data, effect)[0]))


def better_than_prior(data: CrossFit) -> Array:
    """Under which models held-out counts are at least as likely as under the rate of other bags.

    If under none, the best of them.
    """
    prior = np.empty_like(data.counts, dtype=float)
    for fold in np.unique(data.folds):
        own = data.folds == fold
        others = ~own if not own.all() else own
        prior[own] = data.counts[others].sum(axis=0) / data.sizes[others].sum()
    sums = (data.sizes[:, None] * prior)[:, None]
    constant = replace(data, sums=sums, products=(sums * prior[:, None])[:, :, None])
    losses = np.array([_minus_log_alone(data.only([m])) for m in range(data.n_models)])
    kept = losses <= _minus_log_alone(constant) * (1 + 1e-6)
    return kept if kept.any() else losses == losses.min()


def _minus_log_alone(data: CrossFit) -> float:
    """Minus the log likelihood of held-out counts under one model."""
    alone = np.ones(1)
    return _minus_log(alone, data, _likeliest_effect(alone, data))[0]


def bagged_weights(
    data: CrossFit, *, by: str, seed: int, n_draws: int = 40, guess: Array | None = None
) -> Array:
    """Average of the weights that are best for draws of the bags, with replacement.

    One choice of weights follows the noise of few bags. The average shares the weight among models
    that the bags cannot distinguish, and leaves none to those that are clearly worse. By likelihood
    and from a hundred bags on, models that are worse than the rate of the other bags take no part.
    By risk, what bags allow to be chance goes to the constant model: see `shrunk_to_constant`.

    `by` is "risk" or "likelihood". The `guess` is the weights before any bag was seen, up to a
    factor. The more bags, the less they count; by default not at all.
    """
    rng, found, whole = numpy_generator(seed, "weights"), [], data
    kept, n_bags = np.arange(data.n_models), len(data.sizes)
    # The risk of a useful model is easily above that of the rate by chance, its likelihood is not.
    if by == "likelihood" and n_bags >= MIN_TO_SCREEN:
        kept = np.flatnonzero(better_than_prior(data))
    data, weights = data.only(kept), np.zeros(data.n_models)
    first, per_bag = None, 0.0
    if guess is not None and guess[kept].sum() > 0:
        first, per_bag = guess[kept] / guess[kept].sum(), 1 / n_bags
    for _ in range(n_draws):
        drawn = data.take(np.sort(rng.integers(0, n_bags, n_bags)))
        if by == "risk":
            matrix = risk_matrix(drawn)
            strength = RISK_GUESS * per_bag * max(float(np.median(np.diag(matrix))), 0)
            found.append(risk_weights(matrix, guess=first, strength=strength))
        else:
            strength = LIKELIHOOD_GUESS * per_bag
            found.append(likelihood_weights(drawn, guess=first, strength=strength))
    weights[kept] = np.mean(found, axis=0)
    return shrunk_to_constant(weights, whole) if by == "risk" else weights


def shrunk_to_constant(weights: Array, data: CrossFit) -> Array:
    r"""Move weight to the constant model, by the probability that the mixture learned nothing.

    Regress held-out proportions on the mixture's bag means, both less what the constant predicts.
    The slope :math:`s`, with standard error :math:`\sigma`, is about :math:`N(0, \sigma^2)` if the
    mixture learned nothing and :math:`N(1, \sigma^2 + \tau^2)` if it did. The mixture keeps the
    probability of the second, times the slope expected then if that is below one. Without a
    constant model nothing moves.
    """
    means = data.sums / data.sizes[:, None, None]
    n_folds = len(np.unique(data.folds))
    constant, freedom = _constant_model(means, data.folds), len(means) - n_folds - 1
    if constant is None or freedom < 1 or weights[constant] > 1 - SAME:
        return weights
    own = np.where(np.arange(len(weights)) == constant, 0, weights)
    own /= own.sum()
    root = np.sqrt(data.sizes)[:, None]
    base = means[:, constant]
    predicted = root * _centred(np.einsum("m,imc->ic", own, means) - base, data.folds)
    true = root * _centred(data.counts / data.sizes[:, None] - base, data.folds)
    spread = (predicted**2).sum()
    if spread == 0:
        return weights
    slope = (predicted * true).sum() / spread
    variance = ((true - slope * predicted) ** 2).sum() / freedom / spread
    kept = _share_learned(slope, max(variance, 1e-12))
    return kept * own + (1 - kept) * (np.arange(len(weights)) == constant)


def _share_learned(slope: float, variance: float) -> float:
    """Probability that something was learned, times the expected slope of what was."""
    wider = variance + SLOPE_DEVIATION**2
    odds = slope**2 / variance - (slope - 1) ** 2 / wider + np.log(variance / wider)
    odds += 2 * logit(USEFUL)
    expected = (slope / variance + 1 / SLOPE_DEVIATION**2) / (1 / variance + 1 / SLOPE_DEVIATION**2)
    return float(expit(odds / 2) * np.clip(expected, 0, 1))


def _constant_model(means: Array, folds: Array) -> int | None:
    """The first model whose bags of a fold all have one mean score."""
    spread = np.abs(_centred(means, folds)).max(axis=(0, 2))
    return int(np.argmax(spread < SAME)) if (spread < SAME).any() else None


def _centred(values: Array, folds: Array) -> Array:
    """Less the average of the fold."""
    found = values.astype(float)
    for fold in np.unique(folds):
        found[folds == fold] -= found[folds == fold].mean(axis=0)
    return found
