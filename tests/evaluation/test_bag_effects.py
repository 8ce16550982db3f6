"""Effects of bags on the logit: size of the test, bias of the estimate, and what is refused."""

import numpy as np
import pytest
from scipy import special, stats

from unbag.bags import Bags
from unbag.errors import BagDataError
from unbag.evaluation.bag_effects import _Likelihood, estimate_bag_effects


def grouped(rng, sizes, *, deviation, shift=0.3, rare=0.0):
    """Probabilities, off by a common shift, and bags that have effects; features differ by bag."""
    sizes = np.asarray(sizes)
    bag = np.repeat(np.arange(len(sizes)), sizes)
    logits = 1.5 * rng.normal(size=len(bag)) + 0.5 * rng.normal(size=len(sizes))[bag] - rare
    effects = shift + deviation * rng.normal(size=len(sizes))
    labels = rng.random(len(bag)) < special.expit(logits + effects[bag])
    counts = np.bincount(bag, labels)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return special.expit(logits), Bags.from_arrays(
        np.zeros((len(bag), 1)), offsets=offsets, counts=counts
    )


def likelihood_of(probabilities, bags):
    return _Likelihood(probabilities, np.rint(bags.proportions * bags.sizes), bags)


def p_values(rng, sizes, n_draws, **options):
    """Of the test alone, which costs next to nothing."""
    found = []
    for _ in range(n_draws):
        likelihood = likelihood_of(*grouped(rng, sizes, **options))
        found.append(likelihood.score_test(likelihood.shift_without_effects()))
    return np.array(found)


@pytest.mark.parametrize(
    ("sizes", "rare"),
    [([10] * 20, 0.0), ([20] * 100, 0.0), ([20] * 60, 4.0), ([1, 3, 8, 40, 200] * 12, 0.0)],
    ids=["few", "equal", "rare", "unequal"],
)
def test_bags_without_effects_are_called_so(rng, sizes, rare):
    alarms = (p_values(rng, sizes, 400, deviation=0.0, rare=rare) <= 0.05).sum()
    assert alarms <= stats.binom.isf(1e-4, 400, 0.05)


def test_an_effect_as_small_as_the_error_of_the_optimum_is_zero(rng):
    worlds = [grouped(rng, [20] * 30, deviation=0.0) for _ in range(30)]
    found = [estimate_bag_effects(*world).deviation for world in worlds]
    assert 0 in found and all(value == 0 or value > 0.01 for value in found)


def test_effects_are_found(rng):
    assert (p_values(rng, [20] * 100, 100, deviation=0.5) <= 0.05).mean() > 0.9


@pytest.mark.parametrize("deviation", [0.5, 1.0])
def test_the_variance_is_estimated_without_bias(rng, deviation):
    draws = [grouped(rng, [20] * 100, deviation=deviation) for _ in range(12)]
    found = [estimate_bag_effects(*drawn) for drawn in draws]
    squares = np.array([f.deviation**2 for f in found])
    assert abs(squares.mean() - deviation**2) < 4 * squares.std() / np.sqrt(len(squares))
    assert sum(f.low <= deviation <= f.high for f in found) >= 9  # fewer once in 5,000 draws
    assert abs(np.mean([f.shift for f in found]) - 0.3) < 0.15


def test_the_likelihood_ratio_of_a_count_is_exact(rng):
    """Tilting: against the Poisson-binomial law of the moved logits itself."""
    probabilities, bags = grouped(rng, [6, 4], deviation=0.5)
    likelihood = likelihood_of(probabilities, bags)
    effect, logits = np.array([0.7, -0.4]), special.logit(probabilities)
    for bag, rows in enumerate((slice(0, 6), slice(6, 10))):
        laws = []
        for moved in (logits[rows] + effect[bag], logits[rows]):
            law = np.ones(1)
            for p in special.expit(moved):
                law = np.convolve(law, [1 - p, p])
            laws.append(law[int(likelihood.counts[bag])])
        ratio = np.exp(likelihood._log_ratio(effect)[bag])
        assert ratio == pytest.approx(laws[0] / laws[1], rel=1e-9)


def test_nothing_to_estimate_gives_zero(rng):
    found = estimate_bag_effects(*grouped(rng, [20] * 40, deviation=0.0, shift=0.0))
    assert found.low == 0
    assert "standard deviation of" in str(found)


def test_what_is_no_probability_or_no_count_is_refused(rng):
    probabilities, bags = grouped(rng, [5] * 10, deviation=0.0)
    with pytest.raises(BagDataError, match=r"50 numbers from 0 to 1.*pass the second"):
        estimate_bag_effects(np.column_stack([1 - probabilities, probabilities]), bags)
    noisy = Bags.from_arrays(
        bags.X, offsets=np.arange(0, 51, 5), proportions=bags.proportions, noise_variance=0.01
    )
    with pytest.raises(BagDataError, match="exact counts"):
        estimate_bag_effects(probabilities, noisy)
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1, got 95"):
        estimate_bag_effects(probabilities, bags, confidence=95)
