"""Every code block of every page runs as printed, or its first line says why it does not."""

import re
from pathlib import Path
from pkgutil import resolve_name

import pytest
from tests.support.blocks import NOT_RUN, Block, check_output, read_blocks, run_page, run_shell

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"  # run in test_readme.py, which also checks what it learned
PAGES = sorted([ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def blocks_of(path):
    return read_blocks(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_code_of_a_page_runs(path, folder):
    run_page(blocks_of(path))


@pytest.mark.parametrize("path", [README, *PAGES], ids=lambda path: path.stem)
def test_names_and_make_targets_of_a_page_exist(path):
    text = path.read_text(encoding="utf-8")
    for name in set(re.findall(r"`(unbag(?:\.[A-Za-z]\w*)+)", text)):
        resolve_name(name)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, flags=re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([\w-]+)", text, flags=re.MULTILINE)) <= targets


def test_few_blocks_are_not_run_and_each_says_why():
    skipped = [
        block for path in [README, *PAGES] for block in blocks_of(path) if block.reason is not None
    ]
    assert all(len(block.reason.split()) > 2 for block in skipped)
    assert len(skipped) <= 7, [block.where for block in skipped]


def test_the_runner_detects_errors(folder):
    def block(language, text):
        return Block("page.md", 1, language, text)

    with pytest.raises(AssertionError, match="a block of ''"):
        read_blocks("```\nx = 1\n```", "page.md")
    with pytest.raises(ZeroDivisionError):
        run_page([block("python", "x = 0"), block("python", "1 / x")])
    with pytest.raises(AssertionError, match="No such"):
        run_shell(block("sh", "unbag nonsense"))
    with pytest.raises(AssertionError, match="is not run here"):
        run_shell(block("sh", "make demo"))
    for wrong in ("error 0.25", "errors 0.123", "error 0.123 0.1"):
        with pytest.raises(AssertionError, match=r"page\.md"):
            check_output(block("output", wrong), "error 0.1234")
    check_output(block("output", "error  0.124"), "error 0.1234")
    run_page([block("sh", f"{NOT_RUN}it would take hours.\nmake demo"), block("text", "x")])
