"""Intervals for natural groups: bias by brute force, coverage by simulation, and where it fails."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

import unbag
from unbag import Bags
from unbag.errors import BagDataError
from unbag.evaluation.natural import evaluate_natural, label_metrics, metric_bounds
from unbag.evaluation.natural_linear import BoundedModel, folded_quantile


@pytest.mark.parametrize("bias", [0.0, 0.4, 2.0, 9.9, 10.1])
def test_the_quantile_of_the_folded_normal(bias):
    found = folded_quantile(bias, 0.9)
    assert stats.norm.cdf(found - bias) - stats.norm.cdf(-found - bias) == pytest.approx(0.9)


def small_model(rng, rates=None, n_bags=12):
    """Two rows per bag; one free and two bounded departures."""
    terms = rng.normal(size=(2 * n_bags, 2))
    one = np.ones((2 * n_bags, 1))
    return BoundedModel(
        rng.random(n_bags) if rates is None else rates,
        np.full(n_bags, 2.0),
        np.repeat(np.arange(n_bags), 2),
        np.ones(2 * n_bags),
        np.full(2 * n_bags, 0.5),
        one,
        0.1 * terms,
        one,
    )


def test_the_largest_bias_is_that_of_the_worst_corner(rng):
    model = small_model(rng)
    weights = rng.normal(size=24)
    by_bag = weights @ model._terms @ model._solver(1.0, model._fit[0])
    biases = []
    for free, *signs in product([-3, 5], [-1, 1], [-1, 1]):
        chances = model._terms @ np.array([free, *signs])
        biases.append(by_bag @ model._mean(chances) - weights @ chances)
    computed = np.abs(by_bag @ model._design - weights @ model._terms)
    assert computed[0] < 1e-6  # whatever the free departure is
    assert computed[1:].sum() == pytest.approx(max(biases), rel=1e-6)


def test_the_variance_is_that_of_the_realised_sum(rng):
    """A sum that the rates determine has no error at all, whatever the effects."""
    model = small_model(rng)
    value, low, high = model.interval(np.full(24, 0.25), 0.95)
    assert [value, low, high] == pytest.approx(np.full(3, model.rates.sum() / 2), abs=1e-6)
    value, low, high = model.interval(rng.random(24), 0.95)
    assert high - low > 0.1


def voters(rng, n_bags, context, *, curved=False):
    """Members and positives of two groups; the share in both moves with the composition."""
    sizes = rng.integers(50, 500, n_bags)
    members = rng.binomial(sizes, rng.beta(1, 2, n_bags))
    members = np.maximum(np.column_stack([members, sizes - members]), 1)
    x = members[:, :1] / members.sum(axis=1, keepdims=True) - 0.5
    moved = context * (np.abs(x) if curved else x) + 0.06 * rng.normal(size=(n_bags, 1))
    return members, rng.binomial(members, np.clip(np.array([0.65, 0.35]) + moved, 0, 1))


def share_covered(rng, true_context, n_draws=80, **options):
    held = []
    for _ in range(n_draws):
        members, positives = voters(rng, 50, true_context, **options)
        found = unbag.estimate_groups(members, positives.sum(axis=1), context=0.2)
        truth = positives.sum(axis=0) / members.sum(axis=0)
        held += [
            one.low <= t <= one.high for one, t in zip(found.estimates.values(), truth, strict=True)
        ]
    return np.mean(held)


@pytest.mark.statistical
def test_groups_are_covered_where_the_assumption_holds_and_not_elsewhere(rng):
    # Groups of one draw are as good as one: four standard errors of 80 draws are 10 %.
    for context, curved in ((0.0, False), (0.2, False), (0.2, True)):
        assert share_covered(rng, context, curved=curved) > 0.85
    assert share_covered(rng, 0.5) < 0.5


@pytest.mark.statistical
def test_a_few_bags_without_context_are_covered(rng):
    """By Student's law with a degree for each bag, eight bags were covered in 87 %."""
    held = []
    for _ in range(300):
        members = rng.multinomial(2000, rng.dirichlet([1.5, 1.5], 8))
        chances = np.array([0.3, 0.7]) + 0.05 * rng.normal(size=(8, 1))
        positives = rng.binomial(members, chances)
        found = unbag.estimate_groups(members, positives.sum(axis=1), context=0.0)[0]
        held.append(found.low <= positives[:, 0].sum() / members[:, 0].sum() <= found.high)
    assert np.mean(held) > 0.92  # two standard errors below 95 %


