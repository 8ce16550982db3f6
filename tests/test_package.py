"""The package as a whole: light to import, quiet, and every public name documented."""

import inspect
import re
import subprocess
import sys

import pytest

import unbag


def in_a_new_python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


def test_importing_is_light_and_changes_no_random_state():
    code = (
        "import sys, random, numpy\n"
        "state = lambda: (numpy.random.get_state()[1].tolist(), random.getstate())\n"
        "before = state()\n"
        "import unbag\n"
        "assert before == state()\n"
        "print([m for m in ('torch', 'sklearn', 'matplotlib', 'pandas') if m in sys.modules])"
    )
    assert in_a_new_python(code) == "[]"


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
