"""Features of images on a CPU: ridge and EM from bags, beside the same learner with labels.

    python benchmarks/features.py [--draws 3] [--bag-sizes 16,64,256]
    python benchmarks/features.py --make FOLDER_OF_MNIST

Reads 10,000 training and 2,500 test digits as 64 features each (benchmarks/data, 0.8 MB). They
were made by `--make` without labels: patches of 6 x 6 pixels, 128 clusters of them, how near each
quarter of an image comes to every cluster, principal components (Coates, Ng and Lee, 2011). Draw d
has the bags of seed d. Adds rows to benchmarks/results/features.csv, those that are missing, and
writes features.md from all of them.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.linear_model import LogisticRegression

from unbag import BagEMClassifier, BagRidgeClassifier, make_bags

FOLDER = Path(__file__).parent
FEATURES = FOLDER / "data" / "mnist_features.npz"
ROWS, OUTPUT = FOLDER / "results" / "features.csv", FOLDER / "results" / "features.md"
N_TRAIN, N_TEST, PATCH, STRIDE, N_CLUSTERS, N_FEATURES = 10_000, 2_500, 6, 2, 128, 64


def ridge(bags, X_test, seed):
    return BagRidgeClassifier(n_components="auto").fit_bags(bags).predict(X_test)


def em(bags, X_test, seed):
    learner = LogisticRegression(max_iter=200)
    model = BagEMClassifier(learner, start="ridge", random_state=seed)
    return model.fit_bags(bags).predict(X_test)


METHODS = {"ridge": ridge, "em": em}


def patches(images):
    """Patches of each image, brightness and contrast taken out, (n, rows, columns, pixels)."""
    windows = np.lib.stride_tricks.sliding_window_view(images, (PATCH, PATCH), axis=(1, 2))
    windows = windows[:, ::STRIDE, ::STRIDE].reshape(len(images), 12, 12, -1)
    centred = windows - windows.mean(axis=-1, keepdims=True)
    return centred / (centred.std(axis=-1, keepdims=True) + 10)


def pooled(images, centres):
    """How much nearer than the average cluster each cluster is, summed over quarters."""
    found = []
    for part in np.array_split(images, len(images) // 250):
        own = patches(part)
        squares = (own**2).sum(-1, keepdims=True) + (centres**2).sum(-1) - 2 * own @ centres.T
        distances = np.sqrt(np.maximum(squares, 0))
        near = np.maximum(distances.mean(-1, keepdims=True) - distances, 0)
        found.append(
            near.reshape(len(part), 2, 6, 2, 6, -1).sum(axis=(2, 4)).reshape(len(part), -1)
        )
    return np.concatenate(found)


def make(folder):
    from unbag_paper.league.data import load_images

    data = load_images("mnist", folder)
    train = data.X_train[:N_TRAIN, 0].astype(np.float32)
    test = data.X_test[:N_TEST, 0].astype(np.float32)
    some = patches(train[:1000]).reshape(-1, PATCH**2)
    centres = MiniBatchKMeans(N_CLUSTERS, n_init=1, random_state=0).fit(some).cluster_centers_
    features, others = pooled(train, centres), pooled(test, centres)
    mean, directions = features.mean(axis=0), np.linalg.eigh(np.cov(features.T))[1][:, -N_FEATURES:]
    step = np.abs((features - mean) @ directions).max() / 127

    def packed(values):
        return np.round((values - mean) @ directions / step).clip(-127, 127).astype(np.int8)

    FEATURES.parent.mkdir(exist_ok=True)
    labels = {"y_train": data.y_train[:N_TRAIN], "y_test": data.y_test[:N_TEST]}
    np.savez_compressed(FEATURES, X_train=packed(features), X_test=packed(others), **labels)
    print(f"{FEATURES}: {FEATURES.stat().st_size / 1e6:.2f} MB")


def load():
    with np.load(FEATURES, allow_pickle=False) as arrays:
        X_train, X_test = (arrays[name].astype(np.float32) / 16 for name in ("X_train", "X_test"))
        return X_train, X_test, arrays["y_train"], arrays["y_test"]


def measured(method, data, bag_size, seed):
    """Test error in percent, and processor seconds."""
    X_train, X_test, y_train, y_test = data
    bags = make_bags(X_train, np.eye(10)[y_train], bag_size=bag_size, seed=seed)
    begun = time.process_time()
    predicted = method(bags, X_test, seed)
    return 100 * np.mean(predicted != y_test), time.process_time() - begun


def with_labels(data):
    X_train, X_test, y_train, y_test = data
    begun = time.process_time()
    predicted = LogisticRegression(max_iter=1000).fit(X_train, y_train).predict(X_test)
    return 100 * np.mean(predicted != y_test), time.process_time() - begun


def read_rows():
    if not ROWS.exists():
        return {}
    lines = [line.split(",") for line in ROWS.read_text().splitlines()[1:]]
    return {(int(k), int(d), name): (float(e), float(s)) for k, d, name, e, s in lines}


def add_missing(rows, bag_sizes, draws, data):
    wanted = [(k, d, name) for k in bag_sizes for d in range(draws) for name in METHODS]
    for k, draw, name in wanted:
        if (k, draw, name) not in rows:
            rows[k, draw, name] = error, seconds = measured(METHODS[name], data, k, draw)
            print(f"bags of {k}, draw {draw}, {name}: {error:.2f} %, {seconds:.1f} s", flush=True)
    lines = [f"{k},{d},{n},{e:.2f},{s:.2f}" for (k, d, n), (e, s) in sorted(rows.items())]
    ROWS.write_text("\n".join(["bag_size,draw,method,error,seconds", *lines]) + "\n")


def line_of(bag_size, rows, n_instances):
    cells = [f"{bag_size}", f"{n_instances // bag_size}"]
    for name in METHODS:
        found = np.array([v for (k, _, n), v in rows.items() if (k, n) == (bag_size, name)])
        spread = found[:, 0].std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else np.nan
        text = f"{found[:, 0].mean():.2f} ± {spread:.2f} ({len(found)})"
        cells += [text, f"{np.median(found[:, 1]):.1f}"]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--make", type=Path)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--bag-sizes", default="16,64,256")
    options = parser.parse_args()
    if options.make is not None:
        make(options.make)
        return
    data, rows = load(), read_rows()
    add_missing(rows, list(map(int, options.bag_sizes.split(","))), options.draws, data)
    error, seconds = with_labels(data)
    sizes = sorted({bag_size for bag_size, _, _ in rows})
    lines = "\n".join(line_of(size, rows, len(data[0])) for size in sizes)
    OUTPUT.write_text(PAGE.format(error=error, seconds=seconds, lines=lines))


PAGE = """# Ten digits from features, on a CPU

Written by `python benchmarks/features.py`: 10,000 training and 2,500 test digits, 64 features made
without labels. Test error in percent, mean over draws of bags with its standard error and the
number of draws; median processor seconds of one fit and its predictions. Logistic regression
**with all labels** has {error:.2f} % ({seconds:.1f} s).

| bags of | bags | ridge | seconds | EM | seconds |
|---|---|---|---|---|---|
{lines}

Ridge is `BagRidgeClassifier(n_components="auto")`, EM is
`BagEMClassifier(LogisticRegression(), start="ridge")`. Nothing is chosen with labels. From 39 bags
of ten classes EM adds nothing to ridge.
"""

if __name__ == "__main__":
    main()
