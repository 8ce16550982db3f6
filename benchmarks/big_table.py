"""Fit and predict on a table larger than memory: peak memory, and speed beside a plain read.

    python benchmarks/big_table.py                        a million rows, a few seconds
    python benchmarks/big_table.py --rows 20000000 --bags 200000 --folder /tmp

The table is generated chunk by chunk, in an order that scatters every bag over the whole file.
Every speed is printed beside that of pyarrow reading the same file in the same run: by the clock,
and by the processor's time. So is the least that two looks at scattered rows can take: reading the
table twice, writing its rows in other places and reading them back, with nothing else done. What
is compared is done in turn, several times over, and the median counts: a virtual machine may have
to ask its host for memory before it can keep what is written, and its pace changes from minute to
minute. What an epoch costs around a net's steps is measured with steps that do nothing. What it
costs with them, less what they take on rows already in memory, is printed too, but it is the
difference of two times many times as long, and differs from round to round by more than itself.
"""

import argparse
import json
import os
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unbag.estimators import BagRidgeClassifier
from unbag.tables import Roles, open_table, scan_table
from unbag.tables.model import TableModel
from unbag.tables.out_of_core import net_of, train_stream
from unbag.tables.parts import BagParts, bag_sums
from unbag.tables.writing import write_table
from unbag.training import Settings, Trial, train

CHUNK = 200_000
PLAIN, READ, COPY = "read, pyarrow alone", "read, our chunks", "write and read back alone"
SCAN, DEAL, EPOCH = "scan", "deal to whole bags", "epoch without steps"
NET, STEPS = "net, one epoch", "net's own steps"


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


def copy(rows, features, folder, rows_per_part=250_000):
    """Write as many rows as will be dealt, in pieces as small, and read them back."""
    n_parts, n_chunks = max(rows // rows_per_part, 1), max(rows // CHUNK, 1)
    n = rows // (n_parts * n_chunks)
    X = np.zeros((n, features + 1), dtype=np.float32)
    paths = [folder / f"copy-{part}" for part in range(n_parts)]
    for _ in range(n_chunks):
        for path in paths:
            with path.open("ab") as file:
                file.write(X.data)
    for path in paths:
        np.fromfile(path, np.float32)
        path.unlink()


class Clock:
    """Seconds and peak memory of each stage, each time it is run."""

    def __init__(self, n_rows):
        self.n_rows, self.times, self.peaks = n_rows, {}, {}

    def run(self, name, work):
        spent, found = spent_on(work)
        self.add(name, spent)
        return found

    def add(self, name, spent):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        self.times.setdefault(name, []).append([round(float(s), 2) for s in spent])
        self.peaks[name] = round(peak)
        print(
            f"{name:28s} {spent[0]:7.1f} s, processor {spent[1]:7.1f} s, peak {peak:6.0f} MB",
            flush=True,
        )

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
                "rows_per_second": round(self.n_rows / clock),
                "peak_mb": self.peaks[name],
            }
        return found

    def difference(self, name, other, kind):
        """What a stage takes more than another: the median over rounds."""
        column = ["seconds", "processor_seconds"].index(kind)
        pairs = zip(self.times[name], self.times[other], strict=True)
        return np.median([more[column] - less[column] for more, less in pairs])

    def shares(self, kind):
        """Speeds as shares of a plain read; a net's own cost is taken off where it says so."""
        stages = self.stages

        def seconds(*names):
            return sum(stages[name][kind] for name in names)

        plain, once = seconds(PLAIN), seconds(SCAN, DEAL)
        epoch, around = seconds(NET), self.difference(NET, STEPS, kind)
        scores, own_scores = seconds("predict, net"), seconds("net's own scores")
        spent = {
            "read twice, write and read back, nothing else": 2 * seconds(READ) + seconds(COPY),
            "scan and deal, once": once,
            "iterate whole bags, per epoch": seconds("iterate whole bags"),
            NET: epoch,
            "fit of one epoch, all in": once + epoch,
            "fit of one epoch, all in, less the net's own steps": once + around,
            "fit of one epoch, with steps that do nothing": once + seconds(EPOCH),
            "predict, ridge": seconds("predict, ridge"),
            "predict, net": scores,
            "predict, net, less its own scores": scores - own_scores,
        }
        # The net's own cost was measured at another moment: other work may make it the larger one.
        return {n: round(plain / s, 3) if s > 0 else None for n, s in spent.items()}


def predict(model, path, output):
    """Score every row into a file."""
    chunks = model.predict_chunks(open_table(path), keep=["bag"])
    scored = ({"bag": chunk.batch.column("bag"), "score": s[:, 0]} for chunk, s in chunks)
    return write_table(output, map(pa.record_batch, scored), overwrite=True)


