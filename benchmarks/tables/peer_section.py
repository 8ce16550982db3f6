"""Methods of others beside the default, on the draws that both have."""

from __future__ import annotations

import pandas as pd
from comparison import Comparison, exceeds
from markdown import bags_head, table
from methods import DEFAULT, METHODS

HEADS = (
    "method",
    "bags",
    "cells",
    "draws of a cell",
    "mean AUC",
    "mean AUC of the default",
    "default better by, AUC x 100",
    "default better by, error in %",
    "default better by, Brier x 100",
    "cells where the method is better by > 1 SE, AUC",
    "cells where the method is better by > 1 SE, error",
)
ABOUT = """Only draws that both methods have count. Standard errors of differences are over tables.
Those of a cell are over its draws or, with fewer than three draws, over test rows. Other cells were
not run for lack of processor time; no cell was chosen by its results. The processor seconds of
these methods were measured on a busy machine and are too long."""


def peer_section(rows: pd.DataFrame) -> str:
    """A line for every method of others and kind of bags."""
    names = [name for name in METHODS if METHODS[name].kind == "peer"]
    names = [name for name in names if name in set(rows["method"])]
    if not names or DEFAULT not in set(rows["method"]):
        return ""
    lines = [
        line(rows[rows["bags"] == bags], name, bags)
        for name in names
        for bags in dict.fromkeys(rows.loc[rows["method"] == name, "bags"])
    ]
    return f"## Methods of others beside the default (`{DEFAULT}`)\n\n{ABOUT}\n\n" + table(
        HEADS, lines
    )


def line(rows: pd.DataFrame, name: str, bags: str) -> list[str]:
    """One method and kind of bags."""
    rows = common_draws(rows[rows["method"].isin([name, DEFAULT])])
    auc, error, brier = (Comparison(rows, metric) for metric in ("auc", "error", "brier"))
    draws = rows[rows["method"] == name].groupby("table")["draw"].nunique()
    return [
        name,
        bags_head(bags),
        str(len(draws)),
        "-".join(str(n) for n in sorted({draws.min(), draws.max()})),
        *(f"{auc.means[method].mean():.3f}" for method in (name, DEFAULT)),
        *(gap_text(metric, name) for metric in (auc, error, brier)),
        *(str(wins(metric, name)) for metric in (auc, error)),
    ]


def common_draws(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the draws on which all methods of the rows ran."""
    n_methods = rows.groupby(["table", "bags", "draw"])["method"].transform("nunique")
    return rows[n_methods == rows["method"].nunique()]


def gap_text(metric: Comparison, name: str) -> str:
    """Mean over tables of how much better the default is, with its standard error."""
    gap = 100 * (metric.means[DEFAULT] - metric.means[name])
    return f"{gap.mean():+.2f}" + (f" ± {gap.sem():.2f}" if len(gap) > 1 else "")


def wins(metric: Comparison, name: str) -> int:
    """Cells in which the method is better than the default by more than one standard error."""
    return sum(exceeds(metric.difference(cell, name, DEFAULT)) for cell in metric.cells(name))
