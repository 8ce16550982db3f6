"""Tests of proportions along the order of bags, and between blocks of bags."""

from __future__ import annotations

import numpy as np
from scipy import stats

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.evaluation.bag_tests import (
    MOST_INSTANCES,
    Answer,
    draw_random_bags,
    noise_of,
    not_asked,
    outputs_of,
)
from unbag.randomness import numpy_generator

N_WAVES = 3  # half waves along the order of the bags: a drift, a bow, and one bend more
MOST_NUMBERS = 1_000_000


def trend(bags: Bags) -> Answer:
    """Whether proportions drift along the order of the bags (that of their rows).

    Residuals, standardised as for random bags, are projected on three half waves, with a
    permutation p-value.
    """
    listed = _listed_by(bags)
    if listed or bags.n_bags < 2 * N_WAVES + 2:
        reason = f"bags are listed by their {listed}" if listed else "there are too few bags"
        return not_asked(reason)
    time = (np.arange(bags.n_bags) + 0.5) / bags.n_bags
    waves = np.cos(np.pi * np.outer(time, np.arange(1, N_WAVES + 1)))
    p_value, fitted = _explained(bags, waves)
    last, first = fitted[-1], fitted[0]
    detail = f"proportions drift from {first:.3g} to {last:.3g} along the order of the bags"
    return Answer(p_value, float(last - first), detail)


def blocks_differ(bags: Bags, blocks: Array | None = None) -> Answer:
    """Whether bags of one block (a day, a region) are more alike than bags of different blocks.

    As `trend`, but projected on the blocks' means. The effect is the standard deviation of blocks.
    """
    if blocks is None:
        return not_asked("no blocks were given")
    names, codes = np.unique(blocks, return_inverse=True)
    if not 1 < len(names) < bags.n_bags:
        return not_asked(f"{bags.n_bags} bags in {len(names)} blocks are too few")
    p_value, fitted = _explained(bags, np.eye(len(names))[codes.reshape(-1)])
    effect = float(fitted.std())
    detail = f"proportions of {len(names)} blocks have a standard deviation of {effect:.3g}"
    return Answer(p_value, effect, detail)


def _listed_by(bags: Bags) -> str:
    """Quantity by which bags are sorted, so that their order is not an order in time."""
    proportions, sizes, _ = outputs_of(bags)
    keys = {
        "size": sizes[:, None],
        "proportion": proportions,
        "count": proportions * sizes[:, None],
    }
    for name, columns in keys.items():
        steps = np.diff(columns, axis=0)
        if (((steps >= 0).all(axis=0) | (steps <= 0).all(axis=0)) & (steps != 0).any(axis=0)).any():
            return name
    return ""


def _explained(bags: Bags, design: Array) -> tuple[float, Array]:
    """P-value of what a design explains, and the fitted proportions of the most affected output."""
    proportions, sizes, prior = outputs_of(bags)
    deviations = np.sqrt(prior * (1 - prior) / sizes[:, None] + noise_of(bags)[:, None])
    root = 1 / deviations.mean(axis=1, keepdims=True)
    common = root / np.linalg.norm(root)
    levers = root * design
    levers = levers - common @ (common.T @ levers)
    basis, singular, _ = np.linalg.svd(levers, full_matrices=False)
    basis = basis[:, singular > 1e-9 * singular[0]]
    residuals = _standard(((proportions - prior) / deviations).T)
    parts = ((residuals @ basis) ** 2).sum(axis=1)
    worst = int(parts.argmax())
    effects = basis @ (basis.T @ (root[:, 0] * (proportions - prior)[:, worst])) / root[:, 0]
    p_value = _permuted(residuals, basis, float(parts.sum()))
    if bags.equal_size is None and p_value <= 0.2 and bags.n_instances <= MOST_INSTANCES:
        p_value = max(p_value, _drawn(bags, deviations, basis, float(parts.sum())))
    return p_value, prior[worst] + effects


def _standard(residuals: Array) -> Array:
    """Rows with mean zero and variance one, or zeros if all are equal."""
    centred = residuals - residuals.mean(axis=-1, keepdims=True)
    spread = centred.std(axis=-1, keepdims=True)
    return centred / np.where(spread > 1e-9, spread, np.inf)


def _drawn(bags: Bags, deviations: Array, basis: Array, found: float) -> float:
    """P-value of a projection among simulated random bags of unequal sizes."""
    proportions, _, prior = outputs_of(bags)
    n_draws = max(200, min(2000, MOST_NUMBERS // bags.n_bags))
    total = np.zeros(n_draws)
    for a, p, deviation in zip(proportions.T, prior, deviations.T, strict=True):
        residuals = _standard((draw_random_bags(a, bags, n_draws) - p) / deviation)
        total += ((residuals @ basis) ** 2).sum(axis=1)
    return float((total >= found * (1 - 1e-9)).sum() + 1) / (n_draws + 1)


def _permuted(residuals: Array, basis: Array, found: float) -> float:
    """P-value of a projection, by chi-squared or, if small, by permutations."""
    n_outputs, n_bags = residuals.shape
    law = float(stats.chi2.sf(found, basis.shape[1] * n_outputs))
    n_draws = min(4000, MOST_NUMBERS // residuals.size)
    if law > 0.2 or n_draws < 1000:
        return law
    order = numpy_generator(0, "permutations").random((n_draws, n_bags)).argsort(axis=1)
    drawn = sum(((column[order] @ basis) ** 2).sum(axis=1) for column in residuals)
    beyond = int((drawn >= found * (1 - 1e-9)).sum())
    return (beyond + 1) / (n_draws + 1)