def ridge_of(parts, table):
    """Closed form from the sums of the bags."""
    index = table.index
    sums = bag_sums(parts.rows(parts.parts["all"]), index.n_bags, parts.n_features)
    means = sums / index.sizes[:, None]
    return BagRidgeClassifier().fit_means(means, index.proportions, index.sizes)


def error_of(model, arguments):
    """True error on a chunk that is not in the file; the benchmark knows the labels."""
    _, X, label = draw(10**12, arguments.bags, arguments.features, 10**6)
    table = pa.table({f"x{i}": X[:, i] for i in range(arguments.features)})
    return float(((model.scores(model.encoder.transform(table))[:, 0] > 0.5) != label).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--bags", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--bags-per-batch", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5, help="times that all is done in turn")
    parser.add_argument("--folder", default=None, help="where the files go meanwhile")
    parser.add_argument("--json", default=None, help="also write the figures to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        figures = measure(arguments, Path(folder))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figures, indent=1) + "\n")


def spent_on(work):
    """Seconds by the clock and of the processor, and what came of it."""
    clock, processor = time.perf_counter(), time.process_time()
    found = work()
    return (time.perf_counter() - clock, time.process_time() - processor), found


def measure(arguments, folder):
    """Run every stage on one file."""
    path, clock = folder / "big.parquet", Clock(arguments.rows)
    clock.run(
        "generate", lambda: generate(path, arguments.rows, arguments.bags, arguments.features)
    )
    for _ in range(arguments.rounds):
        table, models = one_round(path, clock, arguments, folder)
    errors = {}
    for name, classifier in models.items():
        model = TableModel(classifier, table.encoder, table.roles, {})
        output = folder / f"{name}.parquet"
        clock.run(f"predict, {name}", lambda m=model, o=output: predict(m, path, o))
        errors[name] = round(error_of(model, arguments), 4)
        print(f"{name}: true error {100 * errors[name]:.1f} %")
    shares = {kind: clock.shares(kind) for kind in ("seconds", "processor_seconds")}
    print("speed as a share of pyarrow's plain read, by the clock and by the processor:")
    for name, share in shares["seconds"].items():
        print(f"{name:52s} {share or 0:7.1%} {shares['processor_seconds'][name] or 0:7.1%}")
    return {
        "arguments": {n: v for n, v in vars(arguments).items() if n not in ("folder", "json")},
        "stages": clock.stages,
        "shares_of_plain_read": shares,
        "true_error": errors,
    }


def epoch_of(bags, settings):
    """What one epoch takes on bags in memory: five of them less one, by four."""
    one, _ = spent_on(lambda: train([Trial()], bags, settings=settings))
    five, _ = spent_on(lambda: train([Trial()], bags, settings=replace(settings, max_epochs=5)))
    return [(after - before) / 4 for before, after in zip(one, five, strict=True)]


def idle_step(step, batch):
    """Do nothing; a mock of its own would keep every batch."""


def parts_of(table, folder):
    """All rows, dealt to files."""
    return BagParts(table, {"all": np.arange(table.index.n_bags)}, folder=folder)


def one_round(path, clock, arguments, folder):
    """Everything once: what reading and writing take by themselves, scan, deal, and the models."""
    clock.run(COPY, lambda: copy(arguments.rows, arguments.features, folder))
    clock.run(PLAIN, lambda: parquet_read(path))
    clock.run(READ, lambda: plain_read(path))
    table = clock.run(SCAN, lambda: scan_table(path, Roles("bag", proportions=("rate",))))
    with clock.run(DEAL, lambda: parts_of(table, folder)) as parts:
        return table, fit_models(parts, table, clock, arguments)


def settings_of(arguments):
    """One epoch."""
    return Settings(max_epochs=1, bags_per_batch=arguments.bags_per_batch, redraw=True)


def epoch_on(parts, arguments):
    """Train a net for one epoch on rows in files."""
    return train_stream([Trial()], parts, groups=["all"], settings=settings_of(arguments))


def fit_models(parts, table, clock, arguments):
    """Ridge and one epoch of a net, and what the net costs without files, and files without it."""
    clock.run("iterate whole bags", lambda: [parts.bags(p).n_bags for p in parts.parts["all"]])
    ridge = clock.run("ridge", lambda: ridge_of(parts, table))
    with mock.patch("unbag.training.stack.Step.__call__", idle_step):
        clock.run(EPOCH, lambda: epoch_on(parts, arguments))
    [result] = clock.run(NET, lambda: epoch_on(parts, arguments))
    some = parts.bags(parts.parts["all"][0])
    times, settings = arguments.rows / len(some.X), settings_of(arguments)
    clock.add(STEPS, [times * seconds for seconds in epoch_of(some, settings)])
    net = net_of(result, table.index, arguments.features)
    scores, _ = spent_on(lambda: net.predict_proba(some.X))
    clock.add("net's own scores", [times * seconds for seconds in scores])
    return {"ridge": ridge, "net": net}


if __name__ == "__main__":
    main()
