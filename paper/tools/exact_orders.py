"""Write down the order in which the paper's code reads the training instances.

    pip install tensorflow-cpu
    python paper/tools/exact_orders.py

The code that the paper names (github.com/GXLI97/llp_experiments) shuffles the training set once, in
a buffer of 10,000 instances with global seed 10,000, and cuts the result into bags; every
trial uses the same. Written with TensorFlow 2.21, which is needed for nothing else here.
"""

from pathlib import Path

import numpy as np
import tensorflow as tf

SEED = BUFFER = 10_000
SIZES = {"mnist": 60_000, "cifar": 50_000}


def main():
    folder = Path(__file__).parents[1] / "src" / "unbag_paper" / "runs" / "orders"
    for name, n_instances in SIZES.items():
        tf.keras.utils.set_random_seed(SEED)
        rows = tf.data.Dataset.from_tensor_slices(np.arange(n_instances))
        shuffled = rows.shuffle(BUFFER, reshuffle_each_iteration=False).batch(n_instances)
        [order] = [batch.numpy() for batch in shuffled]
        np.save(folder / f"{name}.npy", order.astype(np.uint16))


if __name__ == "__main__":
    main()
