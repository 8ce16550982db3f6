"""Tables the tests share."""

import numpy as np
import pyarrow as pa

from unbag.tables import Roles

ROLES = Roles("group", proportions=("rate",))


def make_table(rng, *, n_bags=40, sizes=None, shuffled=True):
    """Instances whose label is the sign of x, in bags that reveal the proportion; and labels."""
    sizes = np.full(n_bags, 10) if sizes is None else np.asarray(sizes)
    group = np.repeat(np.arange(len(sizes)), sizes)
    if shuffled:
        group = rng.permutation(group)
    x = rng.normal(size=len(group))
    labels = x > 0
    rate = np.bincount(group, labels) / sizes
    columns = {
        "group": group,
        "rate": rate[group],
        "x": x,
        "z": rng.normal(size=len(group)),
        "colour": rng.choice(["red", "green", "blue"], len(group)),
    }
    return pa.table(columns), labels
