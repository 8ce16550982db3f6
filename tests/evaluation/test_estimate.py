"""How an estimate is put into words: impossible numbers are never shown as a model's quality."""

import re

import numpy as np
import pytest

from unbag.bags import Bags
from unbag.evaluation import Estimate, evaluate_bags


@pytest.mark.parametrize(
    ("estimate", "headline"),
    [
        (Estimate(1.58, 0.9, 2.1, 0.3), "at least 0.9000"),
        (Estimate(-1.19, -2.0, 0.2, 0.5), "at most 0.2000"),
        (Estimate(1.4, -0.1, 2.9, 0.7), "cannot tell"),
        (Estimate(1.4, 1.2, 1.6, 0.1), "cannot tell"),
        (Estimate(0.4, np.nan, np.nan, 0.1, reason="too few positives"), "cannot tell"),
        (Estimate(*[np.nan] * 4), "not defined"),
        (Estimate(0.4, 0.3, 0.5, 0.1), "0.4000"),
    ],
)
def test_a_headline_lies_within_the_range(estimate, headline):
    assert estimate.headline == headline
    assert (str(estimate) == headline) == (headline == "not defined")
    numbers = [float(n) for n in re.findall(r"-?\d+\.\d+", f"{estimate} {estimate.interval}")]
    assert all(0 <= n <= 1 for n in numbers)


def test_an_interval_holds_its_estimate_and_stays_within_the_range():
    found = Estimate(0.1, 0.2, 1.3, 0.1)
    assert (found.low, found.high) == (0.1, 1.0)
    assert found.scaled(0.5).highest == 0.5
    assert found.scaled(0.5).high == 0.5


def test_no_interval_has_a_reason():
    found = Estimate(0.4, np.nan, np.nan, 0.1, reason="too few positives")
    assert str(found) == "cannot tell: too few positives"
    assert found.interval == ""


def test_no_metric_of_bags_full_of_noise_prints_an_impossible_number(rng):
    """Noise a hundred times the labels' own spread: raw estimates go far beyond their range."""
    raw, ids = [], np.repeat(np.arange(12), 20)
    for _ in range(10):
        labels = rng.random(240) < 0.3
        rates = labels.reshape(12, 20).mean(axis=1) + rng.normal(size=12)
        bags = Bags.from_arrays(
            np.zeros((240, 1)), bags=ids, proportions=rates, noise_variance=np.ones(12)
        )
        found = evaluate_bags(np.where(labels, 0.8, 0.3), bags)
        raw += [found[name].outside for name in found]
        rows = [line.split("│")[2:4] for line in str(found).splitlines() if "│" in line]
        numbers = [float(n) for row in rows for n in re.findall(r"-?\d+\.\d+", " ".join(row))]
        ends = [found[name].high for name in found]
        assert min(numbers) >= 0 and max(numbers) <= max(ends) + 1e-4
    assert any(raw)
