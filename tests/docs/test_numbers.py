"""Numbers of the README and the user's docs equal those of the committed results."""

import csv
import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from tools.readme_picture import read_cells

ROOT = Path(__file__).parents[2]
TABLES = ROOT / "paper" / "results" / "tables"
RULES_OF_THE_PAPER = ("EZ.Log", "EZ.Log (no offset)", "EZ.Sq", "PM.Log", "PM.Sq", "DSQ")
# The paper has one large and one small CNN; ours differ in padding and dropout.
SAME_NET = {
    "cnn_padded": "cnn_large",
    "cnn_large_plain": "cnn_large",
    "cnn_small_plain": "cnn_small",
}
NETS = {
    "100 units": "Two layer small",
    "1000 units": "Two layer large",
    "small CNN": "CNN small",
}
WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def text_of(name):
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def rows_of(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def cells():
    """Cells of all four tables, each with its row of the paper."""
    found = []
    for name in ("mnist", "cifar", "mnist_exact", "cifar_exact"):
        for cell in rows_of(TABLES / f"{name}.csv"):
            net = SAME_NET.get(cell["model"], cell["model"])
            found.append(cell | {"row": (cell["dataset"], net, int(cell["bag_size"]))})
    return found


@pytest.fixture(scope="module")
def published(cells):
    """Lowest published error of each row."""
    found = {}
    for cell in cells:
        if cell["published"]:
            error = float(cell["published"])
            found[cell["row"]] = min(error, found.get(cell["row"], error))
    assert len(found) == 30
    return found


def best_of_ours(cells, column, *, least_seeds=1, leave_out=()):
    """Lowest error of our rules in each row, and its number of seeds."""
    found = {}
    seeds = "n_seeds" if column == "best" else "free_seeds"
    for cell in cells:
        ours = cell["rule"] not in (*RULES_OF_THE_PAPER, *leave_out)
        if ours and cell[column] and int(cell[seeds]) >= least_seeds:
            candidate = float(cell[column]), int(cell[seeds])
            found[cell["row"]] = min(candidate, found.get(cell["row"], candidate))
    return found


def rows_at_or_below(found, published):
    return [row for row, error in published.items() if row in found and found[row][0] <= error]


def rounded_like(written, value):
    """Whether a value rounds to the written number."""
    digits = len(written.partition(".")[2])
    return abs(float(written) - value) <= 0.5001 * 10**-digits


def test_the_choice_without_labels_is_counted(cells, published):
    free = best_of_ours(cells, "free_whole")
    rows = rows_at_or_below(free, published)
    two_seeds = sum(free[row][1] == 2 for row in rows)
    ten = len(rows_at_or_below(best_of_ours(cells, "free_whole", least_seeds=10), published))
    page = text_of("docs/paper.md")
    assert f"from bags alone, without labels | {len(rows)} of 30 rows" in page
    assert f"from bags alone, ten seeds | {ten} of 30 rows" in page
    assert f"In the second line, {WORDS[two_seeds]} rows have two seeds" in page


def test_the_other_counts_of_the_paper_page(cells, published):
    page = text_of("docs/paper.md")
    best = best_of_ours(cells, "best", least_seeds=10)
    count = len(rows_at_or_below(best, published))
    assert f"on the test set, as in the paper | {count} of 30 rows" in page
    half = len(rows_at_or_below(best_of_ours(cells, "free"), published))
    assert f"On the other half alone, {half} of 30 rows" in page
    alone = best_of_ours(cells, "best", least_seeds=10, leave_out=("distilled",))
    needed = count - len(rows_at_or_below(alone, published))
    assert f"{WORDS[needed].title()} rows of the first line need a network" in page
    missing = len(published) - len(best_of_ours(cells, "free_whole", least_seeds=10))
    assert f"{WORDS[missing]} rows have no result with ten seeds" in page


@pytest.fixture(scope="module")
def recipe():
    """Cells of the page of one recipe, by data set, net and bag size."""
    lines = (TABLES / "one_recipe.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return {(data, net, int(k)): rest for data, k, net, *rest in cells[2:]}


def test_the_table_of_the_readme(recipe):
    lines = re.findall(r"^\| ([\w-]+), ([\w ]+) \|(.*)\|$", readme_lines(), flags=re.MULTILINE)
    assert len(lines) == 4
    for data, net, columns in lines:
        for size, cell in zip((10, 100, 1000), columns.split("|"), strict=True):
            paper, here, seeds, *_ = recipe[data, NETS[net], size]
            error = here.partition(" ")[0]
            assert rounded_like(cell.split()[0], float(error)) and seeds == "10"
            assert cell.split()[1] == f"({paper})"


def test_the_count_of_the_recipe(recipe):
    below = sum(cells[-1] == "yes" for cells in recipe.values())
    two_seeds = sum(cells[2] == "2" for cells in recipe.values())
    words = (
        f"published best in {below} of {len(recipe)} table rows, of which {WORDS[two_seeds]} have"
    )
    assert words in text_of("README.md")
    assert f"), without labels | {below} of 30 rows |" in text_of("docs/paper.md")


def readme_lines():
    return (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_coverage_in_the_caption(page):
    cells = read_cells()
    n, covered = sum(cell.n_nets for cell in cells), sum(cell.n_covered for cell in cells)
    words = f"contained the true error for {100 * covered / n:.1f} % of {n:,} networks"
    assert words in text_of(page)


def test_published_numbers_that_are_reproduced():
    met = r"(\d+) of (\d+) published numbers are met"
    close, judged = re.search(met, text_of("paper/results/tables/paper.md")).groups()
    assert f"{close} of {judged} published numbers are within" in text_of("docs/paper.md")


def test_the_claims_of_the_theory():
    path = ROOT / "paper" / "results" / "theory" / "claims.json"
    claims = json.loads(path.read_text(encoding="utf-8"))["claims"]
    passed = sum(claim["passed"] for claim in claims)
    words = f"checks {len(claims)} claims of the paper by simulation. {passed} hold."
    assert words in text_of("docs/paper.md")


def test_what_the_page_of_rules_says_of_mnist():
    errors = {}
    for cell in rows_of(TABLES / "mnist.csv"):
        errors.setdefault((cell["model"], int(cell["bag_size"])), {})[cell["rule"]] = float(
            cell["best"]
        )
    best = {key: min(rules, key=rules.get) for key, rules in errors.items()}
    for model in ("mlp100", "mlp1000"):
        for size, rule in ((10, "pairwise"), (100, "redrawn"), (1000, "redrawn")):
            alone = {rule: e for rule, e in errors[model, size].items() if rule != "distilled"}
            assert min(alone, key=alone.get) == rule
    for key in [("cnn_small", 10), ("cnn_small", 100), ("cnn_small", 1000), ("cnn_padded", 1000)]:
        assert best[key] == "pairwise"
    assert best["cnn_padded", 100] == "count"
    for size, rule in ((10, "posterior"), (100, "posterior"), (1000, "ridge")):
        rules = {rule: e for rule, e in errors["linear", size].items() if rule != "distilled"}
        assert min(rules, key=rules.get) == rule


def test_the_distilled_linear_model():
    errors = {
        cell["rule"]: float(cell["best"])
        for cell in rows_of(TABLES / "mnist.csv")
        if (cell["model"], cell["bag_size"]) == ("linear", "100")
    }
    page, distilled = text_of("docs/torch.md"), errors.pop("distilled")
    assert f"distilled from a small CNN has an error of {distilled:.1f} %" in page
    assert f"without distillation has {min(errors.values()):.1f} %" in page


def test_the_accuracy_of_boosted_trees():
    path = ROOT / "benchmarks" / "results" / "boosting.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    for rule in ("debiased_square", "count_likelihood"):
        [line] = re.findall(rf"^\| `{rule}` \|([\d.| ]+)\|$", page, flags=re.MULTILINE)
        values = [
            found[kind][rule][by] for kind in ("noisy", "noiseless") for by in ("bags", "labels")
        ]
        for written, value in zip(line.split("|"), values, strict=True):
            assert rounded_like(written.strip(), value), (rule, value)


def test_the_coverage_of_intervals():
    rows = rows_of(ROOT / "benchmarks" / "results" / "coverage" / "coverage.csv")
    shares = [round(float(row["coverage"]), 4) for row in rows if row["coverage"] != "nan"]
    within = sum(0.93 <= share <= 0.97 for share in shares)
    assert f"{within:,} of {len(shares):,} pairs" in text_of("docs/evaluation.md")


def test_the_numbers_are_compared_to_their_digits():
    assert rounded_like("1.33", 1.328)
    assert not rounded_like("1.33", 1.336)


def width(row, low, high):
    return float(row[high]) - float(row[low])


def test_what_the_pages_say_of_elections():
    rows = rows_of(ROOT / "benchmarks" / "results" / "elections.csv")
    page = text_of("docs/examples/elections.md")
    assert "default context every interval holds" in page and "With half of that" in page
    stated = ("spread", "half the spread", "0.25")
    assert all(row["holds"] == "True" for row in rows if row["stated"] in stated)
    carolina = [row for row in rows if row["election"] == "senc"]
    assert not any(row["holds"] == "True" for row in carolina if row["stated"] == "0.0")
    assert "half to two thirds as wide as the bounds" in page
    for row in carolina:
        if row["stated"] == "half the spread":
            assert 0.5 <= width(row, "low", "high") / width(row, "bound_low", "bound_high") <= 0.67
    for row in carolina:  # "as do King's"
        assert not float(row["king_low"]) <= float(row["truth"]) <= float(row["king_high"])
    page = text_of("benchmarks/results/elections.md")
    assert "rises by 0.27" in page and "only a quarter" in text_of("docs/natural_groups.md")


def test_what_the_pages_say_of_simulated_elections():
    rows = rows_of(ROOT / "benchmarks" / "results" / "election_context.csv")
    assert "in over nine tenths of all elections" in text_of("docs/examples/elections.md")
    for assumed in {row["assumed"] for row in rows}:
        own = [row for row in rows if row["assumed"] == assumed]
        held = sum(float(row["holds"]) for row in own) / sum(float(row["given"]) for row in own)
        assert (held > 0.9) == (assumed == "0.8")


def test_what_the_pages_say_of_simulated_natural_groups():
    folder = ROOT / "benchmarks" / "results" / "natural"
    scores, page = rows_of(folder / "scores.csv"), text_of("docs/natural_groups.md")
    assert "covered 92 to 97 % in all" in page and "none of them holds" in page
    assert all(0.92 <= float(row["explained_deviance"]) <= 0.97 for row in scores)
    metrics = ("error", "auc", "brier", "log_loss")
    for row in scores:
        covered = [float(row[name]) for name in metrics]
        if "(fails" not in row["world"]:
            assert min(covered) >= 0.92
        if row["world"].startswith("twice the bound (fails); 100"):
            assert max(covered) == 0
    groups = [row for row in rows_of(folder / "groups.csv") if "(fails" not in row["world"]]
    assert all(float(row["lowest"]) >= 0.93 for row in groups)


def test_losses_of_the_default_on_tables_of_the_final_part():
    page = (ROOT / "benchmarks" / "tables" / "results" / "README.md").read_text(encoding="utf-8")
    half = page.partition("## In short: final part")[2]
    heads, row = (
        [cell.strip() for cell in re.search(pattern, half, flags=re.MULTILINE)[0].split("|")]
        for pattern in (r"^\| method .*$", r"^\| \*\*stack\*\* .*$")
    )
    found = dict(zip(heads, row, strict=True))
    by_auc, by_error = (
        WORDS[int(found[f"cells lost to a naive method by > 1 SE, {metric}"])].replace("no", "none")
        for metric in ("AUC", "error")
    )
    readme = text_of("README.md")
    assert f"in {found['cells']} settings" in readme
    assert f"in {by_error} by error and in {by_auc} by AUC" in readme


def test_images_on_a_cpu_are_those_of_the_benchmark():
    errors = defaultdict(list)
    for row in rows_of(ROOT / "benchmarks" / "results" / "images.csv"):
        errors[row["problem"], row["bag_size"], row["method"]].append(float(row["error"]))
    text = text_of("docs/images.md")
    cells = [
        ("digits", k, method) for k in ("16", "64", "256") for method in ("net", "em", "ridge")
    ]
    cells += [("mnist", k, method) for k in ("64", "256") for method in ("net", "ridge")]
    for cell in [*cells, ("digits", "1", "net")]:
        assert len(errors[cell]) == 3
        assert f"{np.mean(errors[cell]):.1f} ± {np.std(errors[cell], ddof=1) / 3**0.5:.1f}" in text
