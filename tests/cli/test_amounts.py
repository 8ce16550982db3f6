"""Averages and sums of amounts on the command line: fit, report, predict, evaluate, bad input."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from tests.support.calling import call, good

import unbag
from unbag.errors import BagDataWarning


def write(path, rng, n_bags, **change):
    bag = rng.permutation(np.repeat(np.arange(n_bags), 12))
    x, colour = rng.normal(size=len(bag)), rng.choice(["red", "blue"], size=len(bag))
    amounts = 50 + 10 * x + 5 * (colour == "red") + rng.normal(size=len(bag))
    average = (np.bincount(bag, amounts) / 12)[bag]
    columns = {"bag": bag, "x": x, "colour": colour, "energy": average, "noise": 0 * average}
    columns["day"] = bag % 6
    pacsv.write_csv(pa.table(columns | {k: v(columns) for k, v in change.items()}), path)
    return amounts


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path, rng = tmp_path_factory.mktemp("amounts"), np.random.default_rng(0)
    write(path / "t.csv", rng, 100)
    write(path / "sums.csv", rng, 60, energy=lambda c: 12 * c["energy"])
    np.save(path / "true.npy", write(path / "new.csv", rng, 60))
    good("fit", path / "t.csv", *FIT, "--average", "energy", "-o", path / "model")
    return path


FIT = ["--bag", "bag", "--ignore", "noise", "--ignore", "day"]


def test_a_table_of_averages_is_fitted_and_judged(folder):
    record = json.loads((folder / "model" / "fit.json").read_text())
    assert record["data"]["task"] == "amount" and record["chosen"] == "ridge"
    assert {c["name"] for c in record["candidates"]} == {"ridge", "process", "boosting"}
    assert record["evaluation"]["metrics"]["r2"]["value"] > 0.9
    page = (folder / "model" / "report.html").read_text()
    assert "R2: share of the variance" in page and "Averages: energy" in page
    found = json.loads(good("evaluate", folder / "model", folder / "new.csv", "--json").stdout)
    out = folder / "predictions.csv"
    good("predict", folder / "model", folder / "new.csv", "-o", out, "--overwrite")
    predicted = pacsv.read_csv(out)["prediction"].to_numpy()
    true = np.mean((predicted - np.load(folder / "true.npy")) ** 2)
    assert found["metrics"]["mse"]["low"] < true < found["metrics"]["mse"]["high"]


def test_sums_blocks_and_noise(folder, tmp_path):
    fit = ["fit", folder / "sums.csv", "--bag", "bag", "--sum", "energy", "--model", "ridge"]
    output = good(*fit, "--noise", "noise", "--blocks", "day", "-o", tmp_path / "model").output
    assert "sum of the bag" in output and "variance of known noise in the sum" in output
    model = unbag.TableModel.load(tmp_path / "model")
    with pytest.warns(BagDataWarning, match="fitted on 6"):
        assert model.evaluate(folder / "sums.csv")["r2"].value > 0.9
    named = ["--average", "energy", "--noise", ""]
    words = good("evaluate", tmp_path / "model", folder / "new.csv", *named).output
    assert "always the mean" in words


def test_natural_groups_are_judged_by_their_averages(folder, tmp_path):
    def by_region(columns):
        return columns["x"] + 3 * np.random.default_rng(2).normal(size=120)[columns["bag"]]

    write(tmp_path / "t.csv", np.random.default_rng(1), 120, x=by_region)
    output = good("fit", tmp_path / "t.csv", *FIT, *AVERAGE, "-o", tmp_path / "model").output
    assert "error of single amounts is larger, and unknown" in " ".join(output.split())
    page = (tmp_path / "model" / "report.html").read_text()
    assert "On averages of bags, which are natural groups" in page
    model = unbag.TableModel.load(tmp_path / "model")
    assert model.grouping == "natural"
    declared = ["--grouping", "random"]
    for options, metric in (
        ([], "group_r2"),
        (["--grouping", "auto"], "group_r2"),
        (declared, "r2"),
    ):
        out = good("evaluate", tmp_path / "model", tmp_path / "t.csv", *options, "--json").stdout
        assert metric in json.loads(out)["metrics"]


def test_the_report_is_made_again(folder, tmp_path):
    good("report", folder / "model", "-o", tmp_path / "page.html")
    assert "squared error" in (tmp_path / "page.html").read_text()


AVERAGE = ["--average", "energy"]
MALFORMED = {
    "average beside proportion": (FIT, [*AVERAGE, "--proportion", "x"], "give one of --proportion"),
    "average beside sum": (FIT, [*AVERAGE, "--sum", "x"], "give one of --proportion"),
    "neither": (FIT, [], "give one of --proportion"),
    "no such column": (FIT, ["--average", "water"], "'water'"),
    "a word": (FIT, ["--average", "colour"], "colour"),
    "a learner of labels": (FIT, [*AVERAGE, "--model", "em"], "is for labels"),
    "an unknown learner": (FIT, [*AVERAGE, "--model", "forest"], "forest"),
    "rounded amounts": (FIT, [*AVERAGE, "--noise", "rounding"], "the noise 'rounding'"),
    "a size that differs": (FIT[:4], [*AVERAGE, "--size", "day"], "number of rows"),
    "not constant in bags": (FIT, ["--average", "x"], "differs from the first row"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_commands_are_refused_in_words(case, folder, tmp_path):
    fit, more, words = MALFORMED[case]
    result = call("fit", folder / "t.csv", *fit, *more, "-o", tmp_path / "model")
    assert result.exit_code != 0 and words in " ".join(result.output.split())


TABLES = {
    "a missing average": (
        {"energy": lambda c: np.where(c["bag"] == 3, np.nan, c["energy"])},
        "is missing",
    ),
    "an infinite average": (
        {"energy": lambda c: np.where(c["bag"] == 3, np.inf, c["energy"])},
        "energy",
    ),
    "negative noise": ({"noise": lambda c: 0 * c["energy"] - 1}, "must not be negative"),
    "equal averages": ({"energy": lambda c: 0 * c["energy"] + 4}, "all 24 bags have the average 4"),
    "the sum among the features": ({"day": lambda c: 12 * c["energy"]}, "'day' is the count"),
    "one bag": (
        {"bag": lambda c: 0 * c["bag"], "energy": lambda c: 0 * c["energy"]},
        "belong to one bag",
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_malformed_tables_are_refused_in_words(case, tmp_path):
    change, words = TABLES[case]
    write(tmp_path / "t.csv", np.random.default_rng(1), 40, **change)
    given = ["--bag", "bag", *AVERAGE, "--noise", "noise", "-o", tmp_path / "model"]
    result = call("fit", tmp_path / "t.csv", *given)
    assert result.exit_code != 0 and words in " ".join(result.output.split())
