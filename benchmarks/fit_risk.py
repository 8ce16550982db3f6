"""Is the error that `BagClassifier` states after `fit` that of the classifier one gets?

    python benchmarks/fit_risk.py [--draws 40] [--seed 0]

Draws a problem anew each time (labels depend on a product of two features and on a third, with
noise), fits with the defaults but for the number of epochs, and compares `risk_` with the error of
the final net on 20,000 fresh labelled instances. Beside it a fit without any bag held out: what
measuring costs in accuracy and in time. Writes ``results/coverage/fit_risk.md``.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from unbag import BagClassifier, make_bags
from unbag.randomness import numpy_generator

OUTPUT = Path(__file__).parents[1] / "results" / "coverage" / "fit_risk.md"
SHAPES = [(20, 50), (40, 20), (100, 10), (300, 10)]
COLUMNS = [
    *("bags", "bag size", "measured on", "stated error %", "true error %", "covered %"),
    *("stated too high %", "stated too low %", "error without measuring %", "time ratio"),
]


def draw(rng, n):
    X = rng.normal(size=(n, 6)).astype("float32")
    clean = X[:, 0] * X[:, 1] + X[:, 2]
    return X, (clean + 0.5 * rng.normal(size=n) > 0).astype(int)


def one_draw(rng, n_bags, bag_size, epochs, seed):
    """Stated risk, true error, error of a plain fit, and the ratio of the two times."""
    X, labels = draw(rng, n_bags * bag_size)
    bags = make_bags(X, labels, bag_size=bag_size, seed=seed)
    fresh, truth = draw(rng, 20_000)
    fits, seconds = [], []
    for share in (0.2, 0):
        clf = BagClassifier(max_epochs=epochs, validation_share=share, random_state=seed)
        begun = time.perf_counter()
        fits.append(clf.fit_bags(bags))
        seconds.append(time.perf_counter() - begun)
    errors = [np.mean(clf.predict(fresh) != truth) for clf in fits]
    return fits[0].risk_, errors[0], errors[1], seconds[0] / seconds[1]


def row(n_bags, bag_size, *, draws, epochs, seed):
    rng = numpy_generator("fit risk", seed, n_bags, bag_size)
    found = [one_draw(rng, n_bags, bag_size, epochs, number) for number in range(draws)]
    stated = np.array([[risk.value, risk.low, risk.high] for risk, *_ in found])
    error, plain, ratio = np.array([rest for _, *rest in found]).T
    high, low = stated[:, 1] > error, stated[:, 2] < error
    cells = [str(n_bags), str(bag_size), f"{found[0][0].n_bags} bags"]
    cells += [_mean(stated[:, 0]), _mean(error), _share(~(high | low)), _share(high), _share(low)]
    return [*cells, _mean(plain), f"{np.median(ratio):.2f}"]


def _mean(values):
    return f"{100 * values.mean():.2f} ± {100 * values.std(ddof=1) / len(values) ** 0.5:.2f}"


def _share(hits):
    return f"{100 * hits.mean():.0f}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    lines = ["# The error stated after a fit, and that of the classifier one gets", ""]
    lines += [
        f"`python benchmarks/fit_risk.py`: {options.draws} draws a row, seed {options.seed}, "
        f"{options.epochs} epochs. Means with standard errors; the time ratio is a median.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|---" * len(COLUMNS) + "|",
    ]
    for shape in SHAPES:
        cells = row(*shape, draws=options.draws, epochs=options.epochs, seed=options.seed)
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    OUTPUT.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
