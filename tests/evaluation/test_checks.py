"""`check_bags`: silent on random bags, loud on others, and right about the direction."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from unbag.bags import Bags, BagTarget, make_bags
from unbag.errors import BagDataError, BagDataWarning
from unbag.evaluation import (
    BagReport,
    Finding,
    check_bags,
    check_made_bags,
    evaluate,
    privacy_noise,
)
from unbag.evaluation.bag_tests import dispersion, size_drift
from unbag.evaluation.checks import CHECKS, find_grouping


def random_bags(rng, *, n_bags=60, bag_size=15, prior=0.3, unequal=False):
    sizes = rng.integers(3, 2 * bag_size, n_bags) if unequal else np.full(n_bags, bag_size)
    X = rng.normal(size=(sizes.sum(), 4))
    labels = rng.random(sizes.sum()) < prior
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    counts = np.add.reduceat(labels, offsets[:-1]).astype(float)
    return X, labels, offsets, counts


@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("bag_size", [4, 40])
def test_random_bags_raise_no_more_than_the_level(rng, unequal, bag_size):
    raised = []
    for _ in range(150):
        X, _, offsets, counts = random_bags(rng, bag_size=bag_size, unequal=unequal)
        report = check_made_bags(Bags.from_arrays(X, offsets=offsets, counts=counts))
        raised.append(not report.plausible)
    # Four standard errors above the nominal 5 %.
    assert np.mean(raised) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 150)


@pytest.mark.parametrize("spread", [0, 2], ids=["equal", "lognormal"])
def test_rare_labels_are_no_reason_to_raise_anything(rng, spread):
    """Where few positives fall into few bags, the gamma law of the dispersion is a bad one."""
    raised = []
    for _ in range(100):
        sizes = np.maximum(np.rint(30 * np.exp(spread * rng.normal(size=80))), 1).astype(int)
        labels = rng.random(sizes.sum()) < 0.002
        starts = np.cumsum(sizes) - sizes
        bags = Bags.from_arrays(
            rng.normal(size=(len(labels), 1)),
            offsets=np.append(starts, len(labels)),
            counts=np.add.reduceat(labels, starts).astype(float),
        )
        raised.append(not check_made_bags(bags).plausible)
    assert np.mean(raised) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 100)


def test_a_class_that_does_not_occur_raises_nothing(rng):
    classes = np.eye(4)[rng.integers(3, size=1200)]
    report = check_made_bags(make_bags(rng.normal(size=(1200, 2)), classes, bag_size=20, seed=0))
    assert report.plausible


DATA = {"breast cancer": load_breast_cancer, "digits": load_digits, "wine": load_wine}


def real_data(name):
    X, classes = DATA[name](return_X_y=True)
    return X, (classes == classes.max()).astype(float)


def commonest_share(X):
    """Share of the commonest value of each feature: near one, the feature groups nothing."""
    return np.array([np.unique(x, return_counts=True)[1].max() / len(x) for x in X.T])


@pytest.mark.parametrize("name", DATA)
def test_real_bags_grouped_by_a_feature_are_found_every_time(rng, name):
    X, labels = real_data(name)
    found = 0
    for _ in range(100):
        rows = rng.permutation(len(X))[: int(0.8 * len(X))]
        feature = rng.choice(np.flatnonzero(commonest_share(X) < 0.8))
        order = rows[np.lexsort((rng.random(len(rows)), X[rows, feature]))]
        n_bags = len(order) // 8
        bags = Bags.from_arrays(
            X[order[: 8 * n_bags]],
            offsets=np.arange(0, 8 * n_bags + 1, 8),
            counts=labels[order[: 8 * n_bags]].reshape(n_bags, 8).sum(axis=1),
        )
        found += check_made_bags(bags)["homogeneity"].raised
    assert found == 100


@pytest.mark.parametrize("name", DATA)
def test_real_bags_at_random_raise_no_more_than_the_level(rng, name):
    X, labels = real_data(name)
    raised = [
        not check_made_bags(
            make_bags(X, labels, bag_size=8, seed=int(s), remainder="drop")
        ).plausible
        for s in rng.integers(0, 2**31, 100)
    ]
    assert np.mean(raised) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 100)


def rare_values(rng, n_rows):
    """Features most of which are zero, some but for a row or two."""
    marks = rng.random((n_rows, 12)) < np.geomspace(1 / n_rows, 0.1, 12)
    return np.concatenate([marks, np.eye(20)[rng.integers(0, 20, n_rows)]], axis=1)


def test_no_check_exceeds_its_level(rng):
    n_draws = 400
    p_values = np.zeros((n_draws, len(CHECKS)))
    for number in range(n_draws):
        X, labels, offsets, counts = random_bags(rng, unequal=number % 2 == 0)
        X = rare_values(rng, len(X)) if number % 4 < 2 else X
        X = np.column_stack([X, labels])  # features that say nothing are one of the findings
        bags = Bags.from_arrays(X, offsets=offsets, counts=counts)
        blocks = np.arange(60) % 7
        p_values[number] = [check.answer(bags, blocks).p_value for check in CHECKS.values()]
    asked = (~np.isnan(p_values)).sum(axis=0)
    alarms = (p_values <= 0.05).sum(axis=0)
    # No number has one value a bag by chance, so that one question never arises.
    assert [name for name, n in zip(CHECKS, asked, strict=True) if not n] == ["one_value"]
    # A check at its level exceeds this once in 10,000 seeds.
    assert (alarms <= stats.binom.isf(1e-4, np.maximum(asked, 1), 0.05)).all(), dict(
        zip(CHECKS, alarms, strict=True)
    )


def test_a_rare_value_that_keeps_to_a_bag_is_found(rng):
    X, _, offsets, counts = random_bags(rng)
    rare = np.zeros((len(X), 1))
    rare[offsets[7] : offsets[7] + 6] = 1
    report = check_made_bags(Bags.from_arrays(rare, offsets=offsets, counts=counts))
    assert report["homogeneity"].raised


def grouped(rng, *, by):
    X = rng.normal(size=(1200, 3))
    labels = (X[:, 0] + 0.5 * rng.normal(size=1200) > 0).astype(float)
    order = np.argsort(X[:, 0] + by * rng.normal(size=1200))
    counts = labels[order].reshape(60, 20).sum(axis=1)
    return Bags.from_arrays(X[order], offsets=np.arange(0, 1201, 20), counts=counts)


def test_overdispersion_is_called_upper(rng):
    report = check_made_bags(grouped(rng, by=2.0))
    assert report["dispersion"].raised and report["dispersion"].effect > 1
    assert report.bias == "upper" and "upper" in report.verdict


def test_stratified_bags_are_called_lower(rng):
    labels = np.tile([0.0, 1.0], 600)
    bags = Bags.from_arrays(
        rng.normal(size=(1200, 3)), offsets=np.arange(0, 1201, 20), counts=np.full(60, 10)
    )
    assert labels.mean() == 0.5
    report = check_made_bags(bags)
    assert report["dispersion"].raised and report["dispersion"].effect < 1
    assert report["dispersion"].bias == "lower"


def test_duplicates_are_found(rng):
    X, _, offsets, counts = random_bags(rng)
    X[offsets[5] : offsets[5] + 9] = X[:9]
    report = check_made_bags(Bags.from_arrays(X, offsets=offsets, counts=counts))
    assert report["duplicates"].raised and "9 instances" in report["duplicates"].detail
    coarse = check_made_bags(Bags.from_arrays(np.sign(X), offsets=offsets, counts=counts))
    assert not coarse["duplicates"].raised


def test_two_rows_that_happen_to_be_equal_raise_nothing(rng):
    X, _, offsets, counts = random_bags(rng)
    X[offsets[5]] = X[0]
    report = check_made_bags(Bags.from_arrays(X, offsets=offsets, counts=counts))
    assert not report["duplicates"].raised
    assert "1 instances" in report["duplicates"].detail and "too few" in report["duplicates"].detail


def test_the_features_that_tell_bags_apart_are_named(rng):
    X, _, offsets, counts = random_bags(rng)
    X[:, 0] = 1.0  # a constant is not asked, and takes no name from the others
    X[:, 2] += np.repeat(np.arange(60), 15)
    bags = Bags.from_arrays(X, offsets=offsets, counts=counts)
    assert check_made_bags(bags)["homogeneity"].detail.endswith("(feature 2)")
    named = check_made_bags(bags, names=["one", "a", "day", "b"])["homogeneity"]
    assert named.raised and "1 of 3 features" in named.detail and named.detail.endswith("(day)")
    frame = pd.DataFrame(X, columns=["one", "a", "day", "b"])
    ids = np.repeat(np.arange(60), 15)
    assert check_bags(frame, bags.proportions[ids], bags=ids)["homogeneity"].detail == named.detail


def test_arrays_and_bags_are_checked_alike(rng):
    X, _, offsets, counts = random_bags(rng)
    made = Bags.from_arrays(X, offsets=offsets, counts=counts)
    ids = np.repeat(np.arange(60), 15)
    arrays = check_bags(X, np.repeat(counts / 15, 15), bags=ids)
    assert str(check_bags(made)) == str(arrays)
    with pytest.raises(BagDataError, match="a Bags as X"):
        check_bags(X, np.repeat(counts / 15, 15))


def test_bags_of_one_class_are_found(rng):
    X, _, offsets, counts = random_bags(rng, prior=0.5)
    counts[:10] = 0
    report = check_made_bags(Bags.from_arrays(X, offsets=offsets, counts=counts))
    assert report["one_class"].raised and "10 bags" in report["one_class"].detail


def test_rounding_is_found_and_its_step_named(rng):
    X, _, _, counts = random_bags(rng, bag_size=14)
    y = np.repeat((counts / 14).round(1), 14)
    report = check_bags(X, y, bags=np.repeat(np.arange(60), 14))
    assert report["rounding"].raised and "0.1" in report["rounding"].detail


def test_suppression_is_found(rng):
    X, _, offsets, counts = random_bags(rng, bag_size=40, prior=0.1, n_bags=150)
    counts[counts < 5] = 0
    report = check_made_bags(Bags.from_arrays(X, offsets=offsets, counts=counts))
    assert report["suppression"].raised and "from 1 to 4" in report["suppression"].detail
    assert report.bias == "unreliable"


def test_clipping_is_found(rng):
    X, _, offsets, counts = random_bags(rng, bag_size=100, prior=0.2, n_bags=80)
    counts = np.clip(counts, 17, 23)
    report = check_made_bags(Bags.from_arrays(X, offsets=offsets, counts=counts))
    assert report["clipping"].raised


def test_size_drift_is_found(rng):
    sizes = rng.integers(5, 60, 80)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    counts = rng.binomial(sizes, 0.2 + 0.4 * sizes / 60).astype(float)
    bags = Bags.from_arrays(rng.normal(size=(sizes.sum(), 2)), offsets=offsets, counts=counts)
    report = check_made_bags(bags)
    assert report["size_drift"].raised and report["size_drift"].effect > 0


def test_noise_is_not_mistaken_for_anything(rng):
    raised = 0
    for _ in range(100):
        X, _, offsets, counts = random_bags(rng, bag_size=20)
        noisy = counts / 20 + 0.05 * rng.normal(size=60)
        bags = Bags.from_arrays(X, offsets=offsets, proportions=noisy, noise_variance=0.05**2)
        raised += not check_made_bags(bags).plausible
    assert raised <= 100 * (0.05 + 4 * np.sqrt(0.05 * 0.95 / 100))


def test_multiclass_bags(rng):
    classes = rng.integers(0, 3, 900)
    bags = make_bags(rng.normal(size=(900, 2)), np.eye(3)[classes], bag_size=15, seed=0)
    assert check_made_bags(bags).plausible


def test_report_reads_and_exports(rng):
    X, _, _, counts = random_bags(rng)
    ids = np.repeat(np.arange(60), 15)
    report = check_bags(X, BagTarget(ids, np.repeat(counts / 15, 15)))
    assert "No evidence against" in str(report)
    assert set(report.to_frame().columns) >= {"p_value", "effect", "bias", "advice"}
    with pytest.raises(BagDataError, match="needs the bags"):
        check_bags(X, np.repeat(counts / 15, 15))


def with_bag_values(rng, values_of, n_bags=60):
    """Random bags of unequal sizes with one more feature, made from their proportions."""
    sizes = rng.integers(5, 40, n_bags)
    X = rng.normal(size=(sizes.sum(), 2))
    labels = X[:, 0] + rng.normal(size=len(X)) > 0
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    counts = np.add.reduceat(labels, offsets[:-1], dtype=float)
    X = np.column_stack([X, np.repeat(values_of(counts, sizes), sizes)])
    return Bags.from_arrays(X, offsets=offsets, counts=counts)


def test_a_number_counted_from_labels_makes_the_estimate_unreliable(rng):
    """Once it was called an upper one, with the advice to include such features."""
    bags = with_bag_values(rng, lambda counts, sizes: np.round(counts / sizes, 1))
    report = check_made_bags(bags, names=["a", "b", "rate"], level=1e-6)
    assert report.bias == "unreliable" and not report["homogeneity"].raised
    assert report["one_value"].detail.endswith("(rate)") and report["one_value"].effect > 0.9
    assert "Leave out columns that were computed from labels" in report["one_value"].advice


def test_a_number_of_bags_that_labels_do_not_follow_may_stay(rng):
    draws = [with_bag_values(rng, lambda counts, sizes: rng.random(len(sizes))) for _ in range(40)]
    reports = [check_made_bags(bags, level=1e-6) for bags in draws]
    assert all(report["one_value"].raised for report in reports)
    # Chance has 1 in 20 go with the proportions, and 9 of 40 once in 10,000 seeds.
    assert sum(report.bias == "upper" for report in reports) > 31


def test_numbers_that_vary_within_bags_or_are_categories_are_not_asked_about(rng):
    two = with_bag_values(rng, lambda counts, sizes: (rng.random(len(sizes)) > 0.5) * 1.0)
    report = check_made_bags(two)
    assert np.isnan(report["one_value"].p_value) and report["homogeneity"].raised
    single = Bags.from_arrays(rng.normal(size=(30, 2)), bags=np.arange(30), y=np.arange(30) % 2)
    assert np.isnan(check_made_bags(single)["one_value"].p_value)


def test_a_category_made_from_labels_makes_the_estimate_unreliable(rng):
    """Bags of one band scatter less than chance has it; those of one region never do."""
    leak = with_bag_values(rng, lambda counts, sizes: (counts / sizes > 0.5) * 1.0, n_bags=150)
    report = check_made_bags(leak)
    assert report.bias == "unreliable" and report["one_value"].raised

    region = np.repeat(rng.random(150) > 0.5, 20)
    labels = rng.random(len(region)) < np.where(region, 0.7, 0.3)
    X = np.column_stack([rng.normal(size=len(region)), region])
    bags = Bags.from_arrays(
        X, offsets=np.arange(0, 3001, 20), counts=labels.reshape(150, 20).sum(1)
    )
    report = check_made_bags(bags)
    assert np.isnan(report["one_value"].p_value) and report["homogeneity"].raised


def test_a_feature_named_like_markup_is_shown():
    finding = Finding("homogeneity", 0.0, 1.0, "by [/x]member (age [y])", True, "upper", "")
    text = str(BagReport([finding], n_bags=9, level=0.05))
    assert "by [/x]member (age [y])" in text


def test_no_rounding_is_spoken_of_where_no_step_fits(rng):
    X, _, offsets, _ = random_bags(rng)
    with pytest.warns(BagDataWarning, match="no whole count"):
        bags = Bags.from_arrays(X, offsets=offsets, proportions=rng.random(60))
    finding = check_made_bags(bags)["rounding"]
    assert finding.raised and finding.detail == "proportions are no counts"


def telling_bags(rng, labels_of, *, n_bags=200, bag_size=50):
    """Bags of rows whose labels, given the bag's number, are drawn with chances `labels_of`."""
    X = rng.normal(size=(n_bags * bag_size, 3))
    bag = np.repeat(np.arange(n_bags), bag_size)
    labels = rng.random(len(X)) < labels_of(2 * X[:, 0], bag)
    counts = np.add.reduceat(labels, np.arange(0, len(X), bag_size)).astype(float)
    return X, bag, counts / bag_size


