"""Which task proportions belong to: exact, rounded, noisy, almost, or said."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from unbag.bags import BagBatch
from unbag.bags.tasks import find_task
from unbag.errors import BagDataError, BagDataWarning


def shares(rng, *, n_bags=60, size=7, n_classes=3):
    return rng.multinomial(size, np.ones(n_classes) / n_classes, n_bags) / size


def labels(rng, *, n_bags=60, size=7, n_labels=3):
    return rng.binomial(size, 0.5, (n_bags, n_labels)) / size


def task_of(proportions, size=7, **options):
    return find_task(proportions, np.full(len(proportions), size), **options)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 8), st.integers(2, 5000), st.integers(1, 7))
def test_classes_stay_classes_when_rounded(seed, n_classes, size, decimals):
    exact = shares(np.random.default_rng(seed), size=size, n_classes=n_classes)
    assert task_of(exact.astype(np.float32), size) == "multiclass"
    assume(np.ptp(exact.round(decimals), axis=0).any())  # rates that never vary say nothing
    assert task_of(exact.round(decimals), size) == "multiclass"


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(5, 500), st.integers(1, 7))
def test_labels_stay_labels_when_rounded(seed, n_labels, size, decimals):
    exact = labels(np.random.default_rng(seed), size=size, n_labels=n_labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BagDataWarning)  # two labels of one half each are close
        assert task_of(exact, size) == "multilabel"
        if 10.0**-decimals < 0.3 / np.sqrt(size):  # fewer decimals leave too little of the sums
            assert task_of(exact.round(decimals), size) == "multilabel"


@pytest.mark.parametrize("deviation", [0.0, 0.01, 0.1, 0.3])
@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_noise_does_not_hide_the_task(rng, deviation, law):
    for _ in range(20):
        noise = getattr(rng, law)(0, deviation / (1 if law == "normal" else np.sqrt(2)), (200, 3))
        variance = np.full(200, deviation**2)
        classes = shares(rng, n_bags=200) + noise
        assert task_of(classes, noise_variance=variance) == "multiclass"
        assert task_of(labels(rng, n_bags=200) + noise, noise_variance=variance) == "multilabel"


def test_sums_that_are_almost_one_warn(rng):
    with pytest.warns(BagDataWarning, match=r"add up to 0.97 to 0.97 .* task='multiclass'"):
        assert task_of(0.97 * shares(rng)) == "multilabel"
    assert task_of(0.97 * shares(rng), task="multiclass") == "multiclass"
    assert task_of(0.97 * shares(rng), task="multilabel") == "multilabel"


def test_classes_whose_sums_are_far_from_one_warn(rng):
    with pytest.warns(BagDataWarning, match="Is a class missing"):
        task_of(shares(rng)[:, :2], task="multiclass")


def test_a_task_that_cannot_be_is_refused(rng):
    with pytest.raises(ValueError, match="task must be 'binary', 'multiclass', 'multilabel' or"):
        task_of(shares(rng), task="classes")
    with pytest.raises(BagDataError, match=r"several, got 'binary' for shape \(60, 3\)"):
        task_of(shares(rng), task="binary")
    with pytest.raises(BagDataError, match=r"one column.* got 'multilabel'"):
        task_of(shares(rng)[:, 0], task="multilabel")


def test_a_batch_of_classes_needs_to_be_told():
    batch = BagBatch(torch.full((20, 3), 1 / 3), 5)
    with pytest.raises(ValueError, match='several classes need task="multiclass"'):
        batch.outputs(torch.zeros(100, 3))
    with pytest.raises(ValueError, match=r"(?s)^(?!.*multiclass)"):
        BagBatch(torch.full((20,), 0.5), 5).outputs(torch.zeros(99))


def test_sums_that_are_one_on_average_warn(rng):
    """Noise that nobody stated makes classes look like separate labels."""
    noisy = np.clip(rng.dirichlet(np.ones(3), size=200) + 0.05 * rng.normal(size=(200, 3)), 0, 1)
    noisy -= noisy.sum(axis=1).mean() / 3 - 1 / 3
    with pytest.warns(BagDataWarning, match="on average to one"):
        assert find_task(noisy, np.full(200, 1000)) == "multilabel"


def test_exact_labels_may_add_up_to_one_on_average(rng):
    with warnings.catch_warnings(action="error"):
        assert task_of(labels(rng, n_bags=400, n_labels=2)) == "multilabel"
