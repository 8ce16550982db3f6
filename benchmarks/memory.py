"""Peak memory of a fit, as a multiple of its input plus the model.

    python benchmarks/memory.py

Each fit runs in a process of its own; what Python and the imported libraries take before the input
exists is subtracted.
"""

import resource
import subprocess
import sys

import numpy as np

CASES = [
    ("BagClassifier", "float32"),
    ("BagClassifier", "float64"),
    ("BagRidgeClassifier", "float64"),
]
N_INSTANCES, N_FEATURES, BAG_SIZE = 400_000, 200, 100


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def fit(name, dtype):
    import unbag

    # A small fit first, so that every library is loaded.
    rng = np.random.default_rng(0)
    small = rng.random((200, 3), dtype=np.float32)
    options = {"max_epochs": 1, "random_state": 0} if name == "BagClassifier" else {}
    model = getattr(unbag, name)(**options)
    model.fit(small, np.repeat(rng.integers(0, 11, 20) / 10, 10), bags=np.repeat(np.arange(20), 10))
    before = peak()
    X = rng.random((N_INSTANCES, N_FEATURES), dtype=dtype)
    n_bags = N_INSTANCES // BAG_SIZE
    bags = rng.permutation(np.repeat(np.arange(n_bags), BAG_SIZE))
    y = (rng.integers(0, BAG_SIZE + 1, n_bags) / BAG_SIZE)[bags]
    model.fit(X, y, bags=bags)
    ratio = (peak() - before) / X.nbytes
    print(f"{name}, {dtype}, {X.nbytes / 1e6:.0f} MB: peak {ratio:.2f} times the input")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        fit(*sys.argv[1:])
    else:
        for case in CASES:
            subprocess.run([sys.executable, __file__, *case], check=True)
