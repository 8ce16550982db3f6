"""Seeds stay what they are: committed results depend on them."""

import numpy as np
import pytest

from unbag.bags import make_bags
from unbag.randomness import derive_seed

KNOWN = [
    ((), 5911644737314724887),
    ((0, "weights"), 8730110008906084551),
    (("mnist", 3, "batches"), 8876998545508580933),
    (("theory", (1, 0.5), "x"), 5519836677912540078),
    ((0.1, ("a", (2,))), 1942937511641676065),
    (([1, 2], None, True), 5257201280321939779),
]


@pytest.mark.parametrize(("names", "seed"), KNOWN)
def test_names_give_the_seeds_they_always_gave(names, seed):
    assert derive_seed(*names) == seed


@pytest.mark.parametrize(
    ("scalars", "values"),
    [
        ((np.int64(3), "bags"), (3, "bags")),
        ((np.float64(0.1), np.bool_(True)), (0.1, True)),
        ((np.str_("mnist"), ("a", (np.uint8(2),))), ("mnist", ("a", (2,)))),
    ],
)
def test_a_numpy_scalar_is_the_value_it_holds(scalars, values):
    assert derive_seed(*scalars) == derive_seed(*values)


def test_a_seed_out_of_an_array_draws_the_same_bags(rng):
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    plain, scalar = (make_bags(X, y, bag_size=10, seed=seed) for seed in (3, np.arange(5)[3]))
    np.testing.assert_array_equal(plain.rows, scalar.rows)
