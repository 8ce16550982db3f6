"""Codes of identifiers beside a dictionary's, and orders beside numpy's own."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbag.tables.codes import IntegerCodes, RangeCodes, TextCodes, grouped, runs

INTEGERS = st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1))


def same_as_a_dictionary(book, chunks, kind):
    """Whether ids keep one code each, their position, and unseen ones have none."""
    known = {}
    for chunk in chunks:
        ids = pa.array(chunk, kind)
        before = book.find(ids).tolist()
        if before != [known.get(name, -1) for name in chunk]:
            return False
        for name, code in zip(chunk, book.add(ids).tolist(), strict=True):
            known.setdefault(name, code)
            if known[name] != code:
                return False
    return book.ids.to_pylist() == sorted(known, key=known.get)


@given(st.lists(st.lists(INTEGERS)))
def test_integers_have_the_codes_of_a_dictionary(chunks):
    assert same_as_a_dictionary(IntegerCodes(), chunks, pa.int64())


@given(
    st.lists(st.integers(0, 30), min_size=1, unique=True),
    st.integers(-(2**63), 2**63 - 31),
    st.lists(INTEGERS),
)
def test_a_range_has_the_positions_of_a_list(known, low, others):
    keys = [low + place for place in known]
    table = RangeCodes.of(np.array(keys, np.int64))
    assert (table is None) == (max(known) - min(known) >= 16 * len(known))
    asked = [low + place for place in range(31)] + others
    if table is not None:
        found = table.find(np.array(asked, np.int64)).tolist()
        assert found == [keys.index(key) if key in keys else -1 for key in asked]


def test_codes_outlive_the_change_from_a_range_to_hashes_and_back():
    chunks = [[3, 1, 2], [2, 10**6], [1, 10**6, 4], list(range(70_000)), [69_999, 10**6, 3]]
    assert same_as_a_dictionary(IntegerCodes(), chunks, pa.int64())


@given(st.lists(st.lists(st.text(max_size=3))))
def test_text_has_the_codes_of_a_dictionary(chunks):
    assert same_as_a_dictionary(TextCodes(), chunks, pa.string())


def test_codes_outlive_the_growth_of_the_table(rng):
    chunks = rng.integers(-(2**40), 2**40, (20, 500)).tolist()
    assert same_as_a_dictionary(IntegerCodes(), chunks, pa.int64())


def test_keys_of_one_slot_are_told_apart(monkeypatch):
    monkeypatch.setattr("unbag.tables.codes.SPREAD", np.uint64(0))
    assert same_as_a_dictionary(IntegerCodes(), [[300, 100, 200], [200, 500, 300, 400]], pa.int64())


def test_the_comparison_sees_a_code_that_is_given_twice(monkeypatch):
    monkeypatch.setattr(IntegerCodes, "_probe", lambda self, keys: np.zeros(len(keys), np.int32))
    assert not same_as_a_dictionary(IntegerCodes(), [[3, 1], [1]], pa.int64())


@pytest.mark.parametrize("n_groups", [1, 3, 300, 70_000])
def test_rows_are_grouped_as_by_a_stable_sort(rng, n_groups):
    groups = rng.integers(0, n_groups, 2000)
    rows, ends = grouped(groups, n_groups)
    np.testing.assert_array_equal(rows, np.argsort(groups, kind="stable"))
    np.testing.assert_array_equal(np.diff(ends), np.bincount(groups, minlength=n_groups))


@given(st.lists(st.integers(-3, 3)))
def test_runs_are_the_counts_of_sorted_values(values):
    values = np.sort(np.array(values, dtype=int))
    for found, wanted in zip(runs(values), np.unique(values, return_counts=True), strict=True):
        np.testing.assert_array_equal(found, wanted)
