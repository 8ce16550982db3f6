"""Numbers of the README and the docs are those of the committed results."""

import csv
import json
import re
from pathlib import Path
from statistics import median

from unbag_paper.tables.published import name_in_paper

ROOT = Path(__file__).parents[2]
NETS = {
    "linear": "linear",
    "100 units": "mlp100",
    "1000 units": "mlp1000",
    "small CNN": "cnn_small",
    "large CNN, padded": "cnn_padded",
}
RULES = {"batches redrawn": "redrawn", "taught by": "distilled"}
WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
PAPERS_RULES = ("EZ.Log", "EZ.Log (no offset)", "EZ.Sq", "PM.Log", "PM.Sq", "DSQ")
CELL = re.compile(r"([\d.]+) ± ([\d.]+) \(([\d.]+)\)")


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def rows_of(name, folder="paper/results/tables"):
    with (ROOT / folder / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def rounded_like(written, value):
    """Whether a number is another one, to the digits it is written with."""
    digits = len(written.partition(".")[2])
    return abs(float(written) - float(value)) <= 0.5001 * 10**-digits


def mnist_table():
    """Net, rule, bag size and the three numbers of every cell that the README shows."""
    lines = text_of("README.md").split("| net | bags of 10 |")[1].splitlines()[2:]
    for line in lines:
        if not line.startswith("|"):
            return
        label, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        rule = next((rule for words, rule in RULES.items() if words in label), "pairwise")
        net = max((net for net in NETS if label.startswith(net)), key=len)
        for size, cell in zip((10, 100, 1000), cells, strict=True):
            if cell:
                yield NETS[net], rule, size, CELL.fullmatch(cell).groups()


def test_the_table_of_the_readme_is_that_of_the_rows():
    rows = {(r["model"], r["rule"], int(r["bag_size"])): r for r in rows_of("mnist.csv")}
    published = {}
    for row in rows.values():
        if row["published"]:
            key = row["model"], int(row["bag_size"])
            published[key] = min(float(row["published"]), published.get(key, 100))
    cells = list(mnist_table())
    assert len(cells) == 18
    for model, rule, size, (mean, spread, paper) in cells:
        row = rows[model, rule, size]
        where = f"{model}, {rule}, bags of {size}"
        assert rounded_like(mean, row["best"]), where
        assert rounded_like(spread, row["best_se"]), where
        assert rounded_like(paper, published[model, size]), where
        assert row["n_seeds"] == "10", where


def test_the_cost_of_choosing_without_labels_is_that_of_the_rows():
    regrets = [float(row["regret"]) for row in rows_of("mnist.csv")]
    words = " ".join(text_of("README.md").split())
    assert f"cost a median of {median(regrets):.2f} points over the {len(regrets)} cells" in words
    large = sum(regret > 1 for regret in regrets)
    assert f"more than one point in {WORDS[large]} cells (the most: {max(regrets):.1f})" in words
    regrets = [float(row["regret"]) for row in rows_of("cifar_exact.csv") if row["regret"]]
    large = sum(regret > 1 for regret in regrets)
    assert f"in {large} of {len(regrets)} cells (the most: {max(regrets):.1f})" in words


def test_the_coverage_is_that_of_the_table():
    found = rows_of("coverage.csv", "benchmarks/results/coverage")
    shares = [round(float(row["coverage"]), 4) for row in found]
    within = sum(0.93 <= share <= 0.97 for share in shares)
    assert f"{within:,} of {len(shares):,} pairs" in text_of("docs/evaluation.md")


def test_the_claims_are_those_of_the_theory():
    claims = json.loads(text_of("paper/results/theory/claims.json"))["claims"]
    words = " ".join(text_of("README.md").split())
    passed = sum(claim["passed"] for claim in claims)
    assert f"checks {len(claims)} claims of the paper by simulation; {passed} hold" in words


def test_the_verdict_on_all_tables_is_that_of_their_page():
    bettered = re.search(r"[Ii]n \d+ of \d+ rows", text_of("paper/results/tables/paper.md"))[
        0
    ].lower()
    link = f"[{bettered}](paper/results/tables/paper.md) our best is at or below"
    assert link in " ".join(text_of("README.md").split())


def test_the_rows_that_need_a_teacher_are_counted():
    paper, untaught = {}, {}
    for table in ("mnist", "cifar", "mnist_exact", "cifar_exact"):
        for row in rows_of(f"{table}.csv"):
            key = row["dataset"], row["bag_size"], name_in_paper(row["model"])
            if row["published"]:
                paper[key] = min(float(row["published"]), paper.get(key, 100))
            if row["rule"] not in (*PAPERS_RULES, "distilled") and row["n_seeds"] == "10":
                untaught[key] = min(float(row["best"]), untaught.get(key, 100))
    count = sum(untaught[key] > paper[key] for key in paper)
    words = f"in {WORDS[count]} of them our own rules need a taught net for that"
    assert words in " ".join(text_of("README.md").split())


def test_the_share_of_published_numbers_is_that_of_the_tables():
    met = r"(\d+) of (\d+) cells that the paper has are within"
    pages = [text_of(f"paper/results/tables/{name}_exact.md") for name in ("mnist", "cifar")]
    close, judged = (sum(int(re.search(met, page)[n]) for page in pages) for n in (1, 2))
    assert f"{close} of {judged} numbers" in " ".join(text_of("README.md").split())
