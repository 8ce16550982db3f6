"""A thread changes when things are made, and nothing else."""

import pytest

from unbag.frames.chunks import prefetch


def test_one_item_is_made_ahead_and_no_more():
    asked = []
    for place, item in enumerate(prefetch(asked.append(i) or i for i in range(20))):
        assert item == place
        assert len(asked) <= place + 2
    assert place == 19


def test_what_fails_ahead_fails_where_it_is_wanted():
    made = prefetch(map(int, ["1", "2", "x", "4"]))
    assert [next(made), next(made)] == [1, 2]
    with pytest.raises(ValueError, match="invalid literal"):
        next(made)