def test_bounds_of_groups_by_brute_force(rng):
    members, positives = np.array([[2, 1], [1, 3], [0, 2], [3, 3]]), np.array([1, 2, 2, 5])
    ways = [
        [m for m in range(row[0] + 1) if 0 <= n - m <= row[1]]
        for row, n in zip(members, positives, strict=True)
    ]
    shares = np.array([sum(way) for way in product(*ways)]) / members[:, 0].sum()
    found = unbag.estimate_groups(members, positives, context=1.0, groups="ab")
    assert found.bounds["a"] == pytest.approx((shares.min(), shares.max()))
    for name, (low, high) in found.bounds.items():
        assert low <= found[name].low <= found[name].value <= found[name].high <= high


def test_without_context_and_noise_groups_are_goodmans(rng):
    members = 200 + rng.integers(0, 1000, size=(30, 3))
    found = unbag.estimate_groups(members, members @ [0.2, 0.5, 0.7], context=0)
    assert list(found.goodman.values()) == pytest.approx([0.2, 0.5, 0.7])
    assert [e.value for e in found.estimates.values()] == pytest.approx([0.2, 0.5, 0.7], abs=1e-6)
    gap = found.difference(2, 0)
    assert gap.value == pytest.approx(0.5, abs=1e-6) and gap.low < 0.5 < gap.high


def test_impossible_coefficients_are_not_shown_as_shares(rng):
    """Goodman's regression leaves 0 to 1 where context is strong; the estimate does not."""
    members, positives = voters(rng, 80, 0.9)
    found = unbag.estimate_groups(members, positives.sum(axis=1), context=0.9, groups=["a", "b"])
    assert max(found.goodman.values()) > 1
    assert all(0 <= one.low <= one.high <= 1 for one in found.estimates.values())
    text = str(found)
    assert "always between" in text and "by at most 0.9, and" in " ".join(text.split())


def test_no_interval_is_given_where_the_counts_contradict_the_assumption(rng):
    members, positives = voters(rng, 200, 1.2)
    found = unbag.estimate_groups(members, positives.sum(axis=1), context=0.02)
    assert not found[0].has_interval and "contradict the assumption" in str(found[0])
    low, high = found.bounds[0]
    assert low <= found[0].value <= high
    scores, _, bags = scored(rng, 200, within=0.0, effect=0.0)
    counts = bags.sizes * (bags.mean(scores) > 0.5)
    sorted_bags = Bags.from_arrays(bags.X, offsets=np.arange(0, 4001, 20), counts=counts)
    natural = evaluate_natural(scores, sorted_bags, smoothness=0.0)
    assert natural["auc"].low == natural["auc"].high  # the counts fix every label
    assert np.isnan(natural["auc"].if_smooth) and "counts contradict it" in str(natural)


def test_the_context_of_the_spread_by_hand():
    """Two groups: rates off Goodman's line by the same amount, and no chance of single people."""
    shares = np.tile([0.2, 0.4, 0.6, 0.8], 10)
    members = 1e12 * np.column_stack([shares, 1 - shares])
    rates = 0.3 + 0.2 * shares + np.repeat([0.02, -0.02], 20)
    found = unbag.estimate_groups(members, rates * 1e12)
    apart = 40 * 0.02**2 / stats.chi2.ppf(0.05, 38)
    assert found.context == pytest.approx(2 * np.sqrt(apart / shares.var(ddof=1)))
    assert found.from_spread and "80 % of the variance" in found.assumption
    stated = unbag.estimate_groups(members, rates * 1e12, context=found.context)
    assert stated[0] == found[0] and not stated.from_spread and "80 %" not in stated.assumption


def share_held(rng, explained, n_draws=30):
    held = []
    for _ in range(n_draws):
        sizes = rng.integers(500, 5000, 100)
        members = rng.binomial(sizes, rng.uniform(0.1, 0.9, 100))
        members = np.column_stack([members, sizes - members])
        x = members[:, 0] / sizes - 0.5
        moved = np.sqrt(explained) * x / x.std() + np.sqrt(1 - explained) * rng.normal(size=100)
        chances = np.array([0.6, 0.4]) + 0.05 * moved[:, None]
        positives = rng.binomial(members, np.clip(chances, 0, 1))
        found = unbag.estimate_groups(members, positives.sum(axis=1))
        held.append(found[0].low <= positives[:, 0].sum() / members[:, 0].sum() <= found[0].high)
    return np.mean(held)


