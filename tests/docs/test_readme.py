"""The README is short, its code runs and learns, and its links and commands exist."""

import re
from pathlib import Path

from tests.support.blocks import read_blocks, run_page

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_WORDS = 500


def words_of(text):
    """Words outside code, pictures and the addresses of links."""
    text = re.sub(r"```.*?```|!\[[^]]*\]\([^)]*\)", " ", text, flags=re.DOTALL)
    return re.sub(r"\]\([^)]*\)", "] ", text).split()


def test_the_readme_is_short():
    assert len(words_of(README)) <= MOST_WORDS
    assert len(re.findall(r"!\[", README)) == 1


def test_words_are_counted_outside_code_and_addresses():
    assert words_of("a ![b c](d.png)\n```sh\ne f\n```\n[g h](i.md)") == ["a", "[g", "h]"]


def test_the_code_runs_and_learns(folder):
    found = run_page(read_blocks(README, "README.md"))
    # Scored on single clicks, whose labels the code never used.
    error = (found["labels"] != found["june"].labels).mean()
    assert error < 0.25
    assert found["report"]["error"].low <= error <= found["report"]["error"].high


def test_both_commands_are_near_the_top():
    top = README[:1800]
    assert "make demo" in top
    assert "make test" in top


def test_linked_files_exist():
    links = re.findall(r"\]\(([^)#:]+)", README)
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


def test_the_picture_is_small():
    [picture] = re.findall(r"!\[[^]]*\]\(([^)]+)\)", README)
    assert (ROOT / picture).stat().st_size < 100_000
