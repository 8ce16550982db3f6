"""Trains the first epochs of stored rows again: which came out otherwise than today's code has it?

    python paper/benchmarks/replay.py --data DIR --models linear,mlp100 [--device cuda]

A row keeps its mean loss of every epoch, so one or two tell whether it was trained as it would be
today. Rounding differs between devices, precisions and versions of kernels: losses then differ in
the third or fourth digit, more where a training diverges. Another loss, other bags or another
dropout show in the first epoch; nets that share a GPU begin to do so in the second. Rows of taught
nets are left to their teachers' rows.
"""

import argparse
import csv
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from unbag_paper.data import load_problem
from unbag_paper.runs.rows import read_rows
from unbag_paper.runs.selection import best_by_test, index_rows
from unbag_paper.runs.trainer import Trainer

FAR = 0.05
COLUMNS = (
    "data", "conditions", "net", "k", "bags_per_batch", "rule", "rate", "seed", "commit", "stored",
    "again",
)  # fmt: skip


def replayable(row, models):
    spec = row.spec
    constant = spec.schedule == "constant" and spec.measures == "errors" and spec.bags_per_batch
    return spec.model in models and constant and not spec.teacher


def stacks_of(rows, size):
    alike = defaultdict(list)
    for row in rows:
        alike[row.spec.stack].append(row)
    for found in alike.values():
        yield from (found[start : start + size] for start in range(0, len(found), size))


def shown_in_tables(rows, n):
    """Of every cell's rows at the learning rate that the tables show, n for each commit."""
    chosen = []
    for found in index_rows(rows).values():
        rate, _ = best_by_test(found)
        by_commit = defaultdict(list)
        for seed in found.seeds(rate):
            by_commit[found.rows[rate, seed].outcome["commit"]].append(found.rows[rate, seed])
        chosen += [row for alike in by_commit.values() for row in alike[:n]]
    return chosen


def replay(trainer, rows, epochs):
    """Rows with the loss of their first epochs as stored and as it comes out now."""
    specs = {replace(row.spec, epochs=epochs): row for row in rows}
    found = trainer(list(specs))
    return [(row, row.arrays["loss"][:epochs], found[spec]["loss"]) for spec, row in specs.items()]


def relative_gap(stored, again):
    """The largest over the epochs; infinite where only one is a number."""
    sizes = np.maximum(abs(stored), np.finfo(np.float32).tiny)
    gaps = np.where(np.isnan(stored) & np.isnan(again), 0, abs(again - stored) / sizes)
    return float(np.nan_to_num(gaps, nan=np.inf).max())


def entries(row, stored, again):
    s = row.spec
    rule = s.rule if s.options == "{}" else f"{s.rule} {s.options}"
    about = (s.dataset, s.conditions, s.model, s.bag_size, s.bags_per_batch, rule)
    losses = (" ".join(f"{loss:.6g}" for loss in losses) for losses in (stored, again))
    return (*about, s.learning_rate, s.seed, row.outcome["commit"], *losses)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", type=Path, default=Path("paper/results/rows"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--models", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--per-commit", type=int, default=1, help="rows of each cell")
    parser.add_argument("--bag-sizes", default="10,100,1000")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    models, ks = arguments.models.split(","), arguments.bag_sizes.split(",")
    rows = [row for row in read_rows(arguments.store) if replayable(row, models)]
    rows = [row for row in rows if str(row.spec.bag_size) in ks]
    rows = shown_in_tables(rows, arguments.per_commit)
    data = {n: load_problem(n, folder=arguments.data) for n in {r.spec.dataset for r in rows}}
    rows = [row for row in rows if row.spec.data == data[row.spec.dataset].fingerprint]
    settings = {"precision": arguments.precision, "compile": arguments.compile}
    trainer = Trainer(data, device=arguments.device, settings=settings)
    results = []
    for stack in stacks_of(rows, 8):
        results += replay(trainer, stack, arguments.epochs)
        write(arguments.csv, results)
    report(results)


def write(path, results):
    if path is not None:
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *(entries(*result) for result in results)])


def report(results):
    cells = defaultdict(list)
    for row, stored, again in results:
        s = row.spec
        cells[s.dataset, s.conditions, s.model].append(relative_gap(stored, again))
    print("losses of the first epochs, largest relative gap between stored and again")
    for cell, gaps in sorted(cells.items()):
        far = sum(gap > FAR for gap in gaps)
        print(*cell, f"{len(gaps)} rows, median {median(gaps):.1e}, {far} above {FAR}")
    for result in results:
        if relative_gap(*result[1:]) > FAR:
            print(*entries(*result))


if __name__ == "__main__":
    main()
