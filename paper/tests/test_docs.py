"""The paper's pages: their code runs, and their links lead somewhere."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests.support.blocks import read_blocks, run_python
from typer.testing import CliRunner

from unbag_paper.cli import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "paper" / "README.md", *(ROOT / "paper" / "docs").glob("*.md")])


@pytest.fixture
def small_clone(tmp_path, monkeypatch):
    """A folder with some of the committed rows."""
    rows = tmp_path / "paper" / "results" / "rows"
    rows.mkdir(parents=True)
    shutil.copy(ROOT / "paper" / "results" / "rows" / "0024.parquet", rows)
    monkeypatch.chdir(tmp_path)


def run_command(line):
    words = shlex.split(line, comments=True)
    if words:
        assert words[0] == "unbag-paper"
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, small_clone):
    names = {"__name__": "__main__"}
    for block in read_blocks(page.read_text(encoding="utf-8"), page.name):
        if block.reason is not None or block.language == "text":
            continue
        if block.language == "python":
            run_python(block, names)
        else:
            for line in block.text.splitlines():
                run_command(line)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not [link for link in missing if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_scripts_that_a_page_names_are_there(page):
    text = page.read_text(encoding="utf-8")
    scripts = re.findall(r"(?:python |`)((?:paper/)?(?:benchmarks|tools)/\w+\.py)", text)
    assert [script for script in scripts if not (ROOT / script).is_file()] == []
