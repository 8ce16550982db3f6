"""Write the suite's page from its rows.

    python benchmarks/tables/render.py FOLDER

``FOLDER/rows.csv`` becomes ``FOLDER/README.md``: who is first in which cell, what each method
loses, and where. Nothing is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pandas as pd
from catalogue import TABLES
from comparison import Comparison, intervals_held
from declaration import Part
from markdown import bags_head, marked, table
from methods import DEFAULT, METHODS
from peer_section import peer_section
from rows import read_rows

INTRODUCTION = """# Real tables

This page compares methods on {n_tables} tables; draws of rows: {n_draws}. Methods learn from bags
of at most {n_train:,} rows. They are evaluated on at most {n_test:,} other rows, whose labels
they never use. All methods get the same encoded features. Bags are random groups of a fixed size,
or the table's natural groups.

- A *cell* is a table with one kind of bags.
- *First* is the method with the best mean over draws, among methods that use no labels.
- *SE* is the standard error of paired differences between draws. With fewer than three draws it is
  that of the test rows.
- If a method has fewer draws than others, the number is beside its name. Such a method is compared
  on its own draws: its mean is that of the default plus the mean difference on common draws. With
  fewer than three draws it cannot be first.

Each table belongs to one of three parts:

- **Tuning** (*): used while the methods were developed.
- **Held back**: no decision about these methods used it. Its first draw was run three times:
  before and after count boosting was added to the default, and after its weights were shrunk
  towards prior weights. Both changes were decided on the tuning part, the second also on six small
  tables of R packages. Later draws ran once.
- **Final** (†): chosen by description alone, before any method ran on them. Its first draw of
  natural groups was run twice, and it decided one change: weights for natural groups are now shrunk
  towards equal weights.

Two later changes of the default were decided on the tuning part. Its first two draws with bags of
500 and natural groups, its first draw with bags of 50, and half of its first draw with bags of 10
decided that a Gaussian process joined its learners and others left. Its first five draws with bags
of 500 decided that few bags get smaller trees. The other parts were then run once for each change.

