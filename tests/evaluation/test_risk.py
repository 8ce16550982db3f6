"""The risk from bags: unbiased, weighted well, and inside its interval as often as promised."""

import numpy as np
import pytest
import torch

from unbag.bags import Bags
from unbag.bags.batch import BagBatch
from unbag.errors import BagDataError
from unbag.evaluation import Estimate, estimate_risk, pairwise_value
from unbag.evaluation.intervals import ResidualMoments, pearson_quantile
from unbag.evaluation.risk import risk_from_residuals
from unbag.evaluation.weighting import fit_variance, weighted_fit
from unbag.rules.debiased_square import pairwise_risk


def draw_residuals(rng, sizes, *, risk, noise=0.0):
    """Bag residuals of a hard classifier with this error, 0.6 of it false positives."""
    counts = rng.multinomial(sizes, [0.6 * risk, 0.4 * risk, 1 - risk])
    exact = (counts[:, 0] - counts[:, 1]) / sizes
    return (exact + rng.normal(size=len(sizes)) * np.sqrt(noise))[:, None]


def bias_in_standard_errors(estimate, truth, n_draws):
    values = np.array([estimate() for _ in range(n_draws)])
    return abs(values.mean() - truth) / values.std() * n_draws**0.5


def test_agrees_with_the_rule(rng):
    sizes, noise = rng.integers(1, 9, 12), rng.uniform(0, 0.01, 12)
    residuals = rng.normal(size=(12, 3))
    batch = BagBatch(
        torch.zeros(12, 3, dtype=torch.double),
        torch.as_tensor(sizes),
        noise_variance=torch.as_tensor(noise),
        task="multiclass",
    )
    expected = pairwise_risk(torch.as_tensor(residuals), batch).item()
    assert pairwise_value(residuals, sizes, noise) == pytest.approx(expected)


@pytest.mark.parametrize("weights", ["optimal", "size"])
def test_unbiased_for_unequal_noisy_bags(rng, weights):
    sizes = rng.integers(2, 40, 12).astype(float)
    noise = 0.2 / sizes**2

    def estimate():
        residuals = draw_residuals(rng, sizes.astype(int), risk=0.2, noise=noise)
        return fit_variance(residuals, sizes, noise, law=ResidualMoments(), weights=weights).risk

    assert bias_in_standard_errors(estimate, 0.2, 3000) < 4


@pytest.mark.parametrize("risk", [0.5, 0.9])
def test_a_risk_near_its_highest_leaves_weight_to_all_bags(rng, risk):
    """Half of the bags may say more than one; bags of one then seem not to vary at all."""
    sizes = np.tile([1.0, 2.0, 5.0, 9.0], 5)

    def estimate():
        residuals = draw_residuals(rng, sizes.astype(int), risk=risk)
        return fit_variance(residuals, sizes, np.zeros(20), law=ResidualMoments()).risk

    assert bias_in_standard_errors(estimate, risk, 2000) < 4


def test_the_bias_check_rejects_weights_that_look_at_the_residuals(rng):
    sizes = rng.integers(2, 40, 12).astype(float)

    def estimate():
        residuals = draw_residuals(rng, sizes.astype(int), risk=0.2)
        peeking = 1 / (0.01 + sizes * residuals[:, 0] ** 2)
        return weighted_fit(residuals, sizes, np.zeros(12), peeking, sizes).risk

    assert bias_in_standard_errors(estimate, 0.2, 3000) > 4


def test_optimal_weights_lower_the_variance(rng):
    sizes = np.repeat([2.0, 50.0], 30)
    law = ResidualMoments()
    values = {"optimal": [], "size": []}
    for _ in range(600):
        residuals = draw_residuals(rng, sizes.astype(int), risk=0.05)
        for name, found in values.items():
            found.append(fit_variance(residuals, sizes, np.zeros(60), law=law, weights=name).risk)
    assert np.var(values["optimal"]) < 0.8 * np.var(values["size"])


def coverage(rng, sizes, *, risk, noise=0.0, n_draws=800, interval=None):
    noise = np.broadcast_to(noise, len(sizes))
    hits = 0
    for _ in range(n_draws):
        residuals = draw_residuals(rng, sizes, risk=risk, noise=noise)
        low, high = (interval or own_interval)(residuals, sizes, noise)
        hits += low <= risk <= high
    return hits / n_draws


def own_interval(residuals, sizes, noise):
    law = ResidualMoments(noise_kurtosis=0.0)  # the noise drawn is normal
    found = risk_from_residuals(residuals, sizes, noise, law=law)
    return found.low, found.high


