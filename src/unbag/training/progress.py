"""A progress bar for long computations, off by default."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tick = Callable[[Callable[[], str]], None]
"""Called with a function that words the text; it may make a GPU wait, so only a bar calls it."""


@contextmanager
def progress_bar(title: str, total: int, *, show: bool, text: str = "") -> Iterator[Tick]:
    """Yield a function that advances the bar by one and sets its text."""
    if not show:
        yield lambda words: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[text]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total, text=text)
        yield lambda words: bar.update(task, advance=1, text=words())
