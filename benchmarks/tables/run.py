"""Run the suite: real tables, random bags and natural groups, several methods.

    python benchmarks/tables/fetch.py DEST
    python benchmarks/tables/run.py --data DEST --tables tuning -o FOLDER --jobs 2
    python benchmarks/tables/render.py FOLDER

Every (table, bags, draw, method) is a row of ``FOLDER/rows.csv``, written when it is done. A run
that is started again leaves out what is there; a method that failed is tried again.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import subprocess
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import asdict
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from catalogue import choose_tables
from cells import Cell, draw_cell
from methods import METHODS, choose_methods
from render import write_page
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rows import Job, Row, append_row, done
from sklearn.metrics import roc_auc_score

CLIP = 1e-4  # of probabilities, for the log loss only


def run_job(job: Job, *, rows: int, folder: Path, sources: str) -> Row:
    """Fit a method to a cell and score it; an error becomes part of the row."""
    cell = draw_cell(job.table, job.bags, job.draw, rows=rows, folder=folder)
    sizes: dict[str, Any] = {
        "n_train": len(cell.X),
        "n_bags": len(set(cell.bags)),
        "n_test": len(cell.X_test),
        "n_positive": int(cell.labels_test.sum()),
    }
    try:
        found = fit_and_score(job.method, cell)
    except Exception as error:  # whatever a method raises, the other rows are still wanted
        found = {"failed": f"{type(error).__name__}: {error}"[:200]}
    return Row(**asdict(job), **sizes, **found, sources=sources)


def fit_and_score(name: str, cell: Cell) -> dict[str, Any]:
    """Metrics of one method on the test rows."""
    method = METHODS[name]
    if not method.available:
        raise ImportError(f"{name} needs {method.needs or method.interpreter}, which is missing")
    target = cell.labels if method.sees_labels else cell.proportions
    start = processor_seconds()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a benchmark is no place to answer them
        model = method.fit(cell.X, target, cell.bags, cell.seed)
        scores = np.asarray(model.predict_proba(cell.X_test))[:, 1]
    seconds = processor_seconds() - start
    return {**metrics(scores, cell.labels_test), "seconds": seconds, **statement(model)}


def processor_seconds() -> float:
    """Seconds that processors worked for this process so far: other work does not change them."""
    return sum(os.times()[:4])


def metrics(scores: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """AUC, Brier score, error at one half and log loss."""
    clipped = np.clip(scores, CLIP, 1 - CLIP)
    return {
        "auc": roc_auc_score(labels, scores),
        "brier": np.mean((scores - labels) ** 2),
        "error": np.mean((scores > 0.5) != labels),
        "log_loss": -np.mean(np.log(np.where(labels, clipped, 1 - clipped))),
    }


def statement(model: Any) -> dict[str, float]:
    """The error that the method states, with its interval, if it does."""
    risk = getattr(model, "risk_", None)
    if risk is None:
        return {}
    return {"stated": risk.value, "low": risk.low, "high": risk.high}


def results(jobs: list[Job], work: Any, n_workers: int, minutes: float) -> Iterator[Row]:
    """Rows as they are done, by this process or by workers; no job starts after these minutes."""
    end = time.monotonic() + 60 * minutes
    waiting = itertools.takewhile(lambda _: time.monotonic() < end, jobs)
    if n_workers == 0:
        yield from map(work, waiting)
        return
    # One thread each, so that seconds compare and workers do not crowd each other out.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with ProcessPoolExecutor(n_workers, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(work, job) for job in itertools.islice(waiting, n_workers)}
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {pool.submit(work, job) for job in itertools.islice(waiting, len(ended))}
            yield from (future.result() for future in ended)


def sources_hash() -> str:
    """Git's hash of the library's committed sources, which stays when other files change."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD:src/unbag"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def run(options: argparse.Namespace) -> None:
    """Run what is not done yet."""
    path = options.output / "rows.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    wanted = [
        Job(table.name, bags, draw, method.name)
        for draw in range(options.draws)
        for table in choose_tables(options.tables)
        for bags in options.bags
        for method in choose_methods(options.methods)
    ]
    finished = done(path)
    jobs = [job for job in wanted if job not in finished]
    work = partial(run_job, rows=options.rows, folder=options.data, sources=sources_hash())
    text = TextColumn("{task.description:45}")
    with Progress(text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()) as bar:
        task = bar.add_task("", total=len(wanted), completed=len(wanted) - len(jobs))
        for row in results(jobs, work, options.jobs, options.minutes):
            append_row(path, row)
            bar.update(task, advance=1, description=f"{row.table}, {row.bags}: {row.method}")


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    found.add_argument("--data", type=Path, required=True, help="folder of fetch.py")
    found.add_argument("-o", "--output", type=Path, required=True)
    found.add_argument("--tables", nargs="+", default=["tuning"], help="names, parts or all")
    found.add_argument("--bags", nargs="+", default=["10", "50", "500", "natural"])
    found.add_argument("--methods", nargs="+", default=["all"], help="names, kinds or all")
    found.add_argument("--draws", type=int, default=2)
    found.add_argument("--rows", type=int, default=20_000, help="training rows at most")
    found.add_argument("--jobs", type=int, default=1, help="workers; 0 is this process")
    found.add_argument("--minutes", type=float, default=math.inf, help="no job starts after them")
    found.add_argument("--render", action="store_true", help="write the page, too")
    return found


def main(arguments: list[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    run(options)
    if options.render:
        write_page(options.output)


if __name__ == "__main__":
    main()
