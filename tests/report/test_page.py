"""The report: complete, self-contained, and rendered by a real browser."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest

from unbag.estimators.table_fit import FitOptions, fit_table
from unbag.estimators.table_record import fit_record
from unbag.report import render_report
from unbag.report.charts import Line, line_chart, ticks
from unbag.tables import Roles, scan_table

CHROMIUM = shutil.which("chromium")
VOID = {"meta", "link", "path", "rect", "circle", "line", "br"}


def make_record(seed, *, name="x"):
    rng = np.random.default_rng(seed)
    group = rng.permutation(600) // 10
    x = rng.normal(size=600)
    rate = np.bincount(group, x > 0) / 10
    table = pa.table({"g": group, "rate": rate[group], name: x, "z": rng.normal(size=600)})
    found = scan_table(table, Roles("g", ("rate",)))
    options = FitOptions(models=("ridge", "debiased_square", "easy_log"), epochs=5)
    fitted = fit_table(found, options)
    return fit_record(found, fitted, options, command="unbag fit t.csv --bag g")


@pytest.fixture(scope="module")
def record():
    return make_record(0)


@pytest.fixture(scope="module")
def page(record):
    return render_report(record)


class Balance(HTMLParser):
    """Complains about tags that are not closed in order."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def outside_requests(text):
    """Everything in a page that would make a browser ask a server."""
    urls = re.findall(r"""(?:src|href|action)\s*=\s*["']?([^"'\s>]+)|url\(([^)]*)\)""", text)
    found = [a or b for a, b in urls if not (a or b).startswith(("data:", "#"))]
    return [*found, *re.findall(r"@import|<script", text)]


def test_it_says_what_a_reader_asks(page, record):
    error = record["evaluation"]["metrics"]["error"]
    wanted = ["600", "60", "error", f"{100 * error['value']:.1f} %", "unbag fit t.csv --bag g"]
    for words in [*wanted, "held-out", "seed", "torch", "ROC", "Calibration", "easy_log"]:
        assert words in page
    assert page.count("<svg") == 7


def test_it_needs_nothing_from_outside(page):
    assert outside_requests(page) == []


def test_the_check_for_requests_sees_them():
    for bad in (
        '<img src="http://a/b.png">',
        "<style>@import 'x';</style>",
        "url(x.png)",
        "<script>",
    ):
        assert outside_requests(bad)


def test_tags_are_balanced(page):
    parser = Balance()
    parser.feed(page)
    assert parser.open == []


def test_names_of_columns_are_escaped():
    text = render_report(make_record(1, name="<script>alert(1)</script>"))
    assert "<script>" not in text


def test_unknown_numbers_do_not_break_it(record):
    evaluation = record["evaluation"]
    curve = {name: [None, None] for name in ("x", "y", "low", "high", "threshold")}
    metrics = {name: dict.fromkeys(values) for name, values in evaluation["metrics"].items()}
    broken = evaluation | {"metrics": metrics, "roc": [curve], "equivalent_labels": None}
    assert "not defined" in render_report(record | {"evaluation": broken})


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 7), (0, 12345), (1e-4, 2e-4)])
def test_ticks_are_few_and_inside(low, high):
    found = ticks(low, high)
    assert 2 <= len(found) <= 7
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in found)


def test_a_line_stays_in_its_frame():
    chart = line_chart([Line("a", [0, 1], [-5, 9])], x_label="", y_label="", title="", unit=True)
    heights = [float(y) for y in re.findall(r",(-?[\d.]+)", chart.split('class="line')[1])]
    assert min(heights) >= 0


PROBE = """<script>addEventListener('load', () => {
const wide = document.documentElement.scrollWidth > window.innerWidth;
const heights = [...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect().height);
const entries = performance.getEntriesByType('resource').map(r => r.name);
const asked = entries.filter(name => !name.startsWith('data:'));
document.title = ['probe', wide, heights.filter(h => h < 50).length, asked.length].join(' ');
});</script></body>"""


def complaints(text, folder, *, width=1100, dark=False):
    """What a browser finds wrong; the script that asks it is not part of the page."""
    (folder / "page.html").write_text(text.replace("</body>", PROBE), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"]
    options += [f"--window-size={width},900", f"--user-data-dir={folder}/profile", "--dump-dom"]
    options += ["--blink-settings=preferredColorScheme=0"] if dark else []
    done = subprocess.run(
        [CHROMIUM, *options, "file://" + quote(str(folder / "page.html"))],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    found = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    title = re.search("<title>(probe.*?)</title>", done.stdout)
    return found if title and title[1] == "probe false 0 0" else [*found, title and title[1]]


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize(("width", "dark"), [(1100, False), (390, True)])
def test_a_browser_renders_it_without_complaint(page, tmp_path, width, dark):
    assert complaints(page, tmp_path, width=width, dark=dark) == []


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize(
    "fault",
    [
        "<script>console.error('x')</script>",
        "<img src='http://127.0.0.1:9/nothing.png'>",
        "<div style='width: 5000px'>x</div>",
        "<svg style='height: 1px'></svg>",
    ],
)
def test_the_browser_check_sees_faults(page, tmp_path, fault):
    assert complaints(page.replace("</body>", f"{fault}</body>"), tmp_path)