def test_a_drift_of_the_labels_is_found(rng):
    """Silent before, in half the cases and more, if the logit of the prior moves by 1.2 in all."""
    X, bag, y = telling_bags(rng, lambda x, b: special.expit(x + 1.2 * b / 200 - 0.6))
    report = check_bags(X, y[bag], bags=bag)
    assert report["trend"].raised
    assert report.bias == "upper"
    order = rng.permutation(200)
    shuffled = check_bags(X, y[order][bag], bags=bag)
    assert not shuffled["trend"].raised


def test_bags_that_are_listed_by_their_proportion_have_no_order(rng):
    X, _, offsets, counts = random_bags(rng)
    report = check_made_bags(Bags.from_arrays(X, offsets=offsets, counts=np.sort(counts)))
    assert np.isnan(report["trend"].p_value)
    assert "listed by their proportion" in report["trend"].detail


@pytest.mark.parametrize("form", ["per instance", "per bag", "mapping"])
def test_blocks_of_bags_that_are_alike_are_found(rng, form):
    effects = 0.4 * rng.normal(size=10)
    X, bag, y = telling_bags(rng, lambda x, b: special.expit(x + effects[b % 10]))
    region = np.array([f"region {b % 10}" for b in range(200)])
    blocks = {
        "per instance": region[bag],
        "per bag": region,
        "mapping": dict(enumerate(region)),
    }[form]
    assert check_bags(X, y[bag], bags=bag, blocks=blocks)["blocks"].raised
    assert not check_bags(X, y[bag], bags=bag, blocks=rng.permutation(region))["blocks"].raised
    with pytest.raises(BagDataError, match="blocks must have one value per bag"):
        check_bags(X, y[bag], bags=bag, blocks=region[:7])


