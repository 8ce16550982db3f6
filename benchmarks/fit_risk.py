"""Is the error that `BagClassifier` states after `fit` that of the classifier one gets?

    python benchmarks/fit_risk.py [--draws 40] [--seed 0]       # half an hour on one core

Draws a problem anew each time and fits with the defaults but for the number of epochs: as they are,
with ``refit=False``, and without any bag held out. Compares `risk_` of the first two with the error
of the returned classifier on 20,000 fresh labelled instances. Three laws: labels that depend on a
product of two features and on a third, with noise; all that lies outside a circle; and a ring
between two circles. Writes ``results/coverage/fit_risk.md``.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from unbag import BagClassifier, make_bags
from unbag.randomness import numpy_generator

OUTPUT = Path(__file__).parent / "results" / "coverage" / "fit_risk.md"
# Law, bags, bag size, epochs.
CELLS = [("outside", 60, 10, 50), ("outside", 24, 10, 50), ("ring", 60, 10, 50)]
CELLS += [("product", 20, 50, 30), ("product", 40, 20, 30), ("product", 100, 10, 30)]
COLUMNS = [
    *(
        "law",
        "bags",
        "bag size",
        "epochs",
        "refit",
        "measured on",
        "stated error %",
        "true error %",
    ),
    *("covered %", "stated too high %", "stated too low %", "time"),
]
FITS = {"yes": {}, "no": {"refit": False}, "nothing held out": {"validation_share": 0}}


def product(rng, n):
    X = rng.normal(size=(n, 6)).astype("float32")
    clean = X[:, 0] * X[:, 1] + X[:, 2]
    return X, (clean + 0.5 * rng.normal(size=n) > 0).astype(int)


def ring(rng, n):
    X = rng.normal(size=(n, 2)).astype("float32")
    return X, (np.abs(np.hypot(*X.T) - 1.2) < 0.5).astype(int)


def outside(rng, n):
    X = rng.normal(size=(n, 2)).astype("float32")
    return X, (np.hypot(*X.T) > 1.18).astype(int)


LAWS = {"product": product, "ring": ring, "outside": outside}


def one_draw(rng, law, n_bags, bag_size, epochs, seed):
    """Stated risk, true error and seconds of each kind of fit."""
    X, labels = LAWS[law](rng, n_bags * bag_size)
    bags = make_bags(X, labels, bag_size=bag_size, seed=seed)
    fresh, truth = LAWS[law](rng, 20_000)
    found = []
    for options in FITS.values():
        begun = time.perf_counter()
        clf = BagClassifier(max_epochs=epochs, random_state=seed, **options).fit_bags(bags)
        seconds = time.perf_counter() - begun
        found.append((clf.risk_, np.mean(clf.predict(fresh) != truth), seconds))
    return found


def rows(law, n_bags, bag_size, epochs, *, draws, seed):
    rng = numpy_generator("fit risk", seed, law, n_bags, bag_size)
    found = [one_draw(rng, law, n_bags, bag_size, epochs, number) for number in range(draws)]
    for name, fits in zip(FITS, zip(*found, strict=True), strict=True):
        risks, errors, seconds = zip(*fits, strict=True)
        cells = [law, *map(str, (n_bags, bag_size, epochs)), name]
        yield [*cells, *_stated(risks, np.array(errors)), f"{np.median(seconds):.2f} s"]


def _stated(risks, errors):
    if risks[0] is None:
        return ["-", "-", _mean(errors), "-", "-", "-"]
    value, low, high = np.array([[risk.value, risk.low, risk.high] for risk in risks]).T
    above, below = low > errors, high < errors
    shares = [_share(~(above | below)), _share(above), _share(below)]
    return [f"{risks[0].n_bags} bags", _mean(value), _mean(errors), *shares]


def _mean(values):
    return f"{100 * values.mean():.2f} ± {100 * values.std(ddof=1) / len(values) ** 0.5:.2f}"


def _share(hits):
    return f"{100 * hits.mean():.0f}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--laws", nargs="+", choices=LAWS, default=list(LAWS))
    options = parser.parse_args()
    lines = ["# The error stated after a fit, and that of the classifier one gets", ""]
    lines += [
        f"`python benchmarks/fit_risk.py --laws {' '.join(options.laws)}`: {options.draws} draws a "
        f"row, seed {options.seed}. A coverage of 95 % has a standard error of "
        f"{100 * (0.95 * 0.05 / options.draws) ** 0.5:.0f} %. "
        "Means with standard errors; the time is a median.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|---" * len(COLUMNS) + "|",
    ]
    sizes = {"draws": options.draws, "seed": options.seed}
    for cell in (cell for cell in CELLS if cell[0] in options.laws):
        for cells in rows(*cell, **sizes):
            lines.append("| " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
        OUTPUT.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
