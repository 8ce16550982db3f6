"""Work on chunks of a table in threads: numpy and pyarrow let others run meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from operator import methodcaller
from typing import Any, Protocol, TypeVar

__all__ = ["Looker", "ahead", "made_ahead", "show"]

Given = TypeVar("Given")
Item = TypeVar("Item")


class Looker(Protocol):
    """Something that gathers what it needs from chunks."""

    def add(self, chunk: Any) -> None:
        """Look at a chunk."""


def show(chunks: Iterable[Any], lookers: Sequence[Looker]) -> None:
    """Show all chunks to those who look at them, two of them at a time.

    If several refuse a chunk, the error is that of the first in their order.
    """
    with ThreadPoolExecutor(max_workers=2) as threads:
        for chunk in chunks:
            for _ in threads.map(methodcaller("add", chunk), lookers):
                pass


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Make the next two items, in a thread, while the last one is worked on.

    Examples
    --------
    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    with ThreadPoolExecutor(max_workers=1) as thread:
        coming = deque(thread.submit(next, items, None) for _ in range(2))
        while (item := coming.popleft().result()) is not None:
            coming.append(thread.submit(next, items, None))
            yield item


def made_ahead(
    make: Callable[[Given], Item], items: Iterable[Given], *, n_threads: int = 2
) -> Iterator[Item]:
    """Make something of every item, in threads, of which each is one item ahead.

    Examples
    --------
    >>> list(made_ahead(str.upper, "abc"))
    ['A', 'B', 'C']
    """
    items = iter(items)
    with ThreadPoolExecutor(n_threads) as threads:
        coming = deque(threads.submit(make, item) for item in islice(items, n_threads))
        while coming:
            made = coming.popleft().result()
            coming.extend(threads.submit(make, item) for item in islice(items, 1))
            yield made
