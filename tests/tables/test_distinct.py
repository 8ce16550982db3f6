"""Repeated values are found, in any number of chunks and in little memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbag.tables.distinct import MAX_KEPT, RepeatFinder


def found_in(chunks):
    finder = RepeatFinder()
    for chunk in chunks:
        finder.add(np.asarray(chunk, dtype=float))
    return finder.found


@given(st.lists(st.lists(st.integers(-20, 20), max_size=6), max_size=4))
def test_of_few_values_every_repetition_is_found(chunks):
    values = [value for chunk in chunks for value in chunk]
    assert found_in(chunks) == (len(set(values)) < len(values))


@pytest.mark.parametrize("step", [1, 1000, 2**32])
def test_of_many_values_a_share_is_kept_whatever_they_are(step):
    finder = RepeatFinder()
    for chunk in np.split(np.arange(1_000_000.0) * step, 10):
        finder.add(chunk)
    assert not finder.found
    assert MAX_KEPT / 4 < len(finder._kept) <= MAX_KEPT
    assert found_in([*np.split(np.arange(1_000_000.0) * step, 10), np.arange(1000.0) * step])
