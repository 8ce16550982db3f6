"""A new user's path, in an empty folder, with the table that ships."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import typer
from tests.support.calling import call, good

from unbag.cli.evaluate import roles_again
from unbag.tables import Roles

SOURCE = Path(__file__).parents[2] / "src"
COLUMNS = ["--bag", "report", "--count", "conversions", "--key", "event_id"]
QUICK = ["--model", "ridge", "--model", "logistic"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted") / "model"
    good("fit", "example:conversions", *COLUMNS, *QUICK, "-o", folder)
    return folder


def walk(folder, place):
    """As a user types it: fit, predict, evaluate, report, each a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(place), "COLUMNS": "100"}

    def unbag(*arguments):
        command = [sys.executable, "-m", "unbag", *arguments]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    said = unbag("fit", "example:conversions", *COLUMNS, *QUICK, "-o", "model")
    for words in (
        "4,584 rows in 300 bags",
        "device",
        "; always 'no'",
        "No evidence against",
    ):
        assert words in said
    unbag("predict", "model", "example:conversions_next", "-o", "scores.parquet")
    evaluated = json.loads(unbag("evaluate", "model", "example:conversions_next", "--json"))
    assert evaluated["metrics"]["error"]["value"] < 0.3
    unbag("report", "model", "-o", "report.html")
    left = {path.name for path in folder.iterdir()}
    assert left == {"model", "scores.parquet", "report.html"}


def test_the_whole_path_in_an_empty_folder(tmp_path):
    walk(tmp_path, SOURCE)


