"""Read ahead in a thread: numpy and pyarrow release the interpreter's lock."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["prefetch"]

Item = TypeVar("Item")
END: Any = object()


def prefetch(items: Iterator[Item]) -> Iterator[Item]:
    """Compute the next item in a thread while the last one is used.

    Examples
    --------
    >>> list(prefetch(iter("abc")))
    ['a', 'b', 'c']
    """
    thread = ThreadPoolExecutor(1)
    try:
        coming = thread.submit(next, items, END)
        while (item := coming.result()) is not END:
            coming = thread.submit(next, items, END)
            yield item
    finally:  # without waiting: the thread itself may be what collects this generator
        thread.shutdown(wait=False, cancel_futures=True)
