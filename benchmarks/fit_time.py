"""How long `unbag fit` takes on 20,000 rows of numbers and strings, by processor and by clock.

    python benchmarks/fit_time.py                  the default, --quick, and --jobs 2
    python benchmarks/fit_time.py --rows 2000 --ways quick

Every way is run in a process of its own. Its processor seconds, those of its workers included, are
divided by those of LightGBM with all labels on the same encoded rows, in the same run. The clock is
printed beside the load of the machine: on a busy one, only the processor's time tells anything.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from unbag import FitOptions, Roles, TableEncoder, learn_table
from unbag.tables.record import plain

WAYS = {
    "labels": None,
    "default": {"jobs": 1},
    "default, --jobs 2": {"jobs": 2},
    "quick": {"jobs": 1, "quick": True},
    "quick, --jobs 2": {"jobs": 2, "quick": True},
}


def make_table(n_rows, *, n_numbers=100, n_strings=10, bag_size=50, seed=0):
    """Numbers and strings that say something of the label, and labels."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n_rows, n_numbers)).astype(np.float32)
    codes = rng.integers(3, size=(n_rows, n_strings))  # three values: three features each
    score = numbers[:, :8] @ rng.normal(size=8) + (codes[:, :4] == 1) @ rng.normal(size=4)
    score += numbers[:, 0] * numbers[:, 1]
    labels = rng.random(n_rows) < 1 / (1 + np.exp(-score))
    bag = rng.permutation(n_rows) // bag_size
    rate = np.bincount(bag, labels) / np.bincount(bag)
    columns = {f"number{i}": numbers[:, i] for i in range(n_numbers)}
    words = np.array(["north", "south", "east"])
    columns |= {f"string{i}": words[codes[:, i]] for i in range(n_strings)}
    return pa.table({"bag": bag, "rate": rate[bag]} | columns), labels


def run(way, n_rows):
    """Seconds of one way: by the clock, and by the processor with its children."""
    table, labels = make_table(n_rows)
    features = table.drop(["bag", "rate"])
    X = TableEncoder().fit(features).transform(features) if way == "labels" else None
    start, before = time.perf_counter(), processor_seconds()
    if way == "labels":
        from lightgbm import LGBMClassifier

        LGBMClassifier(n_estimators=200, n_jobs=1, verbose=-1).fit(X, labels)
        found = {"features": X.shape[1]}
    else:
        options = FitOptions(**WAYS[way], grouping="random")
        model = learn_table(table, Roles("bag", ("rate",)), options=options)
        found = {"headline": model.record["headline"]}
    clock = time.perf_counter() - start
    return found | {"clock": clock, "processor": processor_seconds() - before}


def processor_seconds():
    """User and system time of this process and of its workers that have ended or are told to."""
    try:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True)  # only then the system counts them
    except ImportError:
        pass
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, kinds))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS)[1:])
    parser.add_argument("--one", help="run one way in this process and print it as JSON")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(plain(run(given.one, given.rows))))
        return
    found = {way: separately(way, given.rows) for way in ("labels", *given.ways)}
    lines = list(report(found, given.rows))
    print("\n".join(lines))
    if given.output:
        given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


def separately(way, n_rows):
    command = [sys.executable, __file__, "--one", way, "--rows", str(n_rows)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout) | {"load": os.getloadavg()[0]}


def report(found, n_rows):
    n_features = found["labels"]["features"]
    yield f"{n_rows} rows, {n_features} features, bags of 50, {os.cpu_count()} cores"
    for way, seconds in found.items():
        ratio = seconds["processor"] / found["labels"]["processor"]
        clock = f"{seconds['clock']:.1f} s by the clock at load {seconds['load']:.1f}"
        yield f"{way}: {seconds['processor']:.1f} processor seconds ({ratio:.1f} x labels), {clock}"
    for way in ("default", "quick"):
        if {way, f"{way}, --jobs 2"} <= set(found):
            ratio = found[way]["clock"] / found[f"{way}, --jobs 2"]["clock"]
            yield f"{way}: --jobs 2 is {ratio:.2f} times as fast by the clock"


if __name__ == "__main__":
    main()
