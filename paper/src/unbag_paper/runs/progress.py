"""A progress bar over estimated seconds of work, with the time that is left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from unbag_paper.runs.runner import Tick

__all__ = ["work_bar"]


@contextmanager
def work_bar(seconds: float, *, console: Console) -> Iterator[Tick]:
    """Yield a function that moves the bar; where there is no terminal it writes a line instead."""
    columns = (
        TextColumn("training"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("gone,"),
        TimeRemainingColumn(),
        TextColumn("left  {task.fields[text]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("training", total=seconds, text="")

        def tick(done: float, text: str) -> None:
            bar.update(task, advance=done)
            if text:
                bar.update(task, text=text)
            if text and not console.is_terminal:
                console.print(f"{text} ({bar.get_time() - started:.0f} s gone)", highlight=False)

        started = bar.get_time()
        yield tick
