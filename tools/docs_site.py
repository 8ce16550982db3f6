"""Hooks of the documentation site: files from outside docs/, the table of rules, formulas.

mkdocs calls the functions named `on_...`; see mkdocs.yml.
"""

import posixpath
import re
from pathlib import Path

from latex2mathml.converter import convert
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor

from unbag.rules import RULES, Rule

ROOT = Path(__file__).parents[1]
RULES_TABLE = "<!-- table of rules -->"
LINK = re.compile(r"(\]\()([^)\s#]+)")
FOLDERS = ("paper/docs", "paper/results", "benchmarks")
KINDS = (".md", ".png", ".csv", ".txt", ".json")
INLINE = re.compile(r":math:`([^`]+)`|\\\((.+?)\\\)", re.DOTALL)
DISPLAY = re.compile(r"^( *)\.\. math::(.*(?:\n(?:\1 +\S.*| *(?=\n\1 +\S)))*)", re.MULTILINE)


def on_config(config):
    config.markdown_extensions.append(Formulas())
    return config


def on_files(files, config):
    """Add the files beside docs/ to the site, under their path in the repository."""
    from mkdocs.structure.files import File

    for name in outside_files():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def outside_files():
    """Paths of the pages, pictures and tables that lie outside docs/."""
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))]
    names = [path.relative_to(ROOT).as_posix() for path in found if path.suffix in KINDS]
    return ["CONTRIBUTING.md", "CHANGELOG.md", *names]


def on_page_markdown(markdown, page, config, files):
    return inside_site(markdown, page.file.src_uri).replace(RULES_TABLE, rules_table())


def inside_site(markdown, page):
    """Rewrite links between files of the repository as links between pages of the site.

    >>> inside_site("[a](../CONTRIBUTING.md) [b](../paper/docs/theory.md#x)", "start.md")
    '[a](CONTRIBUTING.md) [b](paper/docs/theory.md#x)'
    >>> inside_site("[a](../../docs/rules.md) [b](../results/x.png)", "paper/docs/theory.md")
    '[a](../../rules.md) [b](../results/x.png)'
    """
    outside = page.startswith(FOLDERS) or page in ("CONTRIBUTING.md", "CHANGELOG.md")
    folder = posixpath.dirname(page if outside else f"docs/{page}")

    def rewrite(link):
        if ":" in link[2]:
            return link[0]
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        start = posixpath.dirname(page) or "."
        return link[1] + posixpath.relpath(target.removeprefix("docs/"), start)

    return LINK.sub(rewrite, markdown)


def rules_table():
    """Every registered rule, its claims, and when to use it."""
    head = "| rule | in the paper | unbiased | lower bound | bags per batch | when to use it |"
    rows = [_row(rule) for kind in RULES.values() for rule in kind.variants()[:1]]
    return "\n".join([head, "|---|---|---|---|---|---|", *rows])


def _unbiasedness(rule: Rule) -> str:
    if not rule.unbiased_given_prior:
        return "no"
    return f"{'yes' if rule.unbiased else 'if the prior is known'}, {rule.instance_loss} loss"


def _row(rule: Rule) -> str:
    bound = "none" if rule.lower_bound is None else f"{rule.lower_bound:g}"
    cells = [
        f"`{rule.name}`",
        rule.paper_name,
        _unbiasedness(rule),
        bound,
        f"{rule.min_bags} or more",
        rule.use_when,
    ]
    return "| " + " | ".join(cells) + " |"


class Formulas(Extension):
    """`:math:` and `.. math::` of numpydoc, and `\\(...\\)` of pages, as MathML."""

    def extendMarkdown(self, md):  # noqa: N802
        # After fenced code (25) is stashed and before HTML is parsed (20).
        md.preprocessors.register(_Formulas(md), "formulas", 22)


class _Formulas(Preprocessor):
    def run(self, lines):
        text = DISPLAY.sub(lambda found: found[1] + self._kept(found[2], "block"), "\n".join(lines))
        text = INLINE.sub(lambda found: self._kept(found[1] or found[2], "inline"), text)
        return text.split("\n")

    def _kept(self, formula, display):
        """Stash the MathML, so that none of it is parsed as Markdown."""
        return self.md.htmlStash.store(to_mathml(formula, display=display))


def to_mathml(formula, *, display="inline"):
    """Convert one formula to MathML.

    >>> to_mathml("r_i^2")[:60]
    '<math xmlns="http://www.w3.org/1998/Math/MathML" display="in'
    """
    return convert(" ".join(formula.split()), display=display)