The column `sources` of `rows.csv` is the hash of the library's sources. All rows of the default,
EM and process are of its present state, but for the first draw with bags of 500 and 50: since then,
only rounding in the process has changed. Boosting got shorter steps on natural groups after all
other runs, because it diverged there; these rows were run again on all tables. The other methods
have not changed since their runs. Cells and draws without a run of the default are left out, among
them all bags of 10. With three draws, a method exceeds an equally good one by more than one SE in a
fifth of all cells (Student's law with two degrees of freedom).

See also [the regret of the stack](regret.md) beside its own candidates, and
[EM with five learners](learners/README.md), which was made before these changes.

    python benchmarks/tables/fetch.py DEST
    python benchmarks/tables/run.py --data DEST --tables all --draws {n_draws} -o FOLDER --render
"""


def write_page(folder: Path) -> Path:
    """Render ``rows.csv`` of a folder as ``README.md`` beside it."""
    path = folder / "README.md"
    path.write_text(page(read_rows(folder / "rows.csv")), encoding="utf-8")
    return path


def page(rows: pd.DataFrame) -> str:
    """The whole page."""
    rows = on_draws_of_default(rows)
    good = rows[rows["failed"].isna()]
    parts = [
        introduction(good),
        *summaries(good),
        peer_section(good),
        default_losses(good),
        *by_bags(good, "AUC / error in %", auc_and_error),
        *by_bags(good, "AUC, 100 times the difference to the first", difference_to_first),
        interval_section(good),
        about_methods(good),
        about_tables(good),
        failures(rows),
    ]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def on_draws_of_default(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the cells and draws that the default has run on, or all if it has run on none."""
    keys = pd.MultiIndex.from_frame(rows[["table", "bags", "draw"]])
    run = keys.isin(keys[rows["method"] == DEFAULT])
    return rows[run] if run.any() else rows


def introduction(rows: pd.DataFrame) -> str:
    return INTRODUCTION.format(
        n_tables=rows["table"].nunique(),
        n_draws=rows["draw"].nunique(),
        n_train=rows["n_train"].max(),
        n_test=rows["n_test"].max(),
    )


SUMMARY_HEADS = (
    "method",
    "cells",
    "mean rank, AUC",
    "first or within 1 SE, AUC",
    "first or within 1 SE, error",
    "first or within 1 SE, Brier",
    "cells lost to a naive method by > 1 SE, AUC",
    "cells lost to a naive method by > 1 SE, error",
    "cells worse than majority (by > 1 SE), error",
    "mean AUC x 100 below the first",
    "mean Brier x 100 above the first",
    "intervals that held",
    "median processor seconds",
)


def summaries(rows: pd.DataFrame) -> list[str]:
    """Counts over all cells, and over those of each part if there are several."""
    part_of = rows["table"].map(lambda name: TABLES[name].part)
    present = [part for part in reversed(get_args(Part)) if part in set(part_of)]
    found = [summary(rows[part_of == part], f"{part} part") for part in present]
    return found if len(found) == 1 else [summary(rows, "all tables"), *found]


def summary(rows: pd.DataFrame, title: str) -> str:
    """Counts for every method that does not see labels."""
    heads = draws_heads(rows)
    names = [name for name in heads if not METHODS[name].sees_labels]
    metrics = {name: Comparison(rows, name) for name in ("auc", "error", "brier")}
    lines = [
        [heads[name], *summary_row(rows[rows["method"] == name], name, metrics)] for name in names
    ]
    return f"## In short: {title}\n\n" + table(SUMMARY_HEADS, lines)


def summary_row(own: pd.DataFrame, name: str, metrics: dict[str, Comparison]) -> list[str]:
    auc, error, brier = metrics.values()
    held = intervals_held(own)["held"]
    rank = auc.mean_rank(name)
    return [
        str(len(auc.cells(name))),
        f"{rank:.1f}" if rank == rank else "-",
        *(f"{100 * metric.share_first(name):.0f} %" for metric in (auc, error, brier)),
        *(str(cells_lost(metric, name, "naive")) for metric in (auc, error)),
        worse_than_majority(error, name),
        f"{100 * auc.mean_regret(name):.2f}",
        f"{100 * brier.mean_regret(name):.2f}",
        f"{held.sum()} of {len(held)}" if len(held) else "-",
        f"{own['seconds'].median():.1f}",
    ]


def cells_lost(metric: Comparison, name: str, kind: str) -> int:
    return len({cell for cell, _ in metric.losses(name, kind=kind)})


def worse_than_majority(error: Comparison, name: str) -> str:
    if "majority" not in error.means:
        return "-"
    cells = error.cells(name)
    worse = sum(error.difference(cell, "majority", name)[0] > 1e-9 for cell in cells)
    return f"{worse} ({cells_lost(error, name, 'trivial')})"


def default_losses(rows: pd.DataFrame) -> str:
    """Every cell in which the default loses to a naive or trivial method."""
    title = f"## Where the default (`{DEFAULT}`) loses to a naive method\n\n"
    if DEFAULT not in set(rows["method"]):
        return title + "The default has not been run."
    lines = []
    for metric in ("auc", "error", "brier"):
        found = Comparison(rows, metric)
        for kind in ("trivial", "naive"):
            for cell, rival in found.losses(DEFAULT, kind=kind):
                value, error = found.difference(cell, rival, DEFAULT)
                by = f"{100 * value:.2f} ± {100 * error:.2f}"
                lines.append([marked(cell[0]), cell[1], metric, rival, by])
    heads = ["table", "bags", "metric", "better method", "by (x 100)"]
    return title + (table(heads, lines) if lines else "Nowhere by more than one standard error.")


Show = Callable[[dict[str, Comparison], tuple[str, str], str], str]


def by_bags(rows: pd.DataFrame, title: str, show: Show) -> list[str]:
    """One table for each kind of bags: tables down, methods across."""
    sections = []
    for bags in dict.fromkeys(rows["bags"]):
        own = rows[rows["bags"] == bags]
        names = draws_heads(own)
        metrics = {metric: Comparison(own, metric) for metric in ("auc", "error")}
        cells = [(name, bags) for name in TABLES if name in set(own["table"])]
        lines = [
            [marked(cell[0]), *(show(metrics, cell, name) for name in names)] for cell in cells
        ]
        heads = ["table", *names.values()]
        sections.append(f"## {title}: {bags_head(bags)}\n\n" + table(heads, lines))
    return sections


def auc_and_error(metrics: dict[str, Comparison], cell: tuple[str, str], name: str) -> str:
    auc, error = metrics["auc"], metrics["error"]
    if not auc.ran(cell, name):
        return "-"
    value, wrong = auc.means.loc[cell, name], abs(100 * error.means.loc[cell, name])
    texts = f"{value:.3f}".removeprefix("0"), f"{wrong:.1f}"
    firsts = auc.first[cell], error.first[cell]
    return " / ".join(
        f"**{text}**" if name == first else text for text, first in zip(texts, firsts, strict=True)
    )


def difference_to_first(metrics: dict[str, Comparison], cell: tuple[str, str], name: str) -> str:
    auc = metrics["auc"]
    if not auc.ran(cell, name):
        return "-"
    if name == auc.first[cell]:
        return "**first**"
    value, error = auc.difference(cell, name, auc.first[cell])
    return f"{100 * value:+.1f} ± {100 * error:.1f}"


def interval_section(rows: pd.DataFrame) -> str:
    """How often stated intervals of random bags held, by size of bags."""
    held = intervals_held(rows)
    if held.empty:
        return ""
    found = held.groupby(["method", "bags"])["held"].agg(["sum", "count"])
    lines = [[method, bags, f"{s} of {n}"] for (method, bags), (s, n) in found.iterrows()]
    text = (
        "An interval held if it contains the error on the test rows, up to the standard error of "
        "that error.\n\n"
    )
    return "## Stated intervals\n\n" + text + table(["method", "bags", "held"], lines)


def about_methods(rows: pd.DataFrame) -> str:
    median = rows.groupby("method")["seconds"].median()
    lines = [
        [name, METHODS[name].kind, METHODS[name].about, f"{median[name]:.1f}"]
        for name in present(rows)
    ]
    heads = ["method", "kind", "what it is", "median processor seconds"]
    # Rows of these sources were timed before the runner measured processor time.
    by_clock = sorted(set(rows.loc[rows["sources"] == "074e81a", "method"]))
    note = f"\n\nBy the clock on a shared machine: {'; '.join(by_clock)}." if by_clock else ""
    return "## Methods\n\n" + table(heads, lines) + note


def about_tables(rows: pd.DataFrame) -> str:
    lines = []
    for name in (name for name in TABLES if name in set(rows["table"])):
        entry, own = TABLES[name], rows[rows["table"] == name]
        natural = own.loc[own["bags"] == "natural", "n_bags"]
        size = f"{natural.iloc[0]} by {', '.join(entry.groups)}" if len(natural) else "-"
        package = entry.source.package.split("==")[0]
        rate = (own["n_positive"] / own["n_test"]).mean()
        counts = [f"{own['n_train'].max():,}", f"{100 * rate:.1f}"]
        lines.append([marked(name), entry.about, package, *counts, size])
    heads = ["table", "question", "package", "training rows", "positive, %", "natural groups"]
    return "## Tables\n\n" + table(heads, lines)


def failures(rows: pd.DataFrame) -> str:
    failed = rows[rows["failed"].notna()]
    if failed.empty:
        return ""
    columns = ["table", "bags", "draw", "method", "failed"]
    return "## Failures\n\n" + table(columns, failed[columns].astype(str).to_numpy().tolist())


def present(rows: pd.DataFrame) -> list[str]:
    """Methods that have rows, in the order of the registry."""
    return [name for name in METHODS if name in set(rows["method"])]


def draws_heads(rows: pd.DataFrame) -> dict[str, str]:
    """Methods that have rows, with the number of their draws where others have more."""
    draws = Comparison(rows, "auc").draws
    missing = draws.lt(draws.max(axis=1), axis=0) & draws.gt(0)
    heads = {}
    for name in present(rows):
        fewer = f" ({draws_text(draws[name])})" if missing[name].any() else ""
        heads[name] = (f"**{name}**" if name == DEFAULT else name) + fewer
    return heads


def draws_text(counts: pd.Series) -> str:
    """How many draws a method has in the cells in which it ran."""
    ran = counts[counts > 0]
    if ran.max() == 1:
        return "1 draw"
    return "-".join(str(n) for n in sorted({ran.min(), ran.max()})) + " draws"


if __name__ == "__main__":
    print(write_page(Path(sys.argv[1])))
