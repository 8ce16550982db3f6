"""The shape of the house, and that the tool which measures it sees what is wrong."""

import pytest
from tools import house


def small_library(folder, **files):
    for name, text in {"__init__": "", **files}.items():
        path = folder / "unbag" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "unbag"


def test_the_library_keeps_every_limit():
    assert house.problems(house.read_modules()) == []


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"bags": "from unbag_paper import runs\n"}, "the paper is imported by unbag.bags"),
        ({"a": "import unbag.b\n", "b": "import unbag.a\n"}, "packages import in a circle"),
        ({"alone": "x = 1\n" * 20}, "users reach"),
        ({"bags": "x = 1\n" * 30_000}, "lines, at most"),
    ],
)
def test_each_check_sees_what_it_is_for(tmp_path, files, words):
    source = small_library(tmp_path, __init__="from unbag import bags\n", **files)
    assert any(words in problem for problem in house.problems(house.read_modules(source)))


def test_a_name_in_the_table_of_lazy_names_counts_as_reached(tmp_path):
    source = small_library(tmp_path, __init__='HOMES = {"unbag.bags": "Bags"}\n', bags="x = 1\n")
    assert "unbag.bags" in house.reached(house.read_modules(source))
