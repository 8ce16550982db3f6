"""Numbers of the paper's pages are those of the committed results."""

import csv
import json
import re
from pathlib import Path

from unbag_paper.runs.grid import load_grids
from unbag_paper.runs.rows import read_rows
from unbag_paper.tables.figures import FIGURES
from unbag_paper.tables.published import name_in_paper

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "paper" / "results"
MEASURED = ROOT / "paper" / "docs" / "measured.md"
WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
PAPERS_RULES = ("EZ.Log", "EZ.Log (no offset)", "EZ.Sq", "PM.Log", "PM.Sq", "DSQ")
NETS = {
    "linear": "linear",
    "100 units": "mlp100",
    "1000 units": "mlp1000",
    "small CNN": "cnn_small_plain",
    "small CNN, dropout on": "cnn_small",
    "large CNN": "cnn_large_plain",
}
DATA = {"MNIST": "mnist", "CIFAR-10": "cifar"}
CELL = re.compile(r"([\d.]+) ± ([\d.]+) \(([\d.]+)\)")


def words_of(path):
    return " ".join(path.read_text(encoding="utf-8").split())


def table_of(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def rounded_like(written, value):
    """Whether a number is another one, to the digits it is written with."""
    digits = len(written.partition(".")[2])
    return abs(float(written) - float(value)) <= 0.5001 * 10**-digits


def exact_cells():
    """Data, net, bag size, rule and three numbers of the table under the paper's conditions."""
    _, _, below = MEASURED.read_text(encoding="utf-8").partition("| | EZ.Log |")
    for line in ("| EZ.Log |" + below).splitlines()[2:]:
        if not line.startswith("|"):
            return
        label, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        data, net, bags, *dropout = label.split(", ")
        net = ", ".join([net, *dropout])
        size = bags.removeprefix("bags of ")
        for rule, cell in zip(("EZ.Log", "EZ.Sq", "PM.Log", "PM.Sq", "DSQ"), cells, strict=True):
            yield DATA[data], NETS[net], size, rule, CELL.fullmatch(cell).groups()


def test_the_table_under_the_paper_s_conditions_is_that_of_the_rows():
    rows = {}
    for name in DATA.values():
        for row in table_of(RESULTS / "tables" / f"{name}_exact.csv"):
            rows[name, row["model"], row["bag_size"], row["rule"]] = row
    cells = list(exact_cells())
    assert len(cells) == 55
    for data, model, size, rule, (mean, spread, paper) in cells:
        row = rows[data, model, size, rule]
        where = f"{data}, {model}, bags of {size}, {rule}"
        assert rounded_like(mean, row["best"]), where
        assert rounded_like(spread, row["best_se"]), where
        assert rounded_like(paper, row["published"]), where
        assert row["n_seeds"] == "10", where


def test_the_share_of_published_numbers_is_that_of_the_tables():
    met = r"(\d+) of (\d+) cells that the paper has are within"
    pages = [words_of(RESULTS / "tables" / f"{name}_exact.md") for name in DATA.values()]
    close, judged = (sum(int(re.search(met, page)[n]) for page in pages) for n in (1, 2))
    assert f"{close} of {judged} numbers" in words_of(MEASURED)


def test_the_rows_that_need_a_teacher_are_counted():
    paper, untaught = {}, {}
    for table in ("mnist", "cifar", "mnist_exact", "cifar_exact"):
        for row in table_of(RESULTS / "tables" / f"{table}.csv"):
            key = row["dataset"], row["bag_size"], name_in_paper(row["model"])
            if row["published"]:
                paper[key] = min(float(row["published"]), paper.get(key, 100))
            if row["rule"] not in (*PAPERS_RULES, "distilled") and row["n_seeds"] == "10":
                untaught[key] = min(float(row["best"]), untaught.get(key, 100))
    count = sum(untaught[key] > paper[key] for key in paper)
    words = f"In {WORDS[count]} of the {len(paper)} none of our own rules does it without a teacher"
    assert words in words_of(MEASURED)


def test_the_coverage_is_that_of_the_table():
    found = table_of(ROOT / "benchmarks" / "results" / "coverage" / "coverage.csv")
    shares = [round(float(row["coverage"]), 4) for row in found if row["coverage"] != "nan"]
    within = sum(0.93 <= share <= 0.97 for share in shares)
    assert f"{within:,} of {len(shares):,} pairs" in words_of(MEASURED)


def test_the_claims_are_those_of_the_theory():
    text = (RESULTS / "theory" / "claims.json").read_text(encoding="utf-8")
    claims = json.loads(text)["claims"]
    assert f"[{len(claims)} claims of the theory]" in words_of(MEASURED)
    failed = [claim["claim"] for claim in claims if not claim["passed"]]
    assert len(failed) == 4  # "the first four steps fail in simulation"
    assert "The first four steps fail in simulation" in words_of(MEASURED.with_name("theory.md"))


def test_every_cell_of_a_figure_has_rows():
    found = {row.spec.cell for row in read_rows(RESULTS / "rows")}
    figures = [grid for name in FIGURES for grid in load_grids(name)]
    assert {cell.spec.cell for grid in figures for cell in grid.cells()} <= found


def test_the_number_of_rows_is_said():
    n_rows = len(read_rows(RESULTS / "rows"))
    assert f"{n_rows:,} finished trials" in words_of(ROOT / "paper" / "README.md")