def test_proportions_of_other_bags_are_found(rng):
    X, bag, y = telling_bags(rng, lambda x, b: special.expit(x), n_bags=400, bag_size=20)
    assert check_bags(X, y[bag], bags=bag).plausible
    wrong = check_bags(X, rng.permutation(y)[bag], bags=bag)
    assert [finding.check for finding in wrong.raised] == ["signal"]
    assert "joined to its own bag" in wrong["signal"].advice
    assert wrong.bias == "none"


def test_copies_are_found_among_rows_that_repeat_by_nature(rng):
    X = rng.integers(0, 2, size=(4000, 12))
    bag = np.repeat(np.arange(80), 50)
    y = rng.binomial(50, 0.3, 80)[bag] / 50
    assert not check_bags(X, y, bags=bag)["duplicates"].raised
    X[2000:] = X[:2000]  # every row of the first forty bags again in another
    found = check_bags(X, y, bags=bag)["duplicates"]
    assert found.raised
    assert found.effect > 0.5


@pytest.mark.parametrize(("size", "step"), [(500, 0.01), (1000, 0.01), (100, 0.1)])
def test_rounding_to_whole_counts_is_found_and_repaired(rng, size, step):
    """Multiples of 0.01 are whole counts of 500, so nothing was said of 38 % too much error."""
    errors, n_bags = 0.01, 200
    labels = rng.random((n_bags, size)) < 0.4
    hard = labels ^ (rng.random((n_bags, size)) < errors)
    bag = np.repeat(np.arange(n_bags), size)
    y = np.round(labels.mean(axis=1) / step) * step
    with pytest.warns(BagDataWarning, match=f"multiples of {step:g}"):
        biased = evaluate(hard.ravel() * 1.0, None, y[bag], bags=bag)["error"]
    X = labels.reshape(-1, 1) + rng.normal(size=(len(bag), 1))
    report = check_bags(X, y[bag], bags=bag)
    assert [finding.check for finding in report.raised] == ["rounding"]
    assert 'noise_variance="rounding"' in report["rounding"].advice
    repaired = evaluate(hard.ravel() * 1.0, None, y[bag], bags=bag, noise_variance="rounding")[
        "error"
    ]
    truth = (hard != labels).mean()
    assert abs(repaired.value - truth) < 4 * repaired.standard_error
    assert biased.value > truth + 0.003


