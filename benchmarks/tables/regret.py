"""Compare the stack with its best single candidate, chosen with the labels that it never sees.

    python benchmarks/tables/regret.py --data DEST --rows FOLDER

The candidates of every cell that `run.py` has run the stack on are fitted alone to all bags, and
scored on the test rows. ``FOLDER/candidates.csv`` grows by one row for each, and
``FOLDER/regret.md`` is the page. A run that is started again leaves out what is there.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from cells import Cell, draw_cell
from markdown import marked, table
from methods import DEFAULT
from rows import read_rows
from run import metrics, sources_hash

from unbag.bags import Bags
from unbag.estimators.candidates import default_candidates, fit_candidate
from unbag.estimators.columns import filled, scaled_columns
from unbag.evaluation.checks import find_grouping

KEY = ["table", "bags", "draw"]
METRICS = ["auc", "brier", "error"]
ABOUT = """How much better the best single candidate is, chosen with the labels of the test rows in
every cell and for every metric. Negative: the mixture is better than all of them. The standard
error is between tables."""


def candidate_metrics(cell: Cell) -> dict[str, dict[str, float]]:
    """Metrics of each candidate alone, as the stack would fit it to all bags."""
    centre, scale = scaled_columns(np.asarray(cell.X, dtype=float))
    train, test = ((filled(X, centre) - centre) / scale for X in (cell.X, cell.X_test))
    data = Bags.from_arrays(cell.X, y=cell.proportions, bags=cell.bags)
    natural = find_grouping(data) == "natural"
    found = {}
    for name, model in default_candidates(data, natural=natural, quick=False, seed=cell.seed):
        fitted = fit_candidate(model, replace(data, X=train), None)
        found[name] = metrics(np.asarray(fitted.predict_proba(test))[:, 1], cell.labels_test)
    return found


def run(folder: Path, data: Path, rows: int) -> pd.DataFrame:
    """Candidates of the cells that the stack has run on, and that are not there yet."""
    path, sources = folder / "candidates.csv", sources_hash()
    seen = read_candidates(path)
    known = set(seen[KEY].itertuples(index=False, name=None))
    stack = stack_rows(folder)
    for key in stack[KEY].itertuples(index=False, name=None):
        if key not in known:
            cell = draw_cell(*key, rows=rows, folder=data)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                append(path, key, candidate_metrics(cell), sources)
            print(*key, flush=True)
    return read_candidates(path)


def stack_rows(folder: Path) -> pd.DataFrame:
    rows = read_rows(folder / "rows.csv")
    return rows[(rows["method"] == DEFAULT) & rows["failed"].isna()]


def read_candidates(path: Path) -> pd.DataFrame:
    if not path.exists():
        return pd.DataFrame(columns=[*KEY, "candidate", *METRICS, "sources"])
    return pd.read_csv(path, dtype={"bags": str})


def append(path: Path, key: tuple, found: dict[str, dict[str, float]], sources: str) -> None:
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow([*KEY, "candidate", *METRICS, "sources"])
        for name, values in found.items():
            writer.writerow([*key, name, *(f"{values[m]:.5g}" for m in METRICS), sources])


def page(stack: pd.DataFrame, candidates: pd.DataFrame) -> str:
    """Regret by kind of bags: how much better the best candidate is, with its spread over cells."""
    best = candidates.groupby(KEY)[METRICS].agg({"auc": "max", "brier": "min", "error": "min"})
    own = stack.set_index(KEY)[METRICS]
    gap = (best - own.reindex(best.index)) * 100
    gap[["brier", "error"]] *= -1
    lines = []
    for bags, part in [*gap.groupby("bags", sort=False), ("all", gap)]:
        by_table = part.groupby("table").mean()
        spread = by_table.std(ddof=1) / np.sqrt(len(by_table))
        cells = [f"{part[m].mean():+.2f} ± {spread[m]:.2f}" for m in METRICS]
        lines.append([bags, str(len(part)), *cells])
    heads = ["bags", "cells x draws", "AUC x 100 lost", "Brier x 100 lost", "error in % lost"]
    worst = gap["auc"].sort_values(ascending=False).head(5)
    losses = [
        [marked(name), bags, str(draw), f"{value:+.2f}"]
        for (name, bags, draw), value in worst.items()
    ]
    return "\n\n".join(
        [
            "# Regret of the stack",
            ABOUT,
            table(heads, lines),
            "The largest losses of AUC:",
            table(["table", "bags", "draw", "AUC x 100 lost"], losses),
            "    python benchmarks/tables/regret.py --data DEST --rows FOLDER\n",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of fetch.py")
    parser.add_argument("--rows", type=Path, required=True, help="folder of run.py's rows")
    parser.add_argument("--training-rows", type=int, default=20_000)
    options = parser.parse_args()
    candidates = run(options.rows, options.data, options.training_rows)
    text = page(stack_rows(options.rows), candidates)
    (options.rows / "regret.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