def normal_interval(residuals, sizes, noise):
    parts = sizes * ((residuals[:, 0] - residuals.mean()) ** 2 - noise)
    half = 1.96 * parts.std(ddof=1) / len(sizes) ** 0.5
    return parts.mean() - half, parts.mean() + half


@pytest.mark.parametrize("risk", [0.02, 0.3])
@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_intervals_cover_where_normal_ones_do_not(rng, risk, noise):
    sizes = np.full(30, 50)
    assert 0.925 <= coverage(rng, sizes, risk=risk, noise=noise) <= 0.975
    assert coverage(rng, sizes, risk=risk, noise=noise, interval=normal_interval) < 0.925


def test_six_hundred_bags_of_a_hundred_are_worth_twelve_thousand_labels(rng):
    sizes = np.full(600, 100)
    found = [
        risk_from_residuals(
            draw_residuals(rng, sizes, risk=0.02), sizes, np.zeros(600), law=ResidualMoments()
        )
        for _ in range(300)
    ]
    labels = 0.02 * 0.98 / np.var([f.value for f in found])
    # A variance from 300 draws is known to a standard error of 8 %.
    assert labels == pytest.approx(12_000, rel=0.3)
    claimed = np.mean([f.value * (1 - f.value) / f.standard_error**2 for f in found])
    assert claimed == pytest.approx(12_000, rel=0.05)


def test_hard_and_soft_losses_against_the_labels(rng):
    labels = rng.integers(0, 2, 6000)
    scores = np.clip(0.7 * labels + 0.3 * rng.random(6000), 0, 1)
    scores[::7] = 1 - scores[::7]
    bags = Bags.from_arrays(
        np.zeros((6000, 1)), offsets=np.arange(0, 6001, 6), counts=labels.reshape(-1, 6).sum(1)
    )
    for loss, truth in [
        ("zero_one", np.mean((scores > 0.5) != labels)),
        ("square", np.mean((scores - labels) ** 2)),
    ]:
        found = estimate_risk(scores, bags, loss=loss)
        assert abs(found.value - truth) < 4 * found.standard_error
        assert found.low < found.value < found.high
    tensor = torch.tensor(scores, requires_grad=True)
    assert estimate_risk(tensor, bags) == estimate_risk(scores, bags)


def test_multiclass_error_is_half_the_summed_square(rng):
    labels = rng.integers(0, 3, 900)
    guesses = np.where(rng.random(900) < 0.3, rng.integers(0, 3, 900), labels)
    scores = 0.8 * np.eye(3)[guesses] + 0.2 / 3
    bags = Bags.from_arrays(
        np.zeros((900, 1)), offsets=np.arange(901), proportions=np.eye(3)[labels]
    )
    found = estimate_risk(scores, bags)
    assert found.value == pytest.approx(np.mean(guesses != labels))
    # Bags of one are labelled instances: the interval is that of a binomial share.
    binomial = np.sqrt(found.value * (1 - found.value) / 900)
    assert found.standard_error == pytest.approx(binomial, rel=0.15)


def test_weights_of_the_square_loss_do_not_look_at_the_proportions(rng, monkeypatch):
    sizes = np.tile([2, 50], 10)
    offsets, scores = np.append(0, np.cumsum(sizes)), rng.random(sizes.sum())
    labels = rng.random(len(scores)) < scores
    proportions = np.add.reduceat(labels.astype(float), offsets[:-1]) / sizes
    laws = []

    def noted(*data, law, **options):
        laws.append(law)
        return fit_variance(*data, law=law, **options)

    monkeypatch.setattr("unbag.evaluation.risk.fit_variance", noted)
    for changed in (proportions, 1 - proportions):
        bags = Bags.from_arrays(scores[:, None], offsets=offsets, proportions=changed)
        estimate_risk(scores, bags, loss="square", noise_kurtosis=0.0)
    assert laws[0] == laws[1]


def multilabel_bags(rng, wrong, *, bag_size=10):
    """Bags of several labels and predictions of which `wrong`, (n_instances, n_labels), are not."""
    labels = rng.random(wrong.shape) < 0.3
    offsets = np.arange(0, len(wrong) + 1, bag_size)
    proportions = labels.reshape(-1, bag_size, wrong.shape[1]).mean(axis=1)
    bags = Bags.from_arrays(
        np.zeros((len(wrong), 1)), offsets=offsets, proportions=proportions, task="multilabel"
    )
    return (labels ^ wrong).astype(float), bags