@pytest.mark.slow
def test_the_whole_path_from_an_installed_wheel(tmp_path):
    """Everything the path needs is in the wheel: the example, the page's template."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheels, site, empty = (tmp_path / name for name in ("wheels", "site", "empty"))
    empty.mkdir()
    subprocess.run([*pip, "wheel", "--no-deps", "-w", wheels, SOURCE.parent], check=True)
    [wheel] = wheels.iterdir()
    subprocess.run([*pip, "install", "--no-deps", "--target", site, wheel], check=True)
    walk(empty, site)


def test_the_model_folder_is_complete(model):
    names = {path.name for path in model.iterdir() if not path.name.startswith("candidate")}
    assert names == {
        *("fit.json", "manifest.json", "model.json", "model.safetensors"),
        *("report.html", "table.json"),
    }
    record = json.loads((model / "fit.json").read_text())
    assert record["settings"]["bags"] == {"training": 240, "choosing": 0, "judging": 60}
    assert {c["name"] for c in record["candidates"]} == {"ridge", "logistic"}


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet"])
def test_predictions_keep_keys_and_order(model, tmp_path, name):
    good("predict", model, "example:conversions_next", "-o", tmp_path / name)
    read = pacsv.read_csv if name.endswith("csv") else pq.read_table
    scores = read(tmp_path / name)
    assert scores.column_names == ["event_id", "report", "score", "prediction"]
    ids = scores["event_id"].to_pylist()
    assert ids == sorted(ids) and len(ids) == 1820
    agree = [
        (s > 0.5) == p
        for s, p in zip(*(scores[c].to_pylist() for c in ("score", "prediction")), strict=True)
    ]
    assert all(agree)


def test_predictions_of_chunks_are_those_of_the_whole(model, tmp_path):
    rows = pacsv.read_csv(SOURCE / "unbag" / "datasets" / "examples" / "conversions_next.csv")
    pq.write_table(rows, tmp_path / "whole.parquet")
    good("predict", model, tmp_path / "whole.parquet", "-o", tmp_path / "a.parquet")
    (tmp_path / "parts").mkdir()
    pq.write_table(rows.slice(0, 1000), tmp_path / "parts" / "0.parquet", row_group_size=333)
    pq.write_table(rows.slice(1000), tmp_path / "parts" / "1.parquet")
    good("predict", model, tmp_path / "parts", "-o", tmp_path / "b.parquet")
    whole, parts = (pq.read_table(tmp_path / f"{name}.parquet") for name in "ab")
    assert whole.drop_columns("score").equals(parts.drop_columns("score"))
    assert parts["score"].to_pylist() == pytest.approx(whole["score"].to_pylist(), abs=1e-12)


def test_json_is_all_there_is_on_standard_output(model, tmp_path):
    out = tmp_path / "s.csv"
    answers = [
        good("predict", model, "example:conversions_next", "-o", out, "--json"),
        good("evaluate", model, "example:conversions_next", "--json"),
        good("check", "example:conversions", *COLUMNS, "--json"),
        good("report", model, "-o", tmp_path / "r.html", "--json"),
    ]
    predicted, evaluated, checked, reported = (json.loads(a.stdout) for a in answers)
    assert predicted["rows"] == 1820
    assert evaluated["n_bags"] == 120
    assert checked["checks"]["plausible"] is True
    assert reported["output"] == str(tmp_path / "r.html")


@pytest.mark.parametrize(("options", "words"), [([], "95 %"), (["--confidence", 0.9], "90 %")])
def test_the_table_of_metrics_names_its_confidence(model, options, words):
    said = good("evaluate", model, "example:conversions_next", *options).output
    assert f"{words} interval" in said


def test_natural_groups_get_bounds_instead_of_intervals(model):
    said = good("evaluate", model, "example:conversions_next", "--grouping", "natural", "--json")
    found = json.loads(said.stdout)
    assert found["bounds"]["error"]["low"] <= found["bounds"]["error"]["if_right"]
    assert "metrics" not in found and "always between" in said.stderr
    random = good("evaluate", model, "example:conversions_next", "--grouping", "auto", "--json")
    assert "metrics" in json.loads(random.stdout)
    assert json.loads(random.stdout)["grouping"].startswith("Bags are treated as random groups: ")
    refused = call("evaluate", model, "example:conversions_next", "--grouping", "odd")
    assert refused.exit_code != 0 and "is not one of" in refused.output


def test_labels_and_amounts_are_not_named_together(model):
    named = ("--proportion", "conversion_rate", "--average", "conversion_rate")
    refused = call("evaluate", model, "example:conversions_next", *named)
    assert refused.exit_code != 0 and "give one of" in refused.output


@pytest.mark.parametrize("option", ["--smoothness", "--blocks"])
def test_what_only_natural_groups_have_is_refused_for_random_ones(model, option):
    refused = call("evaluate", model, "example:conversions_next", option, "0.5")
    assert refused.exit_code == 2 and "need --grouping natural" in refused.output


def test_a_folder_that_is_no_model_is_named(tmp_path):
    (tmp_path / "file").touch()
    for name, words in (("file", "is no folder"), ("nothing", "does not exist")):
        refused = call("predict", tmp_path / name, "example:conversions", "-o", tmp_path / "s.csv")
        assert refused.exit_code == 1
        assert f"{name} {words}. Name a model folder" in refused.stderr


def test_natural_groups_may_have_blocks_a_smoothness_and_features_that_differ(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    town = np.repeat(np.arange(40), 20)
    x = rng.normal(size=800) + 2 * rng.normal(size=40)[town]  # towns differ in this, and only here
    rows = pd.DataFrame(
        {"x": x, "town": town, "county": town // 5, "n": rng.binomial(20, 0.5, 40)[town]}
    )
    rows.to_csv(tmp_path / "towns.csv", index=False)
    named = ("--bag", "town", "--count", "n", "--blocks", "county")
    good("fit", tmp_path / "towns.csv", *named, "--quick", "-o", tmp_path / "m", "--model", "ridge")
    again = ("evaluate", tmp_path / "m", tmp_path / "towns.csv", "--json")
    found = json.loads(good(*again, "--grouping", "auto", "--smoothness", "0.5").stdout)
    assert "1 of 1 features differ" in found["grouping"]
    assert found["smoothness"] == 0.5 and found["bounds"]["error"]["smooth_low"] is not None
    spreads = []
    for blocks in (("--blocks", "county"), ("--blocks", "")):
        said = json.loads(good(*again, "--grouping", "natural", *blocks).stdout)
        spreads.append(said["explained_deviance"]["standard_error"])
    assert spreads[0] != spreads[1]  # of eight blocks, not of forty towns


def test_bags_of_the_fit_are_known_again(model):
    """The model was fitted on 240 of its 300 bags; the others evaluated it."""
    again = good("evaluate", model, "example:conversions", "--json")
    assert json.loads(again.stdout)["training_share"] == 240 / 300
    assert "80 % of these bags" in " ".join(again.stderr.split())
    other = good("evaluate", model, "example:conversions_next", "--json")
    assert json.loads(other.stdout)["training_share"] == 0
    assert "of these bags" not in other.stderr


def test_columns_of_the_fit_stay_unless_named_again():
    """Naming the proportion again does not make its noise go away; an empty name does."""
    before = Roles("g", proportions=("rate",), size="k", noise="v")
    named = roles_again(before, "h", ["other"], None, None, None)
    assert named == Roles("h", proportions=("other",), size="k", noise="v")
    counted = roles_again(before, None, None, ["n"], "", "w")
    assert counted == Roles("g", counts=("n",), noise="w")
    assert roles_again(before, None, None, None, None, "") == replace(before, noise=None)


def test_noise_of_a_proportion_is_not_taken_for_that_of_a_count():
    shares, counts = Roles("g", ("rate",), noise="v"), Roles("g", counts=("n",), noise="v")
    for before, proportion, count in ((shares, None, ["n"]), (counts, ["rate"], None)):
        with pytest.raises(typer.BadParameter, match="--noise"):
            roles_again(before, None, proportion, count, None, None)
        assert roles_again(before, None, proportion, count, None, "").noise is None


def test_fit_answers_in_json_and_twice_the_same(tmp_path):
    records = []
    for name in ("a", "b"):
        arguments = [*COLUMNS, *QUICK, "--json", "-o", tmp_path / name]
        records.append(json.loads(good("fit", "example:conversions", *arguments).stdout))
    assert records[0]["evaluation"] == records[1]["evaluation"]
    weights = [(tmp_path / n / "model.safetensors").read_bytes() for n in ("a", "b")]
    assert weights[0] == weights[1]


def test_a_sample_of_the_bags_gives_a_model_as_good(tmp_path, model):
    """One megabyte of memory holds a part of the rows."""
    arguments = [*COLUMNS[:4], "--ignore", "event_id", "--model", "ridge", "--json"]
    rows = pacsv.read_csv(SOURCE / "unbag" / "datasets" / "examples" / "conversions.csv")
    many = pa.concat_tables(
        rows.set_column(rows.column_names.index("report"), "report", _suffixed(rows, i))
        for i in range(4)
    )
    pq.write_table(many, tmp_path / "many.parquet")
    found = []
    for memory in (1, 1000):
        folder = tmp_path / str(memory)
        said = good(
            "fit", tmp_path / "many.parquet", *arguments, "--memory", memory, "-o", folder
        ).stdout
        found.append(json.loads(said))
    assert [record["settings"]["sampled"] for record in found] == [True, False]
    errors = [record["evaluation"]["metrics"]["error"]["value"] for record in found]
    assert errors[0] == pytest.approx(errors[1], abs=0.05)  # two standard errors


def _suffixed(rows, number):
    return pa.array([f"{value}-{number}" for value in rows["report"].to_pylist()])


def test_nets_learn_from_a_sample_too(tmp_path, rng):
    x = rng.normal(size=(40_000, 8))
    group = rng.permutation(40_000) // 20
    rate = np.bincount(group, x[:, 0] * x[:, 1] > 0) / 20
    columns = {f"x{i}": x[:, i] for i in range(8)}
    pq.write_table(pa.table({"g": group, "rate": rate[group], **columns}), tmp_path / "t.parquet")
    options = ["--model", "ridge", "--model", "debiased_square", "--memory", 1]
    named = ["--bag", "g", "--proportion", "rate"]
    place = tmp_path / "m"
    said = good("fit", tmp_path / "t.parquet", *named, *options, "--json", "-o", place)
    record = json.loads(said.stdout)
    assert record["settings"]["sampled"] and record["chosen"] == "stack"
    assert record["evaluation"]["metrics"]["error"]["value"] < 0.3
    good("predict", place, tmp_path / "t.parquet", "-o", tmp_path / "s.parquet")


def test_a_model_is_replaced_only_on_request(model):
    again = call("fit", "example:conversions", *COLUMNS, "-o", model)
    assert again.exit_code == 1
    assert "--overwrite" in again.stderr


def test_a_folder_that_is_no_model_is_never_replaced(tmp_path):
    (tmp_path / "precious.txt").write_text("x")
    result = call("fit", "example:conversions", *COLUMNS, "--overwrite", "-o", tmp_path)
    assert result.exit_code == 1
    assert (tmp_path / "precious.txt").exists()


def test_strict_checks_say_so_by_their_exit_code(tmp_path, rng):
    x = rng.normal(size=2000)
    group = x.argsort().argsort() // 20
    rate = [(x[group == g] > 0).mean() for g in group]
    pq.write_table(pa.table({"g": group, "rate": rate, "x": x}), tmp_path / "t.parquet")
    result = call("check", tmp_path / "t.parquet", "--bag", "g", "--proportion", "rate", "--strict")
    assert result.exit_code == 3
    assert "upper" in result.output


def test_several_classes_from_fit_to_predict(tmp_path, rng):
    x = rng.normal(size=(1200, 2))
    labels = (x @ [[1, 0, -1], [0, 1, -1]]).argmax(axis=1)
    group = rng.permutation(1200) // 10
    shares = {f"p{c}": [(labels[group == g] == c).mean() for g in group] for c in range(3)}
    table = pa.table({"g": group, "a": x[:, 0], "b": x[:, 1], **shares})
    pq.write_table(table, tmp_path / "t.parquet")
    named = [word for name in shares for word in ("--proportion", name)]
    place = tmp_path / "m"
    good("fit", tmp_path / "t.parquet", "--bag", "g", *named, "--model", "ridge", "-o", place)
    good("predict", place, tmp_path / "t.parquet", "-o", tmp_path / "s.parquet")
    predicted = pq.read_table(tmp_path / "s.parquet")["prediction"].to_pylist()
    assert sum(p == f"p{y}" for p, y in zip(predicted, labels, strict=True)) > 900
    found = json.loads(good("evaluate", place, tmp_path / "t.parquet", "--json").stdout)
    assert "recall[p2]" in found["metrics"] and "recall[2]" not in found["metrics"]
    assert "that are found (p2)" in (place / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "check", "report"])
def test_help_has_examples_and_json(command):
    text = good(command, "--help").output
    assert "Examples" in text and f"unbag {command}" in text and "--json" in text


def test_the_shell_completes():
    assert "--install-completion" in good("--help").output


def test_candidates_are_named(tmp_path):
    choice = ["--model", "prior", "--model", "ridge", "--json"]
    said = good("fit", "example:conversions", *COLUMNS, *choice, "-o", tmp_path / "m").stdout
    names = {candidate["name"] for candidate in json.loads(said)["candidates"]}
    assert names == {"ridge", "prior"}
    wrong = call("fit", "example:conversions", *COLUMNS, "--model", "net", "-o", tmp_path / "n")
    assert wrong.exit_code == 2 and "boosting" in wrong.output


def test_the_command_that_makes_a_model_again_is_written_down(tmp_path):
    said = [
        "--seed",
        3,
        "--quick",
        "--model",
        "ridge",
        "--grouping",
        "random",
        "-o",
        tmp_path / "m",
    ]
    good("fit", "example:conversions", *COLUMNS, *said)
    command = json.loads((tmp_path / "m" / "fit.json").read_text())["command"]
    words = shlex.split(command)
    assert words[:3] == ["unbag", "fit", "example:conversions"] and "--quick" in words
    for pair in (("--seed", "3"), ("--grouping", "random"), ("--key", "event_id")):
        assert words[words.index(pair[0]) + 1] == pair[1]
    assert "--memory" not in words  # it has its default


def test_the_extra_that_would_add_trees_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("unbag.extras.has_module", lambda name: False)
    monkeypatch.setattr("unbag.tables.options.has_module", lambda name: False)
    said = good("fit", "example:conversions", *COLUMNS, "--quick", "-o", tmp_path / "m")
    assert "unbag[gbm]" in said.output and "em_" not in said.output


def test_keys_come_back_with_their_type(model, tmp_path):
    rows = pacsv.read_csv(SOURCE / "unbag" / "datasets" / "examples" / "conversions_next.csv")
    numbers = pa.array(range(len(rows)))
    rows = rows.append_column("number", numbers)
    padded = rows.append_column("code", pa.array([f"{n:04d}" for n in range(len(rows))]))
    pacsv.write_csv(padded, tmp_path / "t.csv")
    keep = ["--keep", "number", "--keep", "code"]
    good("predict", model, tmp_path / "t.csv", *keep, "-o", tmp_path / "s.parquet")
    found = pq.read_table(tmp_path / "s.parquet")
    assert found["number"].type == pa.int64() and found["number"].to_pylist() == numbers.to_pylist()
    assert found["code"].type == pa.string() and found["code"][7].as_py() == "0007"
