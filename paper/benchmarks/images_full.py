"""`BagImageClassifier` with its defaults on a whole data set of images in random bags.

    python paper/benchmarks/images_full.py --data FOLDER [--images cifar10] [--bag-size 256]
        [--device cuda] [--seed 0] [-o paper/results/checks/images_full.txt]

What it prints is written to the file. Labels make the proportions and count mistakes, nothing else.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import unbag
from unbag_paper.data import Labelled
from unbag_paper.league.data import load_images
from unbag_paper.runs.provenance import device_name


def example(data: Labelled, bag_size: int, device: str, seed: int) -> list[str]:
    """The lines of a user, and what they print."""
    order = np.random.default_rng(seed).permutation(len(data.X_train))
    order = order[: len(order) // bag_size * bag_size]
    images, labels = data.X_train[order], data.y_train[order]
    bags = np.arange(len(order)) // bag_size
    shares = np.eye(labels.max() + 1)[labels].reshape(-1, bag_size, labels.max() + 1).mean(axis=1)

    begun = time.perf_counter()
    clf = unbag.BagImageClassifier(device=device, random_state=seed, progress=True)
    clf.fit(images, shares[bags], bags=bags)
    minutes = (time.perf_counter() - begun) / 60
    guessed = np.mean(clf.start_.argmax(axis=1) == labels)
    right = np.mean(clf.predict(data.X_test) == data.y_test)
    return [
        f"{len(images)} images in {bags[-1] + 1} bags of {bag_size}",
        f"{100 * guessed:.1f} % of the pseudo-labels are right",
        f"{100 * right:.2f} % of the {len(data.X_test)} test images are right",
        f"{minutes:.1f} minutes on {device_name(device)}",
    ]


def main() -> None:
    """Read the arguments, train, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--images", default="cifar10", help="cifar10, mnist or digits")
    parser.add_argument("--bag-size", type=int, default=256)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path)
    own = parser.parse_args()
    lines = example(load_images(own.images, own.data), own.bag_size, own.device, own.seed)
    print(*lines, sep="\n")
    if own.output:
        own.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
