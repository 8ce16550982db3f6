"""The laws that `coverage.py` simulates: a population, the sizes of the bags, and the noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from populations import World, make_world, unequal_sizes
from scipy import special, stats

from unbag import BagRidgeClassifier
from unbag.bags import BagKFold, Bags, BagTarget
from unbag.evaluation import Estimate, compare_models, cross_fit_risk, evaluate_bags

Truths = dict[str, float]


@dataclass(frozen=True)
class Law:
    """Bags of these sizes from a population; or a function that draws and estimates itself."""

    world: World | None = None
    sizes: Any = None
    noise: float = 0.0  # variance of Laplace noise in each count
    draw: Callable[[np.random.Generator], tuple[dict[str, Estimate], Truths]] | None = None


def under_confident(flip: float, n_scores: int = 100) -> World:
    """Scores uniform in 0.02 to 0.98; labels follow 1{score > 1/2}, flipped with this chance."""
    scores = np.linspace(0.02, 0.98, n_scores)
    chances = np.where(scores > 0.5, 1 - flip, flip)
    return World(scores, np.full(n_scores, 1 / n_scores), chances)


def errors_at_two_scores() -> World:
    """All errors, 2 % of the instances, at scores 0.3 and 0.7."""
    scores = np.sort(np.append(np.linspace(0.02, 0.98, 80), [0.3, 0.7]))
    two = np.isin(scores, [0.3, 0.7])
    hard = (scores > 0.5).astype(float)
    return World(scores, np.where(two, 0.1, 0.8 / 80), np.where(two, np.abs(hard - 0.1), hard))


def rare_positives() -> World:
    """True positives 0.1 %, false negatives 0.4 %, false positives 0.645 %."""
    shares = np.array([0.6, 0.39255, 0.00447, 0.00298])
    return World(
        np.array([0.05, 0.2, 0.6, 0.9]), shares, np.array([0.0008, 0.0032, 0.0003, 0.0007]) / shares
    )


def few_errors(error: float) -> World:
    """Errors of `make_world` at 1 %, made rarer all alike."""
    world = make_world(0.01)
    share = error / sum(world.errors()[:2])
    rarer = np.where(world.scores > 0.5, 1 - share * (1 - world.chances), share * world.chances)
    return World(world.scores, world.shares, rarer)


def lognormal_sizes(n_bags: int) -> np.ndarray:
    """Sizes between 1 and 5000, with median 33."""
    normal = stats.norm.ppf((np.arange(n_bags) + 0.5) / n_bags)
    return np.clip(np.exp(1.8 * normal + 3.5), 1, 5000).astype(int)


def inverted() -> World:
    """A classifier that learned the inverse: of 21 scores the lowest are mostly positives."""
    normal = stats.norm.ppf((np.arange(21) + 0.5) / 21)
    return World(special.expit(3 * normal), np.full(21, 1 / 21), special.expit(-3 * normal))


TIES = World(np.array([0.2, 0.51, 0.8]), np.array([0.3, 0.4, 0.3]), np.array([0.25, 0.5, 0.7]))
ALL_ALIKE = World(np.array([0.6]), np.array([1.0]), np.array([0.4]))
ONE_SIDED = World(np.array([0.1, 0.9]), np.array([0.5, 0.5]), np.array([0.1, 1.0]))


def five_classes(rng: np.random.Generator) -> tuple[dict[str, Estimate], Truths]:
    """Metrics of a class that 0.5 % of the instances belong to, 200 bags of 25."""
    shares = np.array([0.005, 0.245, 0.25, 0.25, 0.25])
    classes = rng.choice(5, size=5000, p=shares)
    guesses = np.where(rng.random(5000) < 0.1, rng.choice(5, size=5000, p=shares), classes)
    found = evaluate_bags(0.8 * np.eye(5)[guesses] + 0.04, class_bags(classes, 25))
    recall = 0.9 + 0.1 * shares[0]
    names = ("precision[0]", "recall[0]", "f1[0]", "error")
    truth = dict.fromkeys(names[:3], recall) | {"error": 0.1 * (1 - shares @ shares)}
    return {name: found[name] for name in names}, truth


def class_bags(classes: np.ndarray, bag_size: int) -> Bags:
    """Bags of consecutive instances of five classes."""
    means = np.eye(5)[classes].reshape(-1, bag_size, 5).mean(axis=1)
    offsets = np.arange(0, len(classes) + 1, bag_size)
    X = np.zeros((len(classes), 1))
    return Bags.from_arrays(X, offsets=offsets, proportions=means, task="multiclass")


def two_models(rng: np.random.Generator) -> tuple[dict[str, Estimate], Truths]:
    """Difference of two models of five classes, 200 bags of 10."""
    classes = rng.integers(5, size=2000)

    def changed(base: np.ndarray, share: float) -> np.ndarray:
        return np.where(rng.random(2000) < share, rng.integers(5, size=2000), base)

    shared = changed(classes, 0.2)
    first, second = changed(shared, 0.1), changed(shared, 0.15)
    f, g = 0.8 * np.eye(5)[first] + 0.04, 0.7 * np.eye(5)[second] + 0.06
    errors = [0.8 * (1 - 0.8 * (1 - share)) for share in (0.1, 0.15)]
    squares = [_brier(e, top) for e, top in zip(errors, (0.84, 0.76), strict=True)]
    truth = {"zero_one": errors[0] - errors[1], "square": squares[0] - squares[1]}
    bags = class_bags(classes, 10)
    return {n: compare_models(f, g, bags, loss=n).difference for n in truth}, truth


def _brier(error: float, top: float) -> float:
    other = (1 - top) / 4
    right = (1 - top) ** 2 + 4 * other**2
    return (1 - error) * right + error * (top**2 + (1 - other) ** 2 + 3 * other**2)


def cross_fitted(rng: np.random.Generator) -> tuple[dict[str, Estimate], Truths]:
    """Mean error of five ridge classifiers, cross-fitted to 30 bags of 20."""
    X, labels = _linear(rng, 600)
    ids = np.repeat(np.arange(30), 20)
    target = BagTarget(ids, labels.reshape(30, 20).mean(axis=1)[ids])
    fresh, truth = _linear(rng, 4000)
    folds = [train for train, _ in BagKFold(5).split(X, target)]
    fits = [BagRidgeClassifier().fit(X[train], target[train]) for train in folds]
    error = np.mean([fit.predict(fresh) != truth for fit in fits])
    return {"error": cross_fit_risk(BagRidgeClassifier(), X, target)}, {"error": float(error)}


def _linear(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 5))
    return X, (X[:, 0] + 0.7 * rng.normal(size=n) > 0).astype(float)


FEW = [(4, 50, 10), (4, 500, 2), (6, 50, 10), (8, 50, 10), (8, 500, 2)]
FEW += [(12, 50, 10), (12, 500, 30), (16, 50, 10)]
LAWS = {
    "100 bags of 20, three tied scores": Law(TIES, np.full(100, 20)),
    "30 bags of 50, three tied scores": Law(TIES, np.full(30, 50)),
    "60 bags of 20, scores all alike": Law(ALL_ALIKE, np.full(60, 20)),
    "200 bags of 50, under-confident, no errors": Law(under_confident(0), np.full(200, 50)),
    "200 bags of 50, under-confident": Law(under_confident(5e-4), np.full(200, 50)),
    "50 bags of 20, inverted": Law(inverted(), np.full(50, 20)),
    "30 bags of 1000, errors at two scores": Law(errors_at_two_scores(), np.full(30, 1000)),
    **{
        f"{n} bags of {size}, rare positives": Law(rare_positives(), np.full(n, size))
        for n, size in ((60, 25), (200, 25), (600, 25), (1000, 25), (200, 500))
    },
    "60 bags of 1 to 5000": Law(make_world(0.1), lognormal_sizes(60)),
    "300 bags of 1 to 5000": Law(make_world(0.02), lognormal_sizes(300)),
    "60 bags of 1 to 5000, noisy": Law(make_world(0.1), lognormal_sizes(60), 2.0),
    "200 bags of 50, errors 0.05 %": Law(few_errors(5e-4), np.full(200, 50)),
    "200 bags of 500, errors 0.05 %": Law(few_errors(5e-4), np.full(200, 500)),
    **{
        f"{n} bags of {size}, errors {e} %": Law(make_world(e / 100), np.full(n, size))
        for n, size, e in FEW
    },
    **{f"{n} bags of 50, one-sided": Law(ONE_SIDED, np.full(n, 50)) for n in (4, 6, 8, 12)},
    **{
        f"{n} bags of 5, noise {noise}": Law(make_world(0.1), np.full(n, 5), noise)
        for n, noise in ((50, 2.0), (50, 8.0), (200, 8.0))
    },
    "five classes, one of 0.5 %": Law(draw=five_classes),
    "comparison, five classes": Law(draw=two_models),
    "cross-fitted ridge": Law(draw=cross_fitted),
    **{
        f"{n} bags of {size}, {kind}, noise {noise}, errors {e} %": Law(
            make_world(e / 100),
            np.full(n, size) if kind == "equal" else unequal_sizes(size, n),
            noise,
        )
        for size, n, (kind, noise), e in product(
            (5, 50, 500), (50, 200), (("equal", 0.0), ("unequal", 0.5)), (2, 10, 30)
        )
    },
}
