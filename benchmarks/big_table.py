"""Scan, fit and predict on a table larger than memory: peak memory, and speed beside a plain read.

    python benchmarks/big_table.py                        a million rows, a few seconds
    python benchmarks/big_table.py --rows 20000000 --bags 200000 --folder /tmp

The table is generated chunk by chunk, in an order that scatters every bag over the whole file.
Every speed is printed beside that of pyarrow reading the same file in the same run, by the clock
and by the processor's time. Stages are run in turn, several times over, and the median counts,
because the pace of a virtual machine changes from minute to minute.
"""

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unbag.bags.holdout import take_bags
from unbag.estimators import BagRidgeClassifier
from unbag.parallel import SerialExecutor
from unbag.tables import Roles, open_table, scan_table
from unbag.tables.model import TableModel
from unbag.tables.out_of_core import TRAINING_ROWS, read_with_sums
from unbag.tables.writing import write_table

CHUNK = 200_000
PLAIN, READ = "read, pyarrow alone", "read, our chunks"
SCAN, SUMS, RIDGE, PREDICT = "scan", "sums and sample", "ridge", "predict, ridge"


def draw(n_rows, n_bags, n_features, number):
    """Rows of one chunk: bag, features, label; the same whenever it is asked for."""
    rng = np.random.default_rng(number)
    size = min(CHUNK, n_rows - number * CHUNK)
    bag = rng.integers(0, n_bags, size)
    X = rng.normal(size=(size, n_features)).astype(np.float32)
    return bag, X, X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=size) > 0


def generate(path, n_rows, n_bags, n_features):
    """Write the table; a first pass adds up each bag's labels."""
    numbers = range(-(-n_rows // CHUNK))
    positives, sizes = np.zeros(n_bags), np.zeros(n_bags)
    for number in numbers:
        bag, _, label = draw(n_rows, n_bags, n_features, number)
        positives += np.bincount(bag, label, n_bags)
        sizes += np.bincount(bag, minlength=n_bags)
    rate = positives / np.maximum(sizes, 1)
    names = [f"x{i}" for i in range(n_features)]
    kinds = [("bag", pa.int64()), ("rate", pa.float64()), *((name, pa.float32()) for name in names)]
    with pq.ParquetWriter(path, pa.schema(kinds)) as writer:
        for number in numbers:
            bag, X, _ = draw(n_rows, n_bags, n_features, number)
            columns = {name: X[:, i] for i, name in enumerate(names)}
            writer.write_batch(pa.record_batch({"bag": bag, "rate": rate[bag], **columns}))
    with path.open("rb+") as file:  # or the disk is still busy with it while others are timed
        os.fsync(file.fileno())


def plain_read(path):
    """Read every column once, and do nothing with it."""
    return sum(chunk.batch.num_rows for chunk in open_table(path).chunks())


def parquet_read(path):
    """The same by pyarrow alone, row group by row group, which keeps its memory small too."""
    with pq.ParquetFile(path) as file:
        return sum(file.read_row_group(group).num_rows for group in range(file.num_row_groups))


class Clock:
    """Seconds and peak memory of each stage, each time it is run."""

    def __init__(self, n_rows):
        self.n_rows, self.times, self.peaks = n_rows, {}, {}

    def run(self, name, work):
        clock, processor = time.perf_counter(), time.process_time()
        found = work()
        spent = time.perf_counter() - clock, time.process_time() - processor
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        self.times.setdefault(name, []).append([round(seconds, 2) for seconds in spent])
        self.peaks[name] = round(peak)
        print(f"{name:20s} {spent[0]:7.1f} s, processor {spent[1]:7.1f} s, peak {peak:6.0f} MB")
        return found

    @property
    def stages(self):
        """Plain values, for JSON."""
        found = {}
        for name, times in self.times.items():
            clock, processor = np.median(times, axis=0)
            found[name] = {
                "seconds": round(clock, 2),
                "processor_seconds": round(processor, 2),
                "times": times,
                "rows_per_second": round(self.n_rows / max(clock, 1e-3)),
                "peak_mb": self.peaks[name],
            }
        return found

    def shares(self, kind):
        """Speeds as shares of a plain read."""
        stages = self.stages
        spent = {
            "scan": [SCAN],
            "scan, sums of all bags and a sample": [SCAN, SUMS],
            "fit of a ridge, all in": [SCAN, SUMS, RIDGE],
            "predict": [PREDICT],
        }
        plain = stages[PLAIN][kind]
        return {
            name: round(plain / max(sum(stages[part][kind] for part in parts), 1e-3), 3)
            for name, parts in spent.items()
        }


def predict(model, path, output):
    """Score every row into a file."""
    chunks = model.predict_chunks(open_table(path), keep=["bag"])
    scored = ({"bag": chunk.batch.column("bag"), "score": s[:, 0]} for chunk, s in chunks)
    return write_table(output, map(pa.record_batch, scored), overwrite=True)


def error_of(model, arguments):
    """True error on a chunk that is not in the file; the benchmark knows the labels."""
    _, X, label = draw(10**12, arguments.bags, arguments.features, 10**6)
    table = pa.table({f"x{i}": X[:, i] for i in range(arguments.features)})
    return float(((model.scores(model.encoder.transform(table))[:, 0] > 0.5) != label).mean())


def one_round(path, clock, folder):
    """Everything once; the model."""
    clock.run(PLAIN, lambda: parquet_read(path))
    clock.run(READ, lambda: plain_read(path))
    table = clock.run(SCAN, lambda: scan_table(path, Roles("bag", proportions=("rate",))))
    index = table.index
    some = take_bags(index.sizes, max_rows=TRAINING_ROWS)
    _, sums = clock.run(SUMS, lambda: read_with_sums(table, some, SerialExecutor()))
    means = sums / index.sizes[:, None]
    ridge = clock.run(
        RIDGE, lambda: BagRidgeClassifier().fit_means(means, index.proportions, index.sizes)
    )
    model = TableModel(ridge, table.encoder, table.roles, {})
    clock.run(PREDICT, lambda: predict(model, path, folder / "scores.parquet"))
    return model


def measure(arguments, folder):
    """Run every stage on one file."""
    path, clock = folder / "big.parquet", Clock(arguments.rows)
    size = arguments.rows, arguments.bags, arguments.features
    clock.run("generate", lambda: generate(path, *size))
    for _ in range(arguments.rounds):
        model = one_round(path, clock, folder)
    shares = {kind: clock.shares(kind) for kind in ("seconds", "processor_seconds")}
    print("speed as a share of pyarrow's plain read, by the clock and by the processor:")
    for name, share in shares["seconds"].items():
        print(f"{name:40s} {share:7.1%} {shares['processor_seconds'][name]:7.1%}")
    return {
        "arguments": {n: v for n, v in vars(arguments).items() if n not in ("folder", "json")},
        "stages": clock.stages,
        "shares_of_plain_read": shares,
        "true_error": round(error_of(model, arguments), 4),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--bags", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5, help="times that all is done in turn")
    parser.add_argument("--folder", default=None, help="where the files go meanwhile")
    parser.add_argument("--json", default=None, help="also write the figures to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        figures = measure(arguments, Path(folder))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