@pytest.mark.parametrize("mechanism", ["geometric", "laplace"])
def test_heavy_noise_that_is_known_is_no_dispersion(mechanism):
    """The shifted gamma law gave 8 to 10 % of such bags a chance of next to nothing."""
    rng, alarms, n_draws = np.random.default_rng(0), np.zeros(2), 300
    for _ in range(n_draws):
        sizes = np.maximum(np.rint(20 * np.exp(rng.normal(size=60))), 1).astype(int)
        noise = rng.laplace(0, 2, 60)
        if mechanism == "geometric":
            noise = rng.geometric(1 - np.exp(-0.5), 60) - rng.geometric(1 - np.exp(-0.5), 60)
        counts = rng.binomial(sizes, 0.3) + noise
        variance = privacy_noise(mechanism, sizes, epsilon=0.5).variance
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        bags = Bags.from_arrays(
            np.zeros((sizes.sum(), 1)),
            offsets=offsets,
            proportions=counts / sizes,
            noise_variance=variance,
        )
        alarms += [dispersion(bags).p_value <= 0.05, size_drift(bags).p_value <= 0.05]
    assert (alarms <= stats.binom.isf(1e-3, n_draws, 0.05)).all()


def test_bags_are_no_target():
    bags = make_bags(np.zeros((20, 1)), np.arange(20) % 2, bag_size=5, seed=0)
    with pytest.raises(BagDataError, match="Pass a Bags as X"):
        evaluate(np.zeros(20), None, bags)


