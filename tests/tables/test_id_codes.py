"""Codes of IDs beside a dictionary's."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from unbag.tables.index import IdCodes


def same_as_a_dictionary(chunks, kind, book=None):
    """Whether IDs keep one code each, their position, and unseen ones have none."""
    book, known = book or IdCodes(pa.array([], kind)), {}
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


INTEGERS = st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(st.lists(INTEGERS)))
def test_integers_have_the_codes_of_a_dictionary(chunks):
    assert same_as_a_dictionary(chunks, pa.int64())


@given(st.lists(st.lists(st.text(max_size=3))))
def test_text_has_the_codes_of_a_dictionary(chunks):
    assert same_as_a_dictionary(chunks, pa.string())


def test_the_comparison_sees_a_code_that_is_given_twice():
    class Broken(IdCodes):
        def find(self, ids):
            return np.zeros(len(ids), np.int32)

    assert not same_as_a_dictionary([[3, 1], [1]], pa.int64(), Broken(pa.array([], pa.int64())))
