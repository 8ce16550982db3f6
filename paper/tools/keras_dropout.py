"""Does dropout act in a Keras model whose `call` takes no `training` argument?

    pip install tensorflow-cpu keras==3.3.3
    python paper/tools/keras_dropout.py

The nets of the paper's code (github.com/GXLI97/llp_experiments) are such models, called with
``training=True``. Keras 3.3, current when the paper appeared, drops that argument on the way, and
no unit is ever dropped; Keras 3.15 passes it on. Needed for nothing else here.
"""

import keras
import numpy as np


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.dropout = keras.layers.Dropout(0.5)

    def call(self, x):
        return self.dropout(x)


def main():
    values = Net()(np.ones((1, 1000), dtype="float32"), training=True)
    share = float(np.mean(np.asarray(values) == 0))
    print(f"Keras {keras.__version__}: {share:.0%} of the units are dropped in training.")


if __name__ == "__main__":
    main()