@pytest.mark.statistical
def test_the_spread_covers_what_it_assumes_and_not_more(rng):
    assert share_held(rng, 0.2) > 0.9  # four standard errors of 30 draws are 16 %
    assert share_held(rng, 0.8) > 0.79
    assert share_held(rng, 0.97) < 0.5


def test_penalised_coefficients_take_a_part_of_a_degree_of_freedom(rng):
    """Of free coefficients one each, of the bounded ones less, of constant ones none."""
    model = small_model(rng)
    assert 1 < model._used < 3
    assert replace(model, bounded=1e-9 * model.bounded)._used == pytest.approx(1)
    assert replace(model, bounded=1e4 * model.bounded)._used == pytest.approx(3, abs=1e-3)


def test_blocks_widen_the_interval_of_groups(rng):
    county = np.repeat(np.arange(10), 8)
    members = rng.integers(100, 500, size=(80, 2))
    chances = np.clip([0.3, 0.7] + 0.1 * rng.normal(size=(10, 1))[county], 0, 1)
    positives = rng.binomial(members, chances).sum(axis=1)
    alone = unbag.estimate_groups(members, positives, context=0)
    together = unbag.estimate_groups(members, positives, context=0, blocks=county)
    assert np.ptp([together[0].low, together[0].high]) > np.ptp([alone[0].low, alone[0].high])


def test_names_of_groups_come_from_a_frame(rng):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rng.integers(10, 50, size=(20, 2)), columns=["white", "black"])
    found = unbag.estimate_groups(frame, frame["white"], context=0.1)
    assert list(found.estimates) == ["white", "black"]
    with pytest.raises(KeyError, match="no group 'green'; there are white, black"):
        found["green"]


MEMBERS = [[5, 5], [9, 1], [3, 7], [4, 6], [8, 2]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"members": [1, 2, 3]}, "one column per group"),
        ({"members": [[5], [4]]}, "at least two"),
        ({"groups": ["a"]}, "1 names of groups"),
        ({"positives": [1, 2]}, "5 counts, one per bag"),
        ({"members": MEMBERS[:3], "positives": [1, 2, 3]}, "at least 4 bags for 2 groups"),
        ({"members": [[np.nan, 5], *MEMBERS[1:]]}, "finite and not negative"),
        ({"members": [[-1, 5], *MEMBERS[1:]]}, "finite and not negative"),
        ({"members": [[0, 0], *MEMBERS[1:]]}, "no empty bag"),
        ({"members": [[0, k] for k in range(1, 6)], "positives": [0] * 5}, "no empty group"),
        ({"positives": [11, 2, 3, 4, 5]}, "between 0 and the members"),
        ({"positives": [-1, 2, 3, 4, 5]}, "between 0 and the members"),
        ({"positives": [np.nan, 2, 3, 4, 5]}, "between 0 and the members"),
        ({"context": -0.1}, "context must be a number of at least 0"),
        ({"context": np.nan}, "context must be"),
        ({"context": "a lot"}, "such as 0.3, or \"spread\", got 'a lot'"),
        ({"context": None}, "context must be"),
        ({"context": [0.1, 0.2]}, "context must be"),
        ({"confidence": 2}, "confidence"),
        ({"blocks": [1, 2]}, "blocks must have one value per bag"),
    ],
)
def test_malformed_groups(change, words):
    options = {"members": MEMBERS, "positives": [1, 2, 3, 4, 5], "context": 0.2} | change
    with pytest.raises((BagDataError, ValueError), match=words):
        unbag.estimate_groups(options.pop("members"), options.pop("positives"), **options)


def scored(rng, n_bags=40, size=20, *, within=0.0, between=0.0, effect=0.08):
    """Rows whose chances move by `within` more than scores do, by `between` from bag to bag."""
    centre = rng.uniform(0.25, 0.75, size=(n_bags, 1))
    scores = np.clip(centre + 0.25 * rng.uniform(-1, 1, size=(n_bags, size)), 0.02, 0.98)
    means = scores.mean(axis=1, keepdims=True)
    chances = scores + within * (scores - 0.5) + between * (means - 0.5)
    chances = np.clip(chances + effect * rng.normal(size=(n_bags, 1)), 0, 1)
    labels = rng.random(scores.shape) < chances
    bags = Bags.from_arrays(
        np.zeros((scores.size, 1)),
        offsets=np.arange(0, scores.size + 1, size),
        counts=labels.sum(axis=1),
    )
    return scores.ravel(), labels.ravel().astype(float), bags


