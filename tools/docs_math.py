"""Formulas of docstrings as MathML, which browsers render without scripts."""

import re

from latex2mathml.converter import convert
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor

INLINE = re.compile(r":math:`([^`]+)`")
DISPLAY = re.compile(r"^( *)\.\. math::(.*(?:\n(?:\1 +\S.*| *(?=\n\1 +\S)))*)", re.MULTILINE)


class Formulas(Extension):
    """`:math:` and `.. math::` of numpydoc, in Markdown."""

    def extendMarkdown(self, md):  # noqa: N802
        # After fenced code (25) is stashed and before HTML is parsed (20).
        md.preprocessors.register(_Formulas(md), "formulas", 22)


class _Formulas(Preprocessor):
    def run(self, lines):
        text = DISPLAY.sub(lambda found: found[1] + self._kept(found[2], "block"), "\n".join(lines))
        text = INLINE.sub(lambda found: self._kept(found[1], "inline"), text)
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
