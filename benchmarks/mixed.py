"""What some labels add to bags, and what ranges of counts take away.

    python benchmarks/tables/fetch.py DATA --tables adult magic credit_card    # once
    python benchmarks/mixed.py DATA                                            # some minutes

`BagLogisticClassifier` on 100 random bags of 50 rows, alone and beside 100 rows with labels, which
are bags of one; on the labels alone; on the same bags of which only a range of ten percentage
points is known, by its likelihood and by the middle of the range; and on all labels of the bags.
AUC and error of 5,000 test rows go to ``results/mixed/mixed.csv``, the page to ``mixed.md``.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from unbag import BagLogisticClassifier, Bags
from unbag.randomness import numpy_generator

sys.path.insert(0, str(Path(__file__).parent / "tables"))
from catalogue import TABLES
from encoding import make_encoder

FOLDER = Path(__file__).parent / "results" / "mixed"
SIZE, N_BAGS, N_LABELS, N_TEST = 50, 100, 100, 5_000
WAYS = {
    "labels": f"{N_LABELS} labels alone",
    "bags": f"{N_BAGS} bags of {SIZE}",
    "both": "both",
    "ranges": "bags known within 10 points",
    "middles": "the middles of these ranges",
    "all": "all labels of the bags",
}


def bags_of(X: np.ndarray, labels: np.ndarray) -> dict[str, Bags]:
    """The same rows as every way of knowing them; those with labels come last."""
    n = SIZE * N_BAGS
    ids = np.concatenate([np.arange(n) // SIZE, N_BAGS + np.arange(N_LABELS)])
    both = Bags.from_arrays(X, bags=ids, counts=np.bincount(ids, labels).astype(int))
    bags = both.take(np.arange(N_BAGS))
    shares = bags.proportions
    low = np.minimum(np.floor(shares * 10 + 1e-9), 9) / 10
    low_counts = np.ceil(low * SIZE - 1e-9)
    high_counts = np.where(low >= 0.9, SIZE, np.ceil((low + 0.1) * SIZE - 1e-9) - 1)
    own = {"X": X[:n], "bags": ids[:n]}
    middles = np.round((low_counts + high_counts) / 2)
    return {
        "labels": both.take(np.arange(N_BAGS, N_BAGS + N_LABELS)),
        "bags": bags,
        "both": both,
        "ranges": Bags.from_arrays(**own, counts=low_counts, upper=high_counts),
        "middles": Bags.from_arrays(**own, counts=middles),
        "all": Bags.from_arrays(X[:n], bags=np.arange(n), counts=labels[:n].astype(int)),
    }


def run(name: str, draw: int, data: Path) -> list[dict]:
    """All ways on one draw of rows."""
    frame, labels, _ = TABLES[name].load(data)
    order = numpy_generator("mixed", name, draw).permutation(len(labels))
    n_train = SIZE * N_BAGS + N_LABELS
    train, test = order[:n_train], order[n_train:][:N_TEST]
    encoder = make_encoder(frame.iloc[train])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # categories that training rows lack
        X = encoder.fit_transform(frame.iloc[train]).astype(float)
        X_test = encoder.transform(frame.iloc[test]).astype(float)
    rows = []
    for way, bags in bags_of(X, labels[train]).items():
        model = BagLogisticClassifier(random_state=draw).fit_bags(bags)
        scores = model.predict_proba(X_test)[:, 1]
        error = np.mean((scores > 0.5) != labels[test])
        auc = roc_auc_score(labels[test], scores)
        found = {"auc": f"{auc:.4f}", "error": f"{error:.4f}"}
        rows.append({"table": name, "draw": draw, "way": way} | found)
    return rows


def page(path: Path) -> str:
    """AUC and error by table and way, with the deviation over draws."""
    rows = pd.read_csv(path)
    lines = ["# Some labels beside bags, and ranges of counts", ""]
    lines += [
        f"`python benchmarks/mixed.py DATA`: `BagLogisticClassifier` by the likelihood of counts, "
        f"mean and standard deviation over {rows['draw'].nunique()} draws of rows and bags, "
        f"{N_TEST} test rows. Differences are within draws, with their standard error.",
        "",
        "| table | known | AUC | error, % | AUC minus that of bags |",
        "|---|---|---|---|---|",
    ]
    for table, own in rows.groupby("table", sort=False):
        auc = own.pivot(index="draw", columns="way", values="auc")
        error = 100 * own.pivot(index="draw", columns="way", values="error")
        for way, words in WAYS.items():
            gap = auc[way] - auc["bags"]
            more = f"{gap.mean():+.3f} ± {gap.std() / np.sqrt(len(gap)):.3f}"
            lines.append(
                f"| {table} | {words} | {auc[way].mean():.3f} ± {auc[way].std():.3f} | "
                f"{error[way].mean():.1f} ± {error[way].std():.1f} | {more} |"
            )
    return "\n".join([*lines, ""])


def main() -> None:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--tables", nargs="+", default=["adult", "magic", "credit_card"])
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path, done = options.folder / "mixed.csv", set()
    if path.exists():
        with path.open() as file:
            done = {(row["table"], int(row["draw"])) for row in csv.DictReader(file)}
    for name in options.tables:
        for draw in range(options.draws):
            if (name, draw) in done:
                continue
            rows = run(name, draw, options.data)
            with path.open("a", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
                if file.tell() == 0:
                    writer.writeheader()
                writer.writerows(rows)
            print(rows, flush=True)
    (options.folder / "mixed.md").write_text(page(path))


if __name__ == "__main__":
    main()
