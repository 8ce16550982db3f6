"""Small images of a bright bar, lying, standing, or none, and a net small enough for them."""

from functools import partial

import numpy as np

from unbag.models.nets import residual_net
from unbag_paper.data import Labelled
from unbag_paper.league.spec import RunSpec

tiny_net = partial(residual_net, widths=(8, 16), n_blocks=1)


def draw(rng, n):
    labels = rng.integers(3, size=n).astype(np.uint8)
    images = rng.integers(0, 100, size=(n, 1, 8, 8))
    images[labels == 0, :, 4] += 150
    images[labels == 1, :, :, 4] += 150
    return images.astype(np.uint8), labels


def made_up(seed=0, n_train=240, n_test=60):
    rng = np.random.default_rng(seed)
    return Labelled("digits", *draw(rng, n_train), *draw(rng, n_test))


def run_of(method, data, **changes):
    from unbag_paper.league.methods import METHODS

    start = 1 if METHODS[method].needs_start else 0
    entries = {
        "dataset": "digits",
        "data": data.fingerprint,
        "net": "tiny",
        "method": method,
        "bags": "random",
        "bag_size": 2,
        "seed": 0,
        "learning_rate": 0.1,
        "epochs": 8,
        "start_epochs": start,
        "images_per_batch": 24,
    }
    return RunSpec(**entries | changes)
