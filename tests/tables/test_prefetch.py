"""Threads change when things are made, and nothing else."""

import pytest

from unbag.tables.prefetch import prefetch, prefetch_map, visit


class Refuses:
    def __init__(self, name):
        self.name, self.seen = name, []

    def add(self, chunk):
        self.seen.append(chunk)
        if chunk == 3:
            raise ValueError(self.name)


def test_every_chunk_reaches_all_in_order_and_the_first_refusal_counts():
    visitors = [Refuses(name) for name in "abcd"]
    visit(range(3), visitors)
    assert all(visitor.seen == [0, 1, 2] for visitor in visitors)
    for _ in range(20):
        with pytest.raises(ValueError, match="a"):
            visit([3, 4], visitors)
    assert 4 not in visitors[0].seen


def test_two_items_are_made_ahead_and_no_more():
    asked = []
    for place, item in enumerate(prefetch(asked.append(i) or i for i in range(20))):
        assert item == place
        assert len(asked) <= place + 3
    assert place == 19


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_what_is_made_ahead_comes_in_order_and_no_more_of_it_than_threads(n_threads):
    asked = []

    def items():
        for item in range(20):
            asked.append(item)
            yield item

    for place, made in enumerate(prefetch_map(str, items(), n_threads=n_threads)):
        assert made == str(place)
        assert len(asked) <= place + 1 + n_threads
    assert place == 19


def test_what_fails_ahead_fails_where_it_is_wanted():
    made = prefetch_map(int, ["1", "2", "x", "4"])
    assert [next(made), next(made)] == [1, 2]
    with pytest.raises(ValueError, match="invalid literal"):
        next(made)
