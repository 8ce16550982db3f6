"""`unbag demo`: the main job on bundled data, without a download, in under a minute."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from unbag.bags import Bags, make_bags
from unbag.cli import options as opt
from unbag.estimators import BagRidgeClassifier
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.risk import estimate_risk
from unbag.rules import RULES, DebiasedSquare, Rule
from unbag.tables.record import plain
from unbag.training import Settings, Trial, train
from unbag.training.scoring import scores_of

__all__ = ["demo"]

BAG_SIZES = (20, 50)


@dataclass(frozen=True)
class Outcome:
    """One line of the demo's table."""

    bag_size: int
    n_held_out: int
    name: str
    estimate: Estimate
    true_error: float


def demo(
    seed: Annotated[int, typer.Option(help="Seed of the split, the bags and the nets.")] = 0,
    epochs: Annotated[int, typer.Option(help="Epochs of every net.", min=1)] = 150,
    plot: opt.Plot = None,
    as_json: opt.Json = False,
) -> None:
    """Learn odd from even digits when only the share of even digits in each bag is known.

    Trains every rule at once on the digits that come with scikit-learn, then says how good each
    net is twice: from held-out bags alone, and from the labels that the nets never saw.

    Examples:

      unbag demo

      unbag demo --seed 1 --epochs 50 --plot demo.png

      unbag demo --json
    """
    console = opt.console(as_json)
    console.print(
        "Digits, odd or even. The learners see bags of images and the share of even ones in each "
        "bag, never a single label.\n"
    )
    outcomes = [o for size in BAG_SIZES for o in run_bag_size(size, seed=seed, epochs=epochs)]
    console.print(table_of(outcomes))
    console.print(meaning_of(outcomes))
    if plot is not None:
        draw(outcomes, plot)
        console.print(f"The picture is in {plot}.")
    opt.answer(
        {"seed": seed, "epochs": epochs, "lines": [plain_line(o) for o in outcomes]}, as_json
    )


def plain_line(outcome: Outcome) -> dict[str, Any]:
    """A line of the table for a machine."""
    estimate = {name: getattr(outcome.estimate, name) for name in ("value", "low", "high")}
    return {
        "bag_size": outcome.bag_size,
        "rule": outcome.name,
        "estimated_error": plain(estimate),
        "true_error": outcome.true_error,
    }


def run_bag_size(bag_size: int, *, seed: int, epochs: int) -> list[Outcome]:
    """Train every gradient rule in one stack, and the closed form beside them."""
    X, digit = load_digits(return_X_y=True)
    X, y = (X / 16).astype(np.float32), (digit % 2 == 0).astype(int)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=seed)
    bags = make_bags(X_train, y_train, bag_size=bag_size, seed=seed)
    held_out = make_bags(X_test, y_test, bag_size=bag_size, seed=seed + 1)
    rules = gradient_rules()
    results = train(
        [Trial(rule, 3e-3, seed) for rule in rules],
        bags,
        settings=Settings(max_epochs=epochs, redraw=True, progress=True),
    )
    scores = {label(r): scores_of(t, X_test) for r, t in zip(rules, results, strict=True)}
    scores["ridge, closed form"] = ridge_scores(bags, X_test)
    true_errors = {name: float(np.mean((s > 0.5) != (y_test == 1))) for name, s in scores.items()}
    return [
        Outcome(bag_size, held_out.n_bags, name, estimate_risk(s, held_out), true_errors[name])
        for name, s in scores.items()
    ]


def gradient_rules() -> list[Rule]:
    """Every rule with a gradient, and the debiased loss also as the paper trains it."""
    rules = [rule() for rule in RULES.values() if rule.differentiable]
    return [*rules, DebiasedSquare(debias="moving")]


def label(rule: Rule) -> str:
    """Name a reader of the table can look up."""
    if isinstance(rule, DebiasedSquare):
        return f"{rule.name}, {rule.debias}"
    return rule.name


def ridge_scores(bags: Bags, X: np.ndarray) -> np.ndarray:
    """Scores of the closed-form learner trained on the same bags."""
    ids = bags.bag_of_row
    clf = BagRidgeClassifier().fit(bags.X, bags.proportions[ids], bags=ids)
    return clf.predict_proba(X)[:, 1]


def table_of(outcomes: list[Outcome]) -> Table:
    """Estimated beside true error."""
    table = Table(title="Error of single predictions, in %")
    for name in ("bag size", "rule", "estimated from bags", "95 % interval", "true"):
        table.add_column(name, justify="left" if name == "rule" else "right")
    for before, o in zip([None, *outcomes], outcomes, strict=False):
        if before is not None and before.bag_size != o.bag_size:
            table.add_section()
        interval = f"{100 * o.estimate.low:.1f} to {100 * o.estimate.high:.1f}"
        true = f"{100 * o.true_error:.1f}"
        table.add_row(str(o.bag_size), o.name, o.estimate.headline_percent, interval, true)
    return table


def meaning_of(outcomes: list[Outcome]) -> str:
    """Say in three lines what the table shows."""
    best = min(outcomes, key=lambda o: o.true_error)
    sizes = {o.bag_size: o.n_held_out for o in outcomes}
    held_out = " and ".join(f"{n} of {size} digits" for size, n in sizes.items())
    inside = sum(o.estimate.low <= o.true_error <= o.estimate.high for o in outcomes)
    return (
        f"Bags of {best.bag_size} are enough to learn single labels: {best.name} errs on "
        f"{100 * best.true_error:.1f} % of new digits.\n"
        f"No label was needed to know it: the interval from held-out bags holds the true error in "
        f"{inside} of {len(outcomes)} lines.\n"
        f"It is as wide as these bags are few: {held_out}."
    )


def draw(outcomes: list[Outcome], path: Path) -> None:
    """Draw intervals and true errors, one panel a bag size."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.9), layout="constrained")
    axes = figure.subplots(1, len(BAG_SIZES), sharey=True)
    for axis, bag_size in zip(axes, BAG_SIZES, strict=True):
        lines = [o for o in outcomes if o.bag_size == bag_size][::-1]
        value, low, high, true = (
            100 * np.array(column)
            for column in zip(
                *((o.estimate.value, o.estimate.low, o.estimate.high, o.true_error) for o in lines),
                strict=True,
            )
        )
        rows = np.arange(len(lines))
        axis.hlines(rows, low, high, color="#4477aa", lw=5, alpha=0.35, label="95 % interval")
        axis.plot(value, rows, "|", color="#4477aa", ms=12, mew=2, label="estimated from bags")
        axis.plot(true, rows, "o", color="#cc3311", ms=5, label="true error")
        axis.set(yticks=rows, yticklabels=[o.name for o in lines], xlim=(0, None))
        axis.set(title=f"bags of {bag_size}", xlabel="error of single predictions, %")
        axis.grid(axis="x", alpha=0.3)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=150)
