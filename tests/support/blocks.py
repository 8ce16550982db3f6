"""Run the code blocks of Markdown pages, in order.

The language of a fence says how a block is used: `python` and `sh` are run, `output` is compared
with the output of the block before it, and `text` is ignored. A block that cannot be run says so in
its first line.
"""

import contextlib
import io
import math
import re
import shlex
from dataclasses import dataclass

from typer.testing import CliRunner

from unbag.cli import app

LANGUAGES = {"python", "sh", "output", "text"}
NOT_RUN = "# Not run by the tests: "
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    @property
    def reason(self):
        """Why the block is not run, as readers see it; None if it is run."""
        first = self.text.partition("\n")[0]
        return first.removeprefix(NOT_RUN).strip() if first.startswith(NOT_RUN) else None

    @property
    def where(self):
        return f"{self.page}:{self.line}"


def read_blocks(text, page):
    """Return all fenced blocks; a fence without a language is an error."""
    found, lines = [], text.splitlines()
    number = 0
    while number < len(lines):
        if lines[number].startswith("```"):
            end = lines.index("```", number + 1)
            language = lines[number].removeprefix("```").strip()
            found.append(Block(page, number + 1, language, "\n".join(lines[number + 1 : end])))
            number = end
        number += 1
    for block in found:
        assert block.language in LANGUAGES, f"{block.where}: a block of {block.language!r}"
    return found


def run_page(blocks):
    """Run a page from top to bottom in the current folder, and return its variables."""
    names, printed = {"__name__": "__main__"}, ""
    for block in blocks:
        if block.reason is not None or block.language == "text":
            continue
        if block.language == "output":
            check_output(block, printed)
        elif block.language == "python":
            printed = run_python(block, names)
        else:
            printed = run_shell(block)
    return names


def run_python(block, names):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        # Line numbers of a traceback are those of the page.
        code = "\n" * block.line + block.text
        exec(compile(code, block.page, "exec"), names)
    return printed.getvalue()


def run_shell(block):
    """Run `unbag` commands; `# exit code 3` after one states its exit code."""
    printed = ""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        assert words[0] == "unbag", f"{block.where}: {words[0]} is not run here"
        result = CliRunner().invoke(app, words[1:])
        wanted = re.search(r"# exit code (\d)", line)
        assert result.exit_code == int(wanted[1] if wanted else 0), f"{line}\n{result.output}"
        printed += result.output
    return printed


def check_output(block, printed):
    """Compare words exactly, and numbers up to two units of the last printed digit."""
    wanted_words, found_words = (NUMBER.sub("#", text).split() for text in (block.text, printed))
    assert wanted_words == found_words, f"{block.where}: it prints\n{printed}"
    for wanted, found in zip(NUMBER.findall(block.text), NUMBER.findall(printed), strict=True):
        digits = len(wanted.partition(".")[2])
        close = math.isclose(float(wanted), float(found), abs_tol=2.001 * 10**-digits)
        assert close, f"{block.where}: {wanted} on the page, {found} now; it prints\n{printed}"