def metrics_covered(rng, n_draws=40, **options):
    held = []
    for _ in range(n_draws):
        scores, labels, bags = scored(rng, **options)
        found = metric_bounds(scores, bags, None, 0.4, units=None, confidence=0.95)
        true = label_metrics(scores, labels)
        held.append(
            [
                found[m].smooth_low <= true[m] + 1e-9 and true[m] - 1e-9 <= found[m].smooth_high
                for m in ("error", "brier", "auc", "log_loss")
            ]
        )
    return np.mean(held, axis=0)


@pytest.mark.statistical
def test_metrics_are_covered_where_chances_are_smooth_and_not_elsewhere(rng):
    for within, between in ((0.0, 0.0), (-0.4, 0.4)):
        assert (metrics_covered(rng, within=within, between=between) > 0.8).all()
    assert (metrics_covered(rng, within=-1.2, between=1.2) < 0.5).all()


def test_a_metric_lies_where_its_sum_lies_between_the_extremes(rng):
    """Metrics are linear in their sums, so the labels' own sums give the labels' own metrics."""
    from unbag.evaluation.natural import extreme_labels

    scores, labels, bags = scored(rng, 6, 5)
    worst, best = extreme_labels(scores, bags)
    ends = [label_metrics(scores, one) for one in (worst, best, labels)]
    sums = {"": scores > 0.5, "brier": scores, "auc": stats.rankdata(scores)}
    sums["log_loss"] = np.log(scores / (1 - scores))
    for name, true in ends[2].items():
        values = sums.get(name, sums[""])
        place = values @ (labels - worst) / (values @ (best - worst))
        assert ends[0][name] + place * (ends[1][name] - ends[0][name]) == pytest.approx(true)


def test_evaluate_shows_intervals_only_if_a_smoothness_is_stated(rng):
    scores, _, bags = scored(rng)
    plain = unbag.evaluate(scores, bags, grouping="natural")
    assert np.isnan(plain["error"].if_smooth) and "if smooth" not in str(plain)
    found = unbag.evaluate(scores, bags, grouping="natural", smoothness=0.3)
    error = found["error"]
    assert error.low <= error.smooth_low <= error.if_smooth <= error.smooth_high <= error.high
    shown = " ".join(str(found).split())
    assert "95 % if smooth" in shown and "by 0.07 to 0.13 on average" in shown
    assert error.interval in str(error) and found.to_dict()["smoothness"] == 0.3
    wide = unbag.evaluate(scores, bags, grouping="natural", smoothness=1.0)["error"]
    assert wide.smooth_high - wide.smooth_low > error.smooth_high - error.smooth_low


def test_blocks_widen_intervals_of_metrics(rng):
    scores, _, bags = scored(rng, 60, effect=0.0)
    shift = np.repeat(0.15 * rng.normal(size=6), 10)
    counts = rng.binomial(20, np.clip(bags.mean(scores) + shift, 0, 1))
    bags = Bags.from_arrays(bags.X, offsets=np.arange(0, 1201, 20), counts=counts)
    ends = [
        evaluate_natural(scores, bags, smoothness=0.1, blocks=blocks)["error"]
        for blocks in (None, np.repeat(np.arange(6), 10))
    ]
    assert np.diff([ends[1].smooth_low, ends[1].smooth_high]) > np.diff(
        [ends[0].smooth_low, ends[0].smooth_high]
    )


@pytest.mark.parametrize("smoothness", [-0.1, np.nan, np.inf, "smooth", True, [0.1]])
def test_malformed_smoothness(smoothness, rng):
    scores, _, bags = scored(rng, 5, 4)
    with pytest.raises(BagDataError, match="smoothness must be a number of at least 0"):
        unbag.evaluate(scores, bags, grouping="natural", smoothness=smoothness)


def test_hard_predictions_have_intervals_too(rng):
    scores, _, bags = scored(rng)
    found = unbag.evaluate((scores > 0.5).astype(float), bags, grouping="natural", smoothness=1.0)
    error = found["error"]
    assert 0 <= error.low <= error.smooth_low < error.smooth_high <= error.high <= 1