@pytest.mark.parametrize("loss", ["zero_one", "square"])
def test_the_interval_of_many_labels_reaches_beyond_two_wrong_ones(rng, loss):
    hard, bags = multilabel_bags(rng, rng.random((2000, 10)) < 0.3)
    found = estimate_risk(0.98 * hard + 0.01, bags, loss=loss)
    assert found.low < 0.3 < found.high
    assert found.low < found.value < found.high
    assert found.high - found.low == pytest.approx(4 * found.standard_error, rel=0.1)


@pytest.mark.parametrize("n_labels", [3, 10])
@pytest.mark.parametrize("together", [False, True])
def test_intervals_cover_whether_or_not_labels_are_wrong_together(rng, n_labels, together):
    n_draws, found = 400, []
    for _ in range(n_draws):
        wrong = rng.random((1000, 1 if together else n_labels)) < 0.1
        found.append(
            estimate_risk(*multilabel_bags(rng, np.tile(wrong, n_labels // wrong.shape[1])))
        )
    share = np.mean([f.low <= 0.1 <= f.high for f in found])
    assert abs(share - 0.95) < 4 * np.sqrt(0.95 * 0.05 / n_draws)
    ideal = 2 * 1.96 * np.std([f.value for f in found])
    assert np.mean([f.high - f.low for f in found]) == pytest.approx(ideal, rel=0.15)


def test_no_wrong_class_or_label_gives_the_rule_of_three(rng):
    hard, bags = multilabel_bags(rng, np.zeros((100, 3), bool))
    assert estimate_risk(hard, bags).high == pytest.approx(0.03, abs=0.001)
    classes = np.eye(3)[rng.integers(0, 3, 100)]
    bags = Bags.from_arrays(np.zeros((100, 1)), offsets=np.arange(101), proportions=classes)
    assert estimate_risk(classes, bags).high == pytest.approx(0.03, abs=0.003)


def test_one_instance_bags_give_the_binomial_deviation(rng):
    labels = rng.integers(0, 2, 400).astype(float)
    scores = np.where(rng.random(400) < 0.1, 1 - labels, labels)
    bags = Bags.from_arrays(np.zeros((400, 1)), offsets=np.arange(401), counts=labels)
    found = estimate_risk(scores, bags)
    assert found.value == pytest.approx(np.mean(scores != labels))
    assert found.standard_error == pytest.approx(np.sqrt(found.value * 0.9 / 400), rel=0.05)


def test_a_perfect_classifier_still_has_a_width():
    bags = Bags.from_arrays(np.zeros((100, 1)), offsets=np.arange(0, 101, 5), y=np.full(100, 0.4))
    hard = np.tile([1.0, 0.0, 1.0, 0.0, 0.0], 20)
    found = estimate_risk(hard, bags)
    assert found.value == 0 and found.low == 0
    # None wrong of 100 gives 0.03 by the rule of three.
    assert found.high == pytest.approx(0.03, abs=0.001)


def test_a_negative_estimate_is_reported_as_it_is():
    bags = Bags.from_arrays(
        np.zeros((40, 1)), offsets=np.arange(0, 41, 2), y=np.full(40, 0.5), noise_variance=0.04
    )
    found = estimate_risk(np.tile([0.0, 1.0], 20), bags)
    assert found.value < 0 <= found.low <= found.high


@pytest.mark.parametrize(
    ("scores", "message"), [(np.zeros(3), "shape"), (np.full(4, 1.5), "probabilities")]
)
def test_bad_scores_are_named(scores, message):
    bags = Bags.from_arrays(np.zeros((4, 1)), offsets=[0, 2, 4], counts=[1, 1])
    with pytest.raises(BagDataError, match=message):
        estimate_risk(scores, bags)
    with pytest.raises(ValueError, match="loss"):
        estimate_risk(np.zeros(4), bags, loss="hinge")


def test_reads_as_a_sentence():
    text = Estimate(0.031, 0.022, 0.043, 0.005, n_bags=120).percent
    assert text == "3.1 % (95 % interval 2.2 to 4.3 %), from 120 bags"


def test_pearson_quantiles_are_those_of_a_gamma():
    from scipy import stats

    for skewness in (-0.7, 0.0, 0.4, 2.0):
        expected = stats.pearson3.ppf(0.9, skewness)
        assert pearson_quantile(0.9, skewness) == pytest.approx(expected, abs=1e-3)
