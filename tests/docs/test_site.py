"""The site builds without warnings, loads nothing from other hosts, and covers the public API."""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import unbag
from unbag.rules import RULES

docs_site = pytest.importorskip("tools.docs_site", reason="the extra unbag[docs] is missing")

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")
LOADING = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
# Lists everything that the page requested from outside its own folder.
PROBE = """<script>window.addEventListener('load', () => {
const names = performance.getEntriesByType('resource').map(entry => entry.name);
document.title = 'probe ' + names.filter(name => !/^(file|data|blob):/.test(name)).join(' ');
});</script></body>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    # With --quiet, --strict would not see warnings.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


class Loaded(HTMLParser):
    """Addresses that a browser loads with a page."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag == "link" and values.get("rel") in ("canonical", "next", "prev"):
            return
        self.found.append(values.get(LOADING.get(tag)) or "")


def loaded_from_elsewhere(text):
    parser = Loaded()
    parser.feed(text)
    styles = re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')]+)", text)
    return [a for a in [*parser.found, *styles] if re.match(r"(https?:)?//", a)]


def asked_elsewhere(page, folder):
    """Requests of a browser to other hosts."""
    copy = page.with_name("probed.html")
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", PROBE), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]
    command = [CHROMIUM, *options, "--dump-dom", copy.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return re.search("<title>probe(.*?)</title>", done.stdout)[1].split()


def test_no_page_loads_anything_from_another_host(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        assert loaded_from_elsewhere(page.read_text(encoding="utf-8")) == [], page
    for sheet in site.rglob("*.css"):
        assert "fonts.googleapis" not in sheet.read_text(encoding="utf-8")


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_a_browser_asks_no_other_host(site, tmp_path):
    assert asked_elsewhere(site / "index.html", tmp_path) == []


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_the_checks_detect_requests(tmp_path):
    bad = '<html><body><img src="http://127.0.0.1:9/x.png"></body></html>'
    assert loaded_from_elsewhere(bad)
    (tmp_path / "index.html").write_text(bad)
    assert asked_elsewhere(tmp_path / "index.html", tmp_path / "profile")


def test_every_public_name_is_in_the_reference(site):
    pages = [page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html")]
    ids = [found for text in pages for found in re.findall(r'id="(unbag\.[\w.]+)"', text)]
    modules = {"rules", "planning"}
    for name in set(unbag.__all__) - modules:
        assert any(found.endswith(f".{name}") for found in ids), name
    for name in modules:
        for member in getattr(unbag, name).__all__:
            known = any(found.endswith(f".{member}") for found in ids)
            assert known or member in ("RULES", "InstanceLoss"), f"unbag.{name}.{member}"


def test_the_table_of_rules_is_the_registry_s(site):
    text = docs_site.rules_table()
    rows = [line.split(" | ") for line in text.splitlines()[2:]]
    assert [row[0] for row in rows] == [f"| `{name}`" for name in RULES]
    default = next(row for row in rows if "debiased_square" in row[0])
    assert default[2:5] == ["yes, square loss", "0", "2 or more"]
    page = (site / "rules.html").read_text(encoding="utf-8")
    assert all(f"<code>{name}</code>" in page for name in RULES)
    assert RULES["count_likelihood"].use_when.partition(",")[0] in page


def test_formulas_are_drawn_by_the_browser_itself(site):
    text = (site / "api" / "rules.html").read_text(encoding="utf-8")
    assert text.count("<math") > 10
    for page in (site / "api").glob("*.html"):
        assert not re.search(r":math:`|\.\. math::", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("page", "link", "wanted"),
    [
        ("start.md", "../CONTRIBUTING.md", "CONTRIBUTING.md"),
        ("start.md", "../paper/docs/theory.md#rates", "paper/docs/theory.md#rates"),
        ("start.md", "tables.md", "tables.md"),
        ("examples/clinics.md", "../../benchmarks/x.json", "../benchmarks/x.json"),
        ("CONTRIBUTING.md", "docs/rules.md", "rules.md"),
        ("paper/docs/theory.md", "../../docs/rules.md", "../../rules.md"),
        ("paper/docs/theory.md", "../results/theory/x.png", "../results/theory/x.png"),
        ("start.md", "mailto:a", "mailto:a"),
    ],
)
def test_links_between_files_become_links_between_pages(page, link, wanted):
    assert docs_site.inside_site(f"![x]({link})", page) == f"![x]({wanted})"


def test_formulas_of_docstrings_become_mathml():
    markdown = pytest.importorskip("markdown")
    text = "Let :math:`r_i` be\n\n.. math:: a \\le b\n          + c .\n\n\\(k_i\\) end `:math:`"
    html = markdown.markdown(text, extensions=[docs_site.Formulas()])
    assert html.count("<math") == 3
    assert "end" in html.rpartition("</math>")[2]
