"""The README's code runs as it stands."""

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_code_runs_and_learns():
    [code] = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    space = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "README.md", "exec"), space)
    held_out = space["held_out"]
    error = (space["clf"].predict(space["X"][held_out]) != space["labels"][held_out]).mean()
    assert error < 0.1
    assert "error" in printed.getvalue()


def test_both_commands_are_near_the_top():
    top = README.read_text()[:1500]
    assert "make demo" in top
    assert "make test" in top


def test_linked_files_exist():
    for link in re.findall(r"\]\(([^)#:]+)\)", README.read_text()):
        assert (README.parent / link).exists(), link
