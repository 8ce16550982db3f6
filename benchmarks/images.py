"""Bags of images on a CPU: `BagImageClassifier` as it is, beside closed form and EM on pixels.

    python benchmarks/images.py [--data FOLDER] [--problems digits,mnist,cifar10] [--draws 2]
        [--bag-sizes 16,64,256] [--methods majority,ridge,em,net] [--minutes 40]

Digits come with scikit-learn: 1,280 to train on, 517 to test. MNIST and CIFAR-10 are read from the
folder: 2,000 to train on, 2,000 to test. Draw d takes images and bags by seed d. Every method has
its defaults, except that EM is around a logistic regression. "labels" is the same net and the same
steps with bags of one. Adds rows to benchmarks/results/images.csv, those that are missing, and
writes images.md from all of them. No new row is begun after the minutes.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from unbag import BagEMClassifier, BagImageClassifier, BagRidgeClassifier

FOLDER = Path(__file__).parent / "results"
ROWS, OUTPUT = FOLDER / "images.csv", FOLDER / "images.md"
N_TRAIN = {"digits": 1280, "mnist": 2000, "cifar10": 2000}
N_TEST = 2000
BAG_SIZES = (16, 64, 256)
LABELS = 1  # the size of bags that are labels


def flat(images):
    return images.reshape(len(images), -1) / np.float32(255)


def majority(images, shares, bags, test, seed):
    return np.full(len(test), shares.mean(axis=0).argmax())


def ridge(images, shares, bags, test, seed):
    model = BagRidgeClassifier(n_components="auto")
    return model.fit(flat(images), shares, bags=bags).predict(flat(test))


def em(images, shares, bags, test, seed):
    model = BagEMClassifier(LogisticRegression(), random_state=seed)
    return model.fit(flat(images), shares, bags=bags).predict(flat(test))


def net(images, shares, bags, test, seed):
    model = BagImageClassifier(random_state=seed)
    return model.fit(images, shares, bags=bags).predict(test)


METHODS = {"majority": majority, "ridge": ridge, "em": em, "net": net}


def load(problem, folder, draw):
    """Training and test images as bytes with their labels, drawn by seed."""
    from unbag_paper.league.data import load_images

    data = load_images(problem, folder)
    images = np.concatenate([data.X_train, data.X_test])
    if images.dtype != np.uint8:
        images = np.round(255 * images).astype(np.uint8)
    labels = np.concatenate([data.y_train, data.y_test])
    order = np.random.default_rng(draw).permutation(len(images))
    train, test = np.split(order[: N_TRAIN[problem] + N_TEST], [N_TRAIN[problem]])
    return images[train], labels[train], images[test], labels[test]


def measured(method, data, bag_size, seed):
    """Test error in percent, and processor seconds."""
    images, labels, test, test_labels = data
    n = len(images) // bag_size * bag_size
    bags = np.arange(n) // bag_size
    shares = np.eye(10)[labels[:n]].reshape(-1, bag_size, 10).mean(axis=1)[bags]
    begun = time.process_time()
    predicted = method(images[:n], shares, bags, test, seed)
    return 100 * np.mean(predicted != test_labels), time.process_time() - begun


def read_rows():
    if not ROWS.exists():
        return {}
    lines = [line.split(",") for line in ROWS.read_text().splitlines()[1:]]
    return {(p, int(k), int(d), name): (float(e), float(s)) for p, k, d, name, e, s in lines}


def write_rows(rows):
    lines = [f"{p},{k},{d},{n},{e:.2f},{s:.1f}" for (p, k, d, n), (e, s) in sorted(rows.items())]
    ROWS.write_text("\n".join(["problem,bag_size,draw,method,error,seconds", *lines]) + "\n")


def add_missing(rows, options):
    deadline = time.monotonic() + 60 * options.minutes
    sizes, methods = map(int, options.bag_sizes.split(",")), options.methods.split(",")
    cells = [(k, name) for k in sizes for name in methods if k != LABELS or name == "net"]
    for problem in options.problems.split(","):
        for draw in range(options.draws):
            data = load(problem, options.data, draw)
            for k, name in cells:
                if (problem, k, draw, name) in rows or time.monotonic() > deadline:
                    continue
                error, seconds = measured(METHODS[name], data, k, draw)
                rows[problem, k, draw, name] = error, seconds
                write_rows(rows)
                print(
                    f"{problem}, bags of {k}, draw {draw}, {name}: {error:.1f} %, {seconds:.0f} s"
                )


def cell(rows, *key):
    """Mean error with its standard error, number of draws and seconds."""
    found = np.array([v for (p, k, _, n), v in rows.items() if (p, k, n) == key])
    if not len(found):
        return "-"
    spread = found[:, 0].std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else np.nan
    text = f"{found[:, 0].mean():.1f} ± {spread:.1f}" if len(found) > 1 else f"{found[0, 0]:.1f}"
    return f"{text} ({len(found)}; {np.median(found[:, 1]):.0f} s)"


def page(rows):
    lines = []
    for problem in N_TRAIN:
        for k in BAG_SIZES:
            cells = [cell(rows, problem, k, name) for name in METHODS]
            of_labels = cell(rows, problem, LABELS, "net")
            lines.append(f"| {problem} | {k} | " + " | ".join([*cells, of_labels]) + " |")
    return PAGE.format(lines="\n".join(lines))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--problems", default="digits")
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--bag-sizes", default=",".join(map(str, (*BAG_SIZES, LABELS))))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--minutes", type=float, default=40)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = read_rows()
    add_missing(rows, options)
    OUTPUT.write_text(page(rows))


PAGE = """# Ten classes of images in bags, on a CPU

Written by `python benchmarks/images.py --data FOLDER --problems digits,mnist,cifar10`. Test error
in percent, mean over draws of images and bags with its standard error; in brackets the number of
draws and the median processor seconds of one fit and its predictions, on one core. 1,280 digits of
8 x 8 pixels, 2,000 of MNIST, 2,000 of CIFAR-10.

| images | bags of | majority | ridge | EM | BagImageClassifier | the same with labels |
|---|---|---|---|---|---|---|
{lines}

Ridge is `BagRidgeClassifier(n_components="auto")` on pixels, EM is
`BagEMClassifier(LogisticRegression())` on pixels. `BagImageClassifier` has its defaults. They were
tuned on draws 0 and 1 of the digits, and on CIFAR-10 with a larger network. Guesses before
training, and when to mirror, were also looked at on MNIST. A dash is a cell that has
not been run, and a cell of one draw says nothing of spread. The same command adds what is missing.
"""

if __name__ == "__main__":
    main()
