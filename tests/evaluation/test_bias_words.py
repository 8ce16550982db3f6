"""What `check_bags` says of the risk estimate, upper, lower or unreliable, is so: by simulation."""

import numpy as np
import pytest

from unbag.bags import Bags
from unbag.evaluation import estimate_risk
from unbag.evaluation.checks import CHECKS


def estimated_against_true(rng, kind, n_draws=200):
    """Mean estimated and true error of a fixed classifier on bags of some kind."""
    estimates, truths = [], []
    for _ in range(n_draws):
        labels = (rng.random(1200) < 0.5).astype(float)
        hard = np.where(rng.random(1200) < 0.2, 1 - labels, labels)
        wrong = hard - labels
        order = {
            # Bags whose instances are wrong alike, as when they share an unseen cause.
            "alike": np.argsort(wrong + rng.normal(size=1200)),
            # Every bag with as many false positives as false negatives.
            "balanced": _balanced(rng, wrong, n_bags=60),
            "random": rng.permutation(1200),
        }[kind]
        counts = labels[order].reshape(60, 20).sum(axis=1)
        bags = Bags.from_arrays(hard[order][:, None], offsets=np.arange(0, 1201, 20), counts=counts)
        estimates.append(estimate_risk(hard[order], bags).value)
        truths.append(np.mean(wrong != 0))
    error = np.std(np.array(estimates) - truths) / n_draws**0.5
    return np.mean(estimates) - np.mean(truths), error


def _balanced(rng, wrong, *, n_bags):
    order = np.argsort(wrong + 0.1 * rng.random(len(wrong)))
    return order.reshape(-1, n_bags).T.reshape(-1)


def test_the_words_about_bias_are_true(rng):
    gap, error = estimated_against_true(rng, "alike")
    assert gap > 4 * error  # an upper estimate
    gap, error = estimated_against_true(rng, "balanced")
    assert gap < -4 * error  # a lower one
    gap, error = estimated_against_true(rng, "random")
    assert abs(gap) < 4 * error


def gap(rng, make, n_draws=200):
    """Mean estimated minus true error in standard errors, over draws of (hard, labels, bags)."""
    gaps = []
    for _ in range(n_draws):
        hard, labels, bags = make(rng)
        gaps.append(estimate_risk(hard, bags).value - np.mean(hard != labels))
    return np.mean(gaps) / (np.std(gaps) / n_draws**0.5)


def some_bags(hard, proportions, size):
    offsets = np.arange(0, len(hard) + 1, size)
    return Bags.from_arrays(hard[:, None], offsets=offsets, proportions=proportions)


def labelled(rng, *, n_bags=60, size=20, prior=0.3, error=0.1):
    labels = (rng.random(n_bags * size) < prior).astype(float)
    hard = np.where(rng.random(n_bags * size) < error, 1 - labels, labels)
    return hard, labels, labels.reshape(n_bags, size).mean(axis=1)


def rounded(rng):
    hard, labels, proportions = labelled(rng, size=15)
    return hard, labels, some_bags(hard, proportions.round(1), 15)


def formed_by_label(rng):
    hard, labels, _ = labelled(rng)
    order = np.argsort(labels + 0.8 * rng.random(1200))
    hard, labels = hard[order], labels[order]
    return hard, labels, some_bags(hard, labels.reshape(60, 20).mean(axis=1), 20)


def drifting_with_size(rng):
    """Small bags hold positives that are missed, large ones negatives that are taken for some."""
    sizes = np.repeat([10, 30], 30)
    large = np.repeat(sizes, sizes) == 30
    labels = (rng.random(1200) < np.where(large, 0.2, 0.6)).astype(float)
    wrong = (rng.random(1200) < 0.3) & (labels != large)
    hard = np.where(wrong, 1 - labels, labels)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    counts = np.add.reduceat(labels, offsets[:-1])
    return hard, labels, Bags.from_arrays(hard[:, None], offsets=offsets, counts=counts)


def drifting_with_time(rng):
    """Early bags hold positives that are missed, late ones negatives that are taken for some."""
    late = np.repeat(np.linspace(0, 1, 60), 20)
    labels = (rng.random(1200) < 0.6 - 0.4 * late).astype(float)
    wrong = rng.random(1200) < 0.4 * np.where(labels == 1, 1 - late, late)
    hard = np.where(wrong, 1 - labels, labels)
    return hard, labels, some_bags(hard, labels.reshape(60, 20).mean(axis=1), 20)


@pytest.mark.filterwarnings("ignore:proportions")  # which are no whole counts once rounded
@pytest.mark.parametrize(
    ("check", "make"),
    [
        ("rounding", rounded),
        ("one_class", formed_by_label),
        ("size_drift", drifting_with_size),
        ("trend", drifting_with_time),
        ("blocks", drifting_with_time),
    ],
)
def test_what_is_called_upper_is_an_upper_estimate(rng, check, make):
    found = CHECKS[check].answer(make(rng)[2], np.arange(60) // 6)
    assert found.p_value < 1e-3 and (found.bias or CHECKS[check].bias) == "upper"
    assert gap(rng, make) > 4


def clipped(rng, *, perfect):
    hard, labels, proportions = labelled(rng, error=0)
    hard = hard if perfect else np.zeros_like(hard)
    return hard, labels, some_bags(hard, np.clip(proportions, 0.25, 0.35), 20)


def suppressed(rng, *, perfect):
    """Counts below five are set to zero, or their bags withheld."""
    hard, labels, proportions = labelled(rng, n_bags=200, size=40, prior=0.1, error=0)
    shown = proportions >= 5 / 40
    if perfect:
        return hard, labels, some_bags(hard, np.where(shown, proportions, 0), 40)
    hard = np.zeros_like(hard)
    return hard, labels, some_bags(hard, proportions, 40).take(np.flatnonzero(shown))


def one_value_a_bag(rng, *, perfect):
    """A cause that bags share, or the count itself: as many positives as there are, anywhere."""
    cause = rng.uniform(0.1, 0.5, 60)
    labels = (rng.random((60, 20)) < cause[:, None]).astype(float)
    hard = np.zeros_like(labels) if perfect else rng.permuted(labels, axis=1)
    known = cause if perfect else labels.sum(axis=1)
    offsets = np.arange(0, 1201, 20)
    bags = Bags.from_arrays(known.repeat(20)[:, None], offsets=offsets, counts=labels.sum(axis=1))
    return hard.reshape(-1), labels.reshape(-1), bags


@pytest.mark.parametrize(
    ("check", "make"),
    [("clipping", clipped), ("suppression", suppressed), ("one_value", one_value_a_bag)],
)
def test_what_is_called_unreliable_goes_either_way(rng, check, make):
    found = CHECKS[check].answer(make(rng, perfect=True)[2])
    assert found.p_value < 1e-3 and (found.bias or CHECKS[check].bias) == "unreliable"
    assert gap(rng, lambda rng: make(rng, perfect=True)) > 4
    assert gap(rng, lambda rng: make(rng, perfect=False)) < -4


def test_with_bags_twice_intervals_are_too_short(rng):
    """Half of the bags are copies: the intervals of 60 bags cover as those of 30 would not."""
    covered = []
    for _ in range(300):
        hard, _, proportions = labelled(rng, n_bags=30)
        twice = some_bags(np.tile(hard, 2), np.tile(proportions, 2), 20)
        found = estimate_risk(np.tile(hard, 2), twice)
        covered.append(found.low <= 0.1 <= found.high)
    assert np.mean(covered) < 0.95 - 4 * np.sqrt(0.95 * 0.05 / 300)
