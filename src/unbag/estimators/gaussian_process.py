"""Gaussian processes of labels and of amounts: smooth functions of the features, for few bags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from unbag.arguments import check_whole
from unbag.arrays import Array, Arrays
from unbag.bags import Bags
from unbag.estimators.base import BagEstimator
from unbag.estimators.closed_form import BagStatistics, check_sizes, project_to_simplex
from unbag.estimators.instances import InstanceEstimator
from unbag.estimators.regressor_base import BagRegressorBase
from unbag.estimators.smooth_features import SmoothFeatures
from unbag.randomness import draw_seed, numpy_generator

CHUNK = 1024  # rows whose columns are in memory, and in the cache, at once
# Prior of the shares, noise first: a label is mostly noise, and few blocks of columns explain it.
DIRICHLET = (2.0, 0.5, 0.5, 0.5)
# Variance of an effect of natural groups, in units of that of a label, as powers of ten.
EFFECT_POWERS = (-4.0, -0.5)
N_DRAWS = 300
# More bags hardly change the shares, whose likelihood takes cubic time.
MAX_BAGS = 500
LEAST_NOISE = 0.05


@dataclass(eq=False, repr=False)
class ProcessModel(InstanceEstimator):
    """What the processes of labels and of amounts share: options, equations, prediction."""

    _state = ("coef", "intercept", "variance_shares")

    _: KW_ONLY
    n_waves: int = 300
    bag_effects: bool = False
    random_state: Any = None

    def _fit_process(self, data: Bags) -> None:
        check_whole("n_waves", self.n_waves, least=1)
        seed, data = draw_seed(self.random_state), data.gathered()
        check_sizes(data.X)
        self.features_ = SmoothFeatures.of(data.X, n_waves=self.n_waves, seed=seed)
        chosen = numpy_generator(seed, "evidence").permutation(data.n_bags)[:MAX_BAGS]
        few = reduce(BagStatistics.joined, column_means(self.features_, data.take(np.sort(chosen))))
        draws = prior_draws(seed, bag_effects=self.bag_effects)
        processes, found = [], []
        for output, variance in enumerate(label_variances(data)):
            own = replace(few, proportions=few.proportions[:, output])
            processes.append(BagProcess(own, self.features_.blocks, variance))
            found.append(posterior_mean(processes[-1], draws))
        self.variance_shares_ = np.array(found)[:, :-1]
        few_bags = data.n_bags <= MAX_BAGS
        solve = few_weights if few_bags else partial(many_weights, self.features_, data)
        solutions = solve(processes, found)
        self.coef_, self.intercept_ = solutions[:, :-1].T, solutions[:, -1]

    def _linear(self, X: Array) -> Array:
        starts = range(0, len(X), CHUNK)
        parts = [self.features_(X[i : i + CHUNK]) @ self.coef_ for i in starts]
        return np.concatenate(parts) + self.intercept_

    def _learned(self) -> tuple[dict[str, Any], Arrays]:
        plain, arrays = super()._learned()
        features = {f"features_{name}": value for name, value in vars(self.features_).items()}
        return plain, arrays | features

    def _restore(self, description: dict[str, Any], tensors: Arrays, folder: Path) -> None:
        super()._restore(description, tensors, folder)
        names = [field.name for field in fields(SmoothFeatures)]
        self.features_ = SmoothFeatures(**{name: tensors[f"features_{name}"] for name in names})


class BagGaussianProcessClassifier(BagEstimator, ProcessModel):
    r"""Gaussian process regression of proportions, with variance components estimated from bags.

    A label of an instance with features :math:`x` is :math:`y = \mu + \sum_b g_b(x) + e`. The
    functions :math:`g_b` are linear in one of three blocks of `SmoothFeatures`: the features,
    steps, or waves. Every :math:`g_b` and the noise :math:`e` have a share :math:`h` of the
    variance of a label,

    .. math:: \operatorname{Var} g_b(x) = h_b \, p (1 - p), \qquad
              \operatorname{Var} e = h_0 \, p (1 - p), \qquad \textstyle\sum h = 1,

    so that proportions are jointly Gaussian. The shares are averaged over their posterior. The
    scores are the best linear prediction from all proportions.

    Parameters
    ----------
    n_waves : int
        Random waves; more of them are nearer to a Gaussian kernel.
    bag_effects : bool
        Whether bags may have effects of their own, as natural groups have: noise whose variance
        does not fall with the size of the bag.
    random_state : int, RandomState, Generator or None
        Seed of the waves and of draws of the shares.

    Attributes
    ----------
    features_ : SmoothFeatures
    coef_ : array of shape (n_columns, n_outputs)
        Weights of its columns.
    intercept_ : array of shape (n_outputs,)
    variance_shares_ : array of shape (n_outputs, 4)
        Posterior means of :math:`h`: noise, features, steps, waves.
    classes_ : array
        Class labels.

    Notes
    -----
    The variance of a label is known from the overall rate, so the spread of the proportions says
    how much of it the features explain. Without evidence of that, scores shrink to the rate. In
    genetics the same model estimates heritability from relatives.

    References
    ----------
    rasmussen2006gaussian

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2)); labels = abs(X[:, 0]) > 1
    >>> bags = np.repeat(np.arange(100), 20)
    >>> y = labels.reshape(100, 20).mean(axis=1)[bags]
    >>> clf = BagGaussianProcessClassifier(random_state=0).fit(X, y, bags=bags)
    >>> bool((clf.predict(X) == labels).mean() > 0.9)
    True
    """

    def _fit(self, data: Bags) -> Self:
        self._fit_process(data)
        return self

    def _scores(self, X: Array) -> Array:
        scores, multiclass = self._linear(X), self.task_ == "multiclass"
        return self._by_task(project_to_simplex(scores) if multiclass else np.clip(scores, 0, 1))


class BagGaussianProcessRegressor(BagRegressorBase, ProcessModel):
    """Gaussian process regression of single amounts from averages of bags.

    The model is that of `BagGaussianProcessClassifier`. The variance of an amount comes from the
    spread of the averages between bags.

    Parameters
    ----------
    n_waves : int
        Random waves; more of them are nearer to a Gaussian kernel.
    bag_effects : bool
        Whether bags may have effects of their own, as natural groups have.
    random_state : int, RandomState, Generator or None
        Seed of the waves and of draws of the shares.

    Attributes
    ----------
    features_ : SmoothFeatures
    coef_ : array of shape (n_columns, 1)
        Weights of its columns.
    intercept_ : array of shape (1,)
    variance_shares_ : array of shape (1, 4)
        Posterior means of the shares of variance: noise, features, steps, waves.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2)); amounts = 5 * X[:, 0] ** 2 + rng.normal(size=2000)
    >>> bags = np.repeat(np.arange(100), 20)
    >>> y = amounts.reshape(100, 20).mean(axis=1)[bags]
    >>> model = BagGaussianProcessRegressor(random_state=0).fit(X, y, bags=bags)
    >>> bool(model.score(X, amounts) > 0.8)
    True
    """

    def _fit_amounts(self, data: Bags) -> None:
        self._fit_process(data)

    def _scores(self, X: Array) -> Array:
        return self._linear(X)[:, 0]


class BagProcess:
    r"""Proportions times the root of the bag's size, as Gaussian variables.

    Their covariance is the variance of a label times
    :math:`\sum_b h_b Z_b Z_b^\top + \operatorname{diag}(h_0 + t k_i + k_i s_i / v)`, with
    :math:`Z_b` the bag means of a block of columns, :math:`t` the variance of bag effects, and
    :math:`v` that of a label.
    """

    def __init__(self, bags: BagStatistics, blocks: Array, variance: float) -> None:
        self.bags, self.sizes, self.blocks, self.variance = bags, bags.sizes, blocks, variance
        self.noise = bags.sizes * bags.noise / variance
        self.root = np.sqrt(bags.sizes)
        self.columns = self.root[:, None] * bags.means
        self.target = self.root * bags.proportions

    def log_evidence(self, draws: Array) -> Array:
        """Log likelihood of rows of `prior_draws`, with the intercept integrated out."""
        squares = self._squares()
        return np.array([self._solved(draw, squares)[0] for draw in draws])

    def _squares(self) -> Array:
        parts = [self.columns[:, self.blocks == b] for b in range(self.blocks.max() + 1)]
        return np.stack([part @ part.T for part in parts])

    def _solved(self, draw: Array, squares: Array) -> tuple[float, Array, float]:
        """Log likelihood, residuals times the inverse covariance, and the intercept."""
        covariance = np.tensordot(draw[1:-1], squares, axes=1)
        covariance[np.diag_indices(len(covariance))] += self._diagonal(draw)
        factor = cho_factor(covariance, lower=True, check_finite=False)
        root = cho_solve(factor, self.root)
        precision = self.root @ root
        intercept = root @ self.target / precision
        residual = self.target - self.root * intercept
        solved = cho_solve(factor, residual)
        square = np.log(precision) + residual @ solved / self.variance
        return float(-np.log(np.diag(factor[0])).sum() - 0.5 * square), solved, float(intercept)

    def _diagonal(self, draw: Array) -> Array:
        return max(draw[0], LEAST_NOISE) + draw[-1] * self.sizes + self.noise

    def weights(self, draw: Array) -> Array:
        """Weights of the columns, and the intercept as the last."""
        _, solved, intercept = self._solved(draw, self._squares())
        return np.append(draw[1:-1][self.blocks] * (solved @ self.columns), intercept)

    def equations(self, draw: Array) -> tuple[Array, Array]:
        """Normal equations of the weights and the intercept, without the penalty."""
        design = np.column_stack([self.columns, self.root])
        weighted = design / self._diagonal(draw)[:, None]
        return weighted.T @ design, weighted.T @ self.target


def few_weights(processes: Sequence[BagProcess], draws: Sequence[Array]) -> Array:
    """Weights and intercept of each output, from equations as large as the number of bags."""
    return np.array([process.weights(draw) for process, draw in zip(processes, draws, strict=True)])


def many_weights(
    features: SmoothFeatures, data: Bags, processes: Sequence[BagProcess], draws: Sequence[Array]
) -> Array:
    """The same from equations as large as the number of columns, with some bags in memory."""
    penalties = [1 / np.maximum(np.append(d[1:-1][features.blocks], np.inf), 1e-12) for d in draws]
    matrices, vectors = [np.diag(p) for p in penalties], [np.zeros(len(p)) for p in penalties]
    for part in column_means(features, data):
        for i, (process, draw) in enumerate(zip(processes, draws, strict=True)):
            own = replace(part, proportions=part.proportions[:, i])
            matrix, vector = BagProcess(own, features.blocks, process.variance).equations(draw)
            matrices[i] += matrix
            vectors[i] += vector
    pairs = zip(matrices, vectors, strict=True)
    return np.array([cho_solve(cho_factor(m, check_finite=False), v) for m, v in pairs])


def label_variances(data: Bags) -> list[float]:
    """Variance of a label from the overall rate, of an amount from the spread between bags."""
    bags = BagStatistics.of(replace(data, X=np.zeros((len(data.X), 1))))
    rates = np.average(bags.proportions, weights=bags.weights, axis=0)
    if data.task != "amount":
        rates = np.clip(rates, 0.001, 0.999)
        return list(rates * (1 - rates))
    squares = bags.weights @ (bags.proportions - rates) ** 2
    return [variance or 1.0 for variance in squares / max(data.n_bags - 1, 1)]


def prior_draws(seed: int, *, bag_effects: bool) -> Array:
    """Rows of shares, noise first, and the variance of a bag's effect."""
    rng = numpy_generator(seed, "shares")
    shares = rng.dirichlet(DIRICHLET, N_DRAWS)
    effects = 10 ** rng.uniform(*EFFECT_POWERS, N_DRAWS) if bag_effects else np.zeros(N_DRAWS)
    return np.column_stack([shares, effects])


def posterior_mean(process: BagProcess, draws: Array) -> Array:
    """Mean of draws from the prior, weighted by their likelihood."""
    evidence = process.log_evidence(draws)
    likelihood = np.exp(evidence - evidence.max())
    return np.asarray(likelihood @ draws / likelihood.sum())


def column_means(features: SmoothFeatures, data: Bags) -> Iterator[BagStatistics]:
    """Bag means of the columns, some of the bags at a time."""
    step = max(1, int(CHUNK / data.sizes.mean()))
    for start in range(0, data.n_bags, step):
        part = data.take(np.arange(start, min(start + step, data.n_bags))).gathered()
        yield BagStatistics.of(replace(part, X=features(part.X)))
