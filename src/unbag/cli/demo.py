"""`unbag demo`: train and evaluate on bundled data, without a download, in under a minute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from unbag.cli import options as opt

if TYPE_CHECKING:
    from unbag.evaluation import Estimate
    from unbag.evaluation.printing import TextTable

BAG_SIZES = (20, 50)


class Outcome(NamedTuple):
    """One line of the table."""

    bag_size: int
    n_held_out: int
    name: str
    estimate: Estimate
    true_error: float


def demo(
    seed: Annotated[int, typer.Option(help="Random seed of the split, the bags and the nets.")] = 0,
    epochs: Annotated[int, typer.Option(help="Training epochs of each net.", min=1)] = 150,
    as_json: opt.Json = False,
) -> None:
    """Learn to tell odd from even digits from the share of even digits in each bag.

    Train every rule on scikit-learn's digits, estimate the error of each net from held-out bags
    alone, and compare it with the true error.

    Examples:

      unbag demo

      unbag demo --seed 1 --epochs 50

      unbag demo --json
    """
    console = opt.console(as_json)
    console.print(
        "Digits, odd or even. The learners get bags of images and the share of even ones in each "
        "bag, but no labels.\n"
    )
    outcomes = [o for size in BAG_SIZES for o in run_bag_size(size, seed=seed, epochs=epochs)]
    console.print(table_of(outcomes))
    console.print(meaning_of(outcomes))
    lines = [
        {
            "bag_size": o.bag_size,
            "rule": o.name,
            "estimated_error": {n: o.estimate.to_dict()[n] for n in ("value", "low", "high")},
            "true_error": o.true_error,
        }
        for o in outcomes
    ]
    opt.answer({"seed": seed, "epochs": epochs, "lines": lines}, as_json)


def run_bag_size(bag_size: int, *, seed: int, epochs: int) -> list[Outcome]:
    """Train every gradient rule in one stack, and the ridge in closed form."""
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from unbag.bags import make_bags
    from unbag.estimators import BagRidgeClassifier
    from unbag.evaluation import estimate_risk
    from unbag.rules import RULES, DebiasedSquare
    from unbag.training import Settings, Trial, train
    from unbag.training.scoring import scores_of

    X, digit = load_digits(return_X_y=True)
    X, y = (X / 16).astype(np.float32), (digit % 2 == 0).astype(int)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=seed)
    bags = make_bags(X_train, y_train, bag_size=bag_size, seed=seed)
    held_out = make_bags(X_test, y_test, bag_size=bag_size, seed=seed + 1)
    rules = {name: rule() for name, rule in RULES.items()}
    rules["debiased_square, moving"] = DebiasedSquare(debias="moving")  # as in the paper
    settings = Settings(max_epochs=epochs, redraw=True, progress=True)
    results = train([Trial(rule, 3e-3, seed) for rule in rules.values()], bags, settings=settings)
    scores = {n: scores_of(found, X_test) for n, found in zip(rules, results, strict=True)}
    scores["ridge, closed form"] = BagRidgeClassifier().fit_bags(bags).predict_proba(X_test)[:, 1]
    return [
        Outcome(
            bag_size,
            held_out.n_bags,
            name,
            estimate_risk(found, held_out),
            float(np.mean((found > 0.5) != (y_test == 1))),
        )
        for name, found in scores.items()
    ]


def table_of(outcomes: list[Outcome]) -> TextTable:
    """Estimated beside true error."""
    from unbag.evaluation.printing import TextTable

    rows = []
    for o in outcomes:
        interval = f"{100 * o.estimate.low:.1f} to {100 * o.estimate.high:.1f}"
        true = f"{100 * o.true_error:.1f}"
        rows.append((str(o.bag_size), o.name, o.estimate.headline_percent, interval, true))
    columns = ("bag size", "rule", "estimated from bags", "95 % interval", "true")
    return TextTable("Error of single predictions, in %", columns, rows)


def meaning_of(outcomes: list[Outcome]) -> str:
    """Summarise the table in three lines."""
    best = min(outcomes, key=lambda o: o.true_error)
    sizes = {o.bag_size: o.n_held_out for o in outcomes}
    held_out = " and ".join(f"{n} bags of {size} digits" for size, n in sizes.items())
    inside = sum(o.estimate.low <= o.true_error <= o.estimate.high for o in outcomes)
    return (
        f"Bags of {best.bag_size} are enough to predict single labels: {best.name} has an error of "
        f"{100 * best.true_error:.1f} % on new digits.\n"
        f"No label was needed to estimate it: the 95 % interval contains the true error in "
        f"{inside} of {len(outcomes)} lines.\n"
        f"Intervals are wide because few bags are held out: {held_out}."
    )
