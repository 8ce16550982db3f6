"""Bags that a model has learned from are known again, others are not."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbag.tables import Roles, fingerprints, scan_table


def index_of(ids, seed=0):
    """Bags of twenty with a share of positives each."""
    bags = np.repeat(np.asarray(ids), 20)
    rate = np.random.default_rng(seed).binomial(20, 0.4, len(ids)) / 20
    table = {"g": bags, "rate": np.repeat(rate, 20), "x": np.arange(len(bags)) % 7}
    return scan_table(pa.table(table), Roles("g", ("rate",))).index


@given(st.integers(2, 40), st.integers(2, 40))
def test_the_share_of_the_same_bags_is_exact_where_all_are_kept(n_used, n_bags):
    index = index_of(np.arange(n_bags))
    used = np.arange(min(n_used, n_bags))
    assert (
        fingerprints.training_share(index, fingerprints.fingerprints_of(index, used))
        == len(used) / n_bags
    )


def test_ids_are_the_same_as_text_and_as_numbers():
    marks = fingerprints.fingerprints_of(index_of(np.arange(10, 40)), np.arange(30))
    assert fingerprints.training_share(index_of([str(n) for n in range(10, 40)]), marks) == 1


def test_numbers_that_begin_again_are_other_bags():
    """Some have the same share by chance; most have not."""
    marks = fingerprints.fingerprints_of(index_of(np.arange(200)), np.arange(200))
    assert fingerprints.training_share(index_of(np.arange(200), seed=1), marks) == 0


def test_a_model_without_marks_knows_nothing():
    assert fingerprints.training_share(index_of(np.arange(5)), "") == 0


def test_of_many_bags_some_are_kept(monkeypatch):
    """They tell the share of all within some points."""
    monkeypatch.setattr(fingerprints, "KEPT", 500)
    index = index_of(np.arange(5000))
    marks = fingerprints.fingerprints_of(index, np.arange(3000, 5000))
    assert len(marks) == 500 * 16
    assert fingerprints.training_share(index, marks) == pytest.approx(0.4, abs=0.1)
    assert fingerprints.training_share(index_of(np.arange(5000, 9000)), marks) == 0
