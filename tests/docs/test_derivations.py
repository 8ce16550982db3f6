"""The code cites the items of docs/derivations.md, and every item is cited."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "derivations.md"
FOLDERS = ("evaluation", "planning")


def cited(text):
    return {int(number) for number in re.findall(r"\bD(\d+)\b", text)}


def items(text):
    return [int(number) for number in re.findall(r"^\*\*D(\d+)\.", text, flags=re.MULTILINE)]


def test_every_item_is_cited_and_every_citation_has_an_item():
    paths = [path for name in FOLDERS for path in (ROOT / "src" / "unbag" / name).glob("*.py")]
    found = set().union(*(cited(path.read_text()) for path in paths))
    numbers = items(PAGE.read_text())
    assert numbers == list(range(1, len(numbers) + 1))
    assert found == set(numbers)


def test_the_check_sees_a_missing_item():
    assert items("**D1. One.**\n\ntext D2\n**D3. Three**") == [1, 3]
    assert cited("# D7. why") == {7}
