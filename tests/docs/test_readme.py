"""The README: its code learns, its top says what to type, its links lead somewhere."""

import re
from pathlib import Path

from tests.support.blocks import read_blocks, run_page

README = Path(__file__).parents[2] / "README.md"


def test_the_code_runs_and_learns():
    found = run_page(read_blocks(README.read_text(encoding="utf-8"), "README.md"))
    held_out = found["held_out"]
    error = (found["clf"].predict(found["X"][held_out]) != found["labels"][held_out]).mean()
    assert error < 0.1
    assert "error" in str(found["report"])


def test_both_commands_are_near_the_top():
    top = README.read_text()[:1500]
    assert "make demo" in top
    assert "make test" in top


def test_linked_files_exist():
    for link in re.findall(r"\]\(([^)#:]+)\)", README.read_text()):
        assert (README.parent / link).exists(), link