def test_exact_questions_are_not_asked_of_noisy_proportions(rng):
    X, _, offsets, counts = random_bags(rng, unequal=False)
    bags = Bags.from_arrays(X, offsets=offsets, counts=counts)
    noisy = replace(bags, noise_variance=np.full(bags.n_bags, 0.01))
    asked = [name for name, check in CHECKS.items() if not np.isnan(check.answer(bags).p_value)]
    assert "rounding" in asked
    for name in ("one_class", "rounding", "suppression", "clipping"):
        assert np.isnan(CHECKS[name].answer(noisy).p_value)
        assert CHECKS[name].answer(noisy).detail == "proportions are noisy"


def amounts(rng, order=None, size=20):
    """Averages of heavy-tailed amounts that depend on a feature; bags by `order`, or at random."""
    X = rng.normal(size=(1200, 3))
    values = np.exp(X[:, 0] + rng.normal(size=1200))
    order = rng.permutation(1200) if order is None else np.argsort(X[:, order])
    ids = np.empty(1200, dtype=int)
    ids[order] = np.arange(1200) // size
    averages = np.bincount(ids, values) / size
    return Bags.from_arrays(X, bags=ids, y=averages[ids], task="amount")


def test_random_bags_of_amounts_raise_no_more_than_the_level(rng):
    raised = [not check_made_bags(amounts(rng)).plausible for _ in range(150)]
    assert np.mean(raised) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 150)


def test_amounts_of_groups_that_are_alike_are_found_and_so_is_a_wrong_join(rng):
    bags = amounts(rng, order=1)
    y = bags.proportions[bags.bag_of_row]
    alike = check_bags(bags.X, y, bags=bags.bag_of_row, task="amount")
    assert alike["homogeneity"].raised and alike.bias == "upper"
    small = amounts(rng, size=4)
    wrong = replace(small, proportions=rng.permutation(small.proportions))
    assert check_made_bags(wrong)["signal"].raised and not check_made_bags(small)["signal"].raised
    assert find_grouping(amounts(rng)) == "random"
    assert find_grouping(amounts(rng, order=1)) == "natural"
