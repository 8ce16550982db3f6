"""What `check_bags` finds: the smallest effect that is found in 90 % of cases.

    python benchmarks/check_power.py [--draws 100] [--seed 0]

Bags depart from random ones in one way at a time, by an effect that grows by factors of the root of
two. An effect is found if its own check's p-value is at most 5 % by the number of checks, the most
that Holm's correction asks for. Writes ``results/checks/power.csv`` and ``.md``.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from scipy.special import expit

from unbag.bags import Bags
from unbag.evaluation.checks import CHECKS
from unbag.randomness import numpy_generator

FOLDER = Path(__file__).parent / "results" / "checks"
NUMBERS, SIZES = (30, 100, 300, 1000), (10, 100)
LEVEL, WANTED, N_BLOCKS = 0.05 / len(CHECKS), 0.9, 10
EFFECTS = np.round(0.01 * np.sqrt(2) ** np.arange(18), 3)  # up to 3.6
FIELDS = ["check", "effect_is", "n_bags", "bag_size", "effect", "found"]


def bag_logits(rng, logits, size, X=None):
    """Bags whose labels all have the logit of their bag."""
    n_bags = len(logits)
    X = np.zeros((n_bags * size, 1)) if X is None else X
    counts = rng.binomial(size, expit(logits))
    return Bags.from_arrays(X, offsets=np.arange(0, len(X) + 1, size), counts=counts)


def dispersed(rng, n_bags, size, effect):
    return (bag_logits(rng, effect * rng.normal(size=n_bags), size),)


def drifting(rng, n_bags, size, effect):
    return (bag_logits(rng, effect * np.linspace(-1, 1, n_bags), size),)


def in_blocks(rng, n_bags, size, effect):
    blocks = np.arange(n_bags) % N_BLOCKS
    return bag_logits(rng, effect * rng.normal(size=N_BLOCKS)[blocks], size), blocks


def shifted(rng, n_bags, size, effect):
    """One of five features has a mean of its own in every bag."""
    X = rng.normal(size=(n_bags * size, 5))
    X[:, 0] += np.repeat(effect * rng.normal(size=n_bags), size)
    return (bag_logits(rng, np.zeros(n_bags), size, X),)


def copied(rng, n_bags, size, effect):
    """Rows of 14 yes-or-no columns; a share of them is copied over rows of other bags."""
    X = rng.integers(0, 2, size=(n_bags * size, 14)).astype(float)
    half = len(X) // 2
    rows = rng.permutation(half)[: int(min(effect, 1) * half)]
    X[half + rows] = X[rows]
    return (bag_logits(rng, np.zeros(n_bags), size, X),)


def wrongly_joined(rng, n_bags, size, effect):
    X = rng.normal(size=(n_bags * size, 5))
    return (bag_logits(rng, np.zeros(n_bags), size, X),)


DEPARTURES = {
    "dispersion": (dispersed, "deviation of the bags' logits"),
    "trend": (drifting, "logits drift from minus this to plus this"),
    "blocks": (in_blocks, "deviation of the logits of ten blocks"),
    "homogeneity": (shifted, "deviation between bags of one of five features, by that within"),
    "duplicates": (copied, "share of rows that are in two bags, no column being unique"),
}


def share_found(check, make, n_bags, size, effect, options):
    rng = numpy_generator("power", options.seed, check, n_bags, size, float(effect))
    draws = (make(rng, n_bags, size, effect) for _ in range(options.draws))
    return float(np.mean([CHECKS[check].answer(*made).p_value <= LEVEL for made in draws]))


def smallest_found(check, n_bags, size, options):
    """Bisection: the share that is found grows with the effect."""
    make, effect_is = DEPARTURES[check]
    candidates = EFFECTS[EFFECTS <= 1] if check == "duplicates" else EFFECTS
    low, high, shares = -1, len(candidates), {}
    while high - low > 1:
        middle = (low + high) // 2
        shares[middle] = share_found(check, make, n_bags, size, candidates[middle], options)
        low, high = (low, middle) if shares[middle] >= WANTED else (middle, high)
    effect, found = ("", "") if high == len(candidates) else (candidates[high], shares[high])
    return dict(zip(FIELDS, (check, effect_is, n_bags, size, effect, found), strict=True))


def rows_of(options):
    for check in DEPARTURES:
        for size in SIZES:
            for n_bags in NUMBERS:
                yield smallest_found(check, n_bags, size, options)
    for n_bags in NUMBERS:
        found = share_found("signal", wrongly_joined, n_bags, SIZES[0], 0.0, options)
        of = "share of wrong joins that is found"
        yield dict(zip(FIELDS, ("signal", of, n_bags, SIZES[0], "", found), strict=True))


def page(rows, options):
    lines = ["# What `check_bags` finds", ""]
    lines += [
        f"`python benchmarks/check_power.py`, seed {options.seed}, {options.draws} draws. The"
    ]
    lines += ["smallest effect found in 90 % of cases; a dash: none of those tried.", ""]
    lines += ["| check | effect | bags of | " + " | ".join(f"{n} bags" for n in NUMBERS) + " |"]
    lines += ["|---" * (3 + len(NUMBERS)) + "|"]
    for check in DEPARTURES:
        for size in SIZES:
            own = [r for r in rows if r["check"] == check and r["bag_size"] == size]
            cells = [f"{r['effect']:g}" if r["effect"] != "" else "-" for r in own]
            lines.append(
                f"| {check} | {own[0]['effect_is']} | {size} | " + " | ".join(cells) + " |"
            )
    lines += ["", "A wrong join, the features explaining a tenth of the labels or more when joined"]
    lines += ["rightly, is found (`signal`) in this share of cases:", ""]
    lines += ["| " + " | ".join(f"{n} bags" for n in NUMBERS) + " |", "|---" * len(NUMBERS) + "|"]
    own = [f"{100 * r['found']:.0f} %" for r in rows if r["check"] == "signal"]
    return "\n".join([*lines, "| " + " | ".join(own) + " |", ""])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows = list(rows_of(options))
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "power.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    text = page(rows, options)
    (FOLDER / "power.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
