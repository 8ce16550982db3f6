"""Work on chunks in threads: numpy and pyarrow release the interpreter's lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from operator import methodcaller
from typing import Any, Protocol, TypeVar

__all__ = ["ChunkVisitor", "prefetch", "prefetch_map", "visit"]

Given = TypeVar("Given")
Item = TypeVar("Item")


class ChunkVisitor(Protocol):
    """Something that gathers what it needs from chunks."""

    def add(self, chunk: Any) -> None:
        """Take in a chunk."""


def visit(chunks: Iterable[Any], visitors: Sequence[ChunkVisitor]) -> None:
    """Pass every chunk to all visitors, two visitors at a time.

    If several raise on a chunk, the error is that of the first in their order.
    """
    with ThreadPoolExecutor(max_workers=2) as threads:
        for chunk in chunks:
            for _ in threads.map(methodcaller("add", chunk), visitors):
                pass


def prefetch(items: Iterator[Item]) -> Iterator[Item]:
    """Compute the next two items in a thread while the last one is used.

    Examples
    --------
    >>> list(prefetch(iter("abc")))
    ['a', 'b', 'c']
    """
    return prefetch_map(lambda _: next(items), iter(int, 1), n_threads=1, ahead=2)


def prefetch_map(
    make: Callable[[Given], Item], items: Iterable[Given], *, n_threads: int = 2, ahead: int = 0
) -> Iterator[Item]:
    """Map a function in threads, in order and at most so many items ahead.

    Examples
    --------
    >>> list(prefetch_map(str.upper, "abc"))
    ['A', 'B', 'C']
    """
    items = iter(items)
    with ThreadPoolExecutor(n_threads) as threads:
        coming = deque(threads.submit(make, item) for item in islice(items, ahead or n_threads))
        while coming:
            try:
                made = coming.popleft().result()
            except StopIteration:  # `prefetch` has no more
                return
            coming.extend(threads.submit(make, item) for item in islice(items, 1))
            yield made
