"""The package as a whole: light to import, one version, every public name documented."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import unbag


def in_a_new_python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


HEAVY = ("numpy", "scipy", "sklearn", "torch", "matplotlib", "pandas", "pyarrow")
LOADED = f"; import sys; print([name for name in {HEAVY} if name in sys.modules])"


def test_importing_loads_no_heavy_package():
    assert in_a_new_python("import unbag" + LOADED) == "[]"


def test_showing_the_version_loads_no_heavy_package():
    code = "import sys, unbag.cli; unbag.cli.app(['--version'], standalone_mode=False)"
    assert in_a_new_python(code + LOADED) == f"unbag {unbag.__version__}\n[]"


def test_the_check_detects_a_heavy_package():
    assert in_a_new_python("import numpy" + LOADED) == "['numpy']"


def test_importing_changes_no_random_state():
    code = (
        "import random, numpy\n"
        "state = lambda: (numpy.random.get_state()[1].tolist(), random.getstate())\n"
        "before = state()\n"
        "import unbag\n"
        "print(before == state())"
    )
    assert in_a_new_python(code) == "True"


def test_all_files_name_one_version():
    root = Path(__file__).parents[1]
    paths = ("pyproject.toml", "paper/pyproject.toml", "CITATION.cff")
    texts = [(root / path).read_text(encoding="utf-8") for path in paths]
    found = [re.search(r'^version[:=\s]+"?([\d.]+)', text, flags=re.MULTILINE)[1] for text in texts]
    assert found == [unbag.__version__] * 3
    assert f"\n## {unbag.__version__}" in (root / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", unbag.__all__)
def test_every_public_name_exists_and_is_documented(name):
    assert getattr(unbag, name).__doc__
    assert name in dir(unbag)


def described(docstring):
    """Words about every parameter and attribute of a numpydoc docstring, by name."""
    found, names = {}, []
    for line in docstring.splitlines():
        if entry := re.fullmatch(r"(\w+(?:, \w+)*)(?: : .*)?", line):
            names = entry[1].split(", ")
        for name in names:
            found[name] = found.get(name, "") + (line if line.startswith("    ") else "")
    return found


@pytest.mark.parametrize("name", unbag.__all__)
def test_every_parameter_is_named_and_those_of_classes_described(name):
    kind = getattr(unbag, name)
    if not callable(kind):
        return
    words = described(inspect.getdoc(kind))
    for parameter in inspect.signature(kind).parameters:
        assert parameter in words, parameter
        assert words[parameter] or not inspect.isclass(kind), parameter


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        unbag.nonsense  # noqa: B018
