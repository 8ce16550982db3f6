"""What the documentation site adds to the pages in docs/: results, the table of rules, formulas.

mkdocs calls the functions named `on_...`; see mkdocs.yml.
"""

import re
from pathlib import Path

from docs_math import Formulas

from unbag.rules import RULES, Rule

ROOT = Path(__file__).parents[1]
RULES_TABLE = "<!-- table of rules -->"
OUTSIDE = ["CONTRIBUTING.md", "CHANGELOG.md"]
PATTERNS = ["results/**/*.md", "results/**/*.png"]


def on_config(config):
    config.markdown_extensions.append(Formulas())
    return config


def on_files(files, config):
    """Files that lie beside docs/ become part of the site, at the same place below its root."""
    from mkdocs.structure.files import File

    paths = [ROOT / name for name in OUTSIDE]
    paths += [path for pattern in PATTERNS for path in sorted(ROOT.glob(pattern))]
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown, page, config, files):
    return inside_site(markdown).replace(RULES_TABLE, rules_table())


def inside_site(markdown):
    """Links that leave docs/ for the repository's root, as links inside the site.

    >>> inside_site("![x](../results/theory/x.png) [a](../../CONTRIBUTING.md) [b](rules.md)")
    '![x](results/theory/x.png) [a](../CONTRIBUTING.md) [b](rules.md)'
    """
    outside = "|".join([re.escape(name) for name in OUTSIDE] + ["results/"])
    return re.sub(rf"\]\(\.\./((?:\.\./)*(?:{outside}))", r"](\1", markdown)


def rules_table():
    """Every registered rule, what it claims, and when to use it."""
    head = "| rule | in the paper | unbiased | never below | bags a batch | when to use it |"
    rows = [_row(rule) for kind in RULES.values() for rule in kind.variants()[:1]]
    return "\n".join([head, "|---|---|---|---|---|---|", *rows])


def _unbiasedness(rule: Rule) -> str:
    if not rule.unbiased_given_prior:
        return "no"
    return f"{'yes' if rule.unbiased else 'if the prior is known'}, {rule.instance_loss} loss"


def _row(rule: Rule) -> str:
    bound = "unbounded" if rule.lower_bound is None else f"{rule.lower_bound:g}"
    cells = [
        f"`{rule.name}`",
        rule.paper_name,
        _unbiasedness(rule),
        bound,
        f"{rule.min_bags} or more" if rule.differentiable else "exact minimiser only",
        rule.use_when,
    ]
    return "| " + " | ".join(cells) + " |"
