"""Learners that `BagEMClassifier` is tried around, and the page about them.

    python benchmarks/tables/run.py --data DEST --methods learner --draws 1 -o FOLDER
    python benchmarks/tables/learners.py FOLDER

Adding a learner is one entry of `LEARNERS`. Each is a method of the suite twice: inside the EM, and
given the labels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from markdown import bags_head, marked, table
from rows import read_rows
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

Learner = Callable[[int], Any]
ABOUT = """# Any learner, from bags and from labels

`BagEMClassifier(learner)` beside the same learner given the labels of the same rows. Means over
tables of the AUC and of the error in percent, on rows whose labels nobody saw. In brackets is the
difference to the labels, with its standard error between tables, and the number of tables where a
learner did not run on all: means of different tables do not compare. Missing cells have not been
run for want of processor time. A learner has its own default settings, except for those in
`learners.py`.
"""
COMMANDS = "\n".join(__doc__.splitlines()[2:4])


def logistic(seed: int) -> Any:
    return LogisticRegression(max_iter=300)


def forest(seed: int) -> Any:
    # Fully grown trees repeat the labels they were given, which EM would take for certainty.
    return RandomForestClassifier(min_samples_leaf=20, random_state=seed)


def hist_gradient_boosting(seed: int) -> Any:
    return HistGradientBoostingClassifier(random_state=seed)


def lightgbm(seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=seed, n_jobs=1, verbosity=-1)


def xgboost(seed: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(random_state=seed, n_jobs=1)


LEARNERS: dict[str, Learner] = {
    "logistic": logistic,
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "sklearn boosting": hist_gradient_boosting,
    "random forest": forest,
}


def page(rows: pd.DataFrame) -> str:
    """Learners down, kinds of bags across."""
    good = rows[rows["failed"].isna()]
    parts = [
        ABOUT,
        f"Tables: {good['table'].nunique()}, those of the tuning part; draws: "
        f"{good['draw'].nunique()}; at most {good['n_train'].max():,} training rows.",
        metric_table(good, "auc", 1, 3),
        metric_table(good, "error", 100, 1),
        "AUC from bags / from labels by table:",
        by_table(good),
        COMMANDS,
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def metric_table(rows: pd.DataFrame, metric: str, scale: float, digits: int) -> str:
    """Means over tables by learner and bags, with the difference to the labels."""
    values = rows.groupby(["method", "bags", "table"])[metric].mean().mul(scale)
    kinds = list(dict.fromkeys(rows["bags"]))
    n_tables = rows["table"].nunique()
    lines = [
        [name, *(gap_text(pair(values, name, kind), digits, n_tables) for kind in kinds)]
        for name in LEARNERS
    ]
    return table([metric, *map(bags_head, kinds)], lines)


def by_table(rows: pd.DataFrame) -> str:
    """AUC from bags and from labels of every table and kind of bags."""
    values = rows.groupby(["method", "bags", "table"])["auc"].mean()
    pairs = {
        (name, bags): pair(values, name, bags) for name in LEARNERS for bags in set(rows["bags"])
    }
    lines = []
    for name, bags in rows[["table", "bags"]].drop_duplicates().itertuples(index=False):
        found = [pairs[learner, bags] for learner in LEARNERS]
        texts = [
            "{bags:.3f} / {labels:.3f}".format(**own.loc[name]) if name in own.index else "-"
            for own in found
        ]
        lines.append([marked(name), bags, *texts])
    return table(["table", "bags", *LEARNERS], lines)


def pair(values: pd.Series, name: str, bags: str) -> pd.DataFrame:
    """Values of the tables on which the learner has run from these bags, and from labels."""
    columns = {"bags": f"EM, {name}", "labels": f"{name}, labels"}
    frame = values.unstack("method").reindex(columns=list(columns.values())).xs(bags, level="bags")
    return frame.set_axis(list(columns), axis=1).dropna()


def gap_text(found: pd.DataFrame, digits: int, n_tables: int) -> str:
    """The mean from bags, the difference to labels with its standard error, and how many tables."""
    if found.empty:
        return "-"
    gap = found["bags"] - found["labels"]
    spread = f" ± {gap.sem():.{digits}f}" if len(gap) > 1 else ""
    fewer = f"; {len(gap)} of {n_tables} tables" if len(gap) < n_tables else ""
    return f"{found['bags'].mean():.{digits}f} ({gap.mean():+.{digits}f}{spread}{fewer})"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "README.md").write_text(page(read_rows(folder / "rows.csv")), encoding="utf-8")
