"""Which grids, and which parts of them, a call asks for."""

import pytest

from unbag.errors import UnbagError
from unbag_paper.runs.grid import GRIDS
from unbag_paper.runs.request import chosen_grids

FIGURES = ("figure1", "figure2", "figure3")


def parts(names, **restriction):
    return {grid.name: grid for grid in chosen_grids(names, restriction)}


def test_each_grid_gives_what_it_has_of_the_names():
    found = parts(GRIDS, models=["linear", "cnn_padded"], rules=["DSQ", "ridge"])
    assert found["mnist"].models == ("linear", "cnn_padded")
    assert found["cifar"].models == ("linear",)
    assert [rule.label for rule in found["cifar"].rules] == ["DSQ", "ridge"]
    assert [rule.label for rule in found["cifar_exact"].rules] == ["DSQ"]
    assert "figure3" not in found


@pytest.mark.parametrize(
    ("names", "restriction", "words"),
    [
        (("mnist",), {"models": ["linear", "vgg"]}, "models must be among linear, .*'vgg'"),
        (GRIDS, {"rules": ["dsq", "sgd"]}, "rules must be among .*'sgd'"),
        (GRIDS, {"bag_sizes": [7]}, "bag-sizes must be among 10, 100, 1000, got 7"),
        (FIGURES, {"rules": ["ridge"]}, "rules must be among .*'ridge'"),
        (
            FIGURES,
            {"models": ["cnn_small"], "rules": ["count"]},
            "--models cnn_small --rules count",
        ),
        (("mnist",), {"models": ["mlp100"], "rules": ["ridge"]}, "No table or figure has all"),
        (("mnist",), {"n_seeds": 50}, "seeds must be at most 10"),
    ],
)
def test_what_no_grid_has_is_refused_by_its_name(names, restriction, words):
    with pytest.raises(UnbagError, match=words):
        chosen_grids(names, restriction)


def test_capitals_do_not_matter():
    found = parts(("mnist",), models=["Linear"], rules=["dsq"])["mnist"]
    assert (found.models, found.rules[0].label) == (("linear",), "DSQ")


def test_a_grid_of_fewer_seeds_has_them_all():
    assert parts(FIGURES, n_seeds=3)["figure2"].seeds == (0,)
