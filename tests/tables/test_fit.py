"""From a frame to a model: weighed and evaluated without labels, and as good as it says."""

import hashlib
import json
import pickle
import re
import sys
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.example_files import ROLES, make_table

from unbag import BagRidgeClassifier, TableModel, learn_table
from unbag.errors import BagDataWarning, MissingExtraError, TableError
from unbag.estimators import BagStackingClassifier, ModelFolderError
from unbag.report import render_report
from unbag.tables import FitOptions, Roles, fit_table, read_bags, scan_table
from unbag.tables.scan import TableBags

RIDGE = FitOptions(models=("ridge",))
# 15 bags of ten rows of five numbers in the sample, seven in each held-out part.
LARGE = FitOptions(models=("ridge",), memory=6000)


def test_frames_of_every_kind_give_one_model(rng):
    table, labels = make_table(rng, n_bags=60)
    frames = [table, pd.DataFrame(table.to_pydict()), pl.from_arrow(table)]
    scores = [
        learn_table(frame, ROLES, options=RIDGE).predict(frame)["score"].to_numpy()
        for frame in frames
    ]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])
    assert ((scores[0] > 0.5) == labels).mean() > 0.9


@pytest.mark.parametrize("options", [RIDGE, replace(LARGE, memory=12_000)], ids=["memory", "large"])
def test_a_fit_says_which_whole_columns_drive_it(rng, options):
    table, labels = make_table(rng, n_bags=60)
    noise = pa.array(np.where(rng.random(len(labels)) < 0.5, "red", "blue"))
    found = learn_table(table.append_column("noise", noise), ROLES, options=options)
    columns = found.record["importance"]["columns"]
    assert sorted(c["name"] for c in columns) == sorted(found.encoder.names)
    assert columns[0]["name"] == "x" and columns[0]["low"] > 0
    assert abs(columns[-1]["value"]) < columns[0]["low"]


def test_a_fit_says_on_request_whether_more_bags_would_help(rng):
    table, _ = make_table(rng, n_bags=40)
    options = FitOptions(models=("ridge",), learning_curve=True, grouping="random")
    found = learn_table(table, ROLES, options=options).record
    assert [point["n_bags"] for point in found["learning_curve"]["measured"]] == [8, 15, 30]
    page = unescape(render_report(found))
    assert "Would more bags help?" in page and found["learning_curve"]["verdict"] in page


@pytest.mark.parametrize("kind", ["counts", "noise", "classes"])
def test_natural_groups_have_bounds_or_nothing_instead_of_an_error(rng, kind):
    """Groups differ by something hidden, by which metrics of random groups are far off."""
    ids, x = np.repeat(np.arange(60), 20), rng.normal(size=1200)
    labels = x + 2 * rng.normal(size=60)[ids] + rng.normal(size=1200) > 0
    rate = (np.bincount(ids, labels) / 20)[ids]
    columns = {"group": ids, "rate": rate, "x": x}
    columns |= {"other": 1 - rate} if kind == "classes" else {}
    columns |= {"noise": np.full(1200, 1e-4)} if kind == "noise" else {}
    targets = ("rate", "other") if kind == "classes" else ("rate",)
    model = learn_table(
        pa.table(columns),
        Roles("group", targets, noise="noise" if kind == "noise" else None),
        options=FitOptions(models=("prior", "logistic"), grouping="natural"),
    )
    found, page = model.record["evaluation"], unescape(render_report(model.record))
    if kind != "noise":
        assert found["bounds"]["error"]["low"] < found["bounds"]["error"]["high"]
        assert ("recall[other]" in found["bounds"]) == (kind == "classes")
        assert found["verdict"] in page and "always between" in page and "ROC" not in page
        assert model.record["importance"]["columns"][0]["name"] == "x"
        assert "metrics" not in found and model.record["headline"] in repr(model)
        with pytest.warns(BagDataWarning, match="was fitted on"):
            assert "explain" in model.evaluate(pa.table(columns)).verdict  # natural as the fit's
    else:
        told = {name: one["low"] for name, one in found["metrics"].items() if name != "error"}
        assert all(name.startswith("prior") for name in told) and None not in told.values()
        assert found["metrics"]["error"]["value"] is None
        assert "The error is unknown (bags are natural groups)" in page
    assert not model.record["caution"]


def test_a_table_without_rows_is_refused(rng):
    table, _ = make_table(rng, n_bags=60)
    with pytest.raises(TableError, match="no rows"):
        learn_table(table, ROLES, options=RIDGE).predict(table.slice(0, 0))


def test_the_interval_of_the_error_holds_the_true_error(rng):
    table, labels = make_table(rng, n_bags=300)
    model = learn_table(table, ROLES, options=FitOptions(models=("ridge", "logistic")))
    true = np.mean(model.predict(table)["prediction"].to_numpy() != labels)
    error = model.record["evaluation"]["metrics"]["error"]
    # True error on all rows, mostly trained on: an interval of three half-widths must hold it.
    width = error["high"] - error["low"]
    assert error["low"] - width <= true <= error["high"] + width


@pytest.mark.parametrize("options", [RIDGE, LARGE], ids=["memory", "large"])
def test_bags_of_the_evaluation_do_not_reach_the_model(rng, options):
    """Changing their proportions must not change the model; changing others' must."""
    table, _ = make_table(rng, n_bags=40)
    split = fit_table(scan_table(table, ROLES), options).split

    def scores(changed):
        group, rate = table["group"].to_numpy(), table["rate"].to_numpy()
        rate = np.where(np.isin(group, changed), 1 - rate, rate)
        altered = scan_table(table.set_column(1, "rate", [rate]), ROLES)
        return fit_table(altered, options).classifier.predict_proba(
            altered.encoder.transform(table)
        )

    before = scores([])
    np.testing.assert_array_equal(before, scores(split.judging))
    assert not np.allclose(before, scores(split.training[:5]))


def test_weights_add_up_and_the_largest_comes_first(rng):
    table = scan_table(make_table(rng, n_bags=60)[0], ROLES)
    found = fit_table(table, FitOptions(models=("prior", "ridge", "logistic")))
    weights = [candidate.weight for candidate in found.candidates]
    assert weights == sorted(weights, reverse=True) and sum(weights) == pytest.approx(1)
    assert {c.name for c in found.candidates} == {"prior", "ridge", "logistic"}
    assert next(c.weight for c in found.candidates if c.name == "prior") < 0.2


def test_a_large_table_gets_the_better_of_a_stack_and_a_ridge_on_all_bags(rng):
    table, _ = crossed(rng)
    kinds = []
    for data, memory in ((make_table(rng, n_bags=300)[0], 2400), (table, 40_000)):
        said = []
        options = FitOptions(models=("ridge", "em"), memory=memory, quick=True)
        found = fit_table(scan_table(data, ROLES), options, say=said.append)
        assert found.sampled and any("random bags of 300" in words for words in said)
        assert sum(candidate.weight for candidate in found.candidates) == pytest.approx(1)
        kinds.append(type(found.classifier).__name__)
        last = next(c for c in found.candidates if c.name == "ridge on all bags")
        assert last.weight == (kinds[-1] == "BagRidgeClassifier")
        assert len(found.split.training) == (297 if last.weight else 100)
    assert kinds == ["BagRidgeClassifier", "BagStackingClassifier"]


def test_a_large_table_of_natural_groups_keeps_the_stack(rng):
    options = FitOptions(models=("ridge", "logistic"), grouping="natural", memory=2400)
    found = fit_table(scan_table(make_table(rng)[0], ROLES), options)
    assert found.sampled and {c.name for c in found.candidates} == {"ridge", "logistic"}


def crossed(rng):
    """Labels no linear model has: the sign of x times z."""
    table, _ = make_table(rng, n_bags=300)
    group, labels = table["group"].to_numpy(), table["x"].to_numpy() * table["z"].to_numpy() > 0
    rate = np.bincount(group, labels) / np.bincount(group)
    return table.set_column(1, "rate", [rate[group]]), labels


@pytest.mark.parametrize("trees", ["boosting", "em"])
def test_trees_have_the_weight_where_they_are_best_and_are_saved_as_plain_data(
    rng, tmp_path, trees
):
    pytest.importorskip("lightgbm", reason="the extra unbag[gbm] is not installed")
    table, labels = crossed(rng)
    model = learn_table(table, ROLES, options=FitOptions(models=("ridge", trees)))
    best = model.record["candidates"][0]
    assert best["name"] == trees and best["weight"] > 0.8
    again = TableModel.load(model.save(tmp_path / "m"))
    found = again.predict(table)
    assert found.equals(model.predict(table))
    assert np.mean(found["prediction"].to_numpy() == labels) > 0.85
    [weights, *_] = sorted((tmp_path / "m").rglob("candidate*/model.safetensors"), key=_size)[::-1]
    weights.write_bytes(weights.read_bytes().replace(b"tree", b"TREE", 1))
    with pytest.raises(ModelFolderError, match="altered"):
        TableModel.load(tmp_path / "m")


def _size(path):
    return path.stat().st_size


@pytest.mark.parametrize("installed", [True, False])
def test_the_default_stack_is_saved_and_predicts_the_same(rng, tmp_path, monkeypatch, installed):
    """Without LightGBM it has no trees, which could not be saved as plain data."""
    if installed:
        pytest.importorskip("lightgbm", reason="the extra unbag[gbm] is not installed")
    monkeypatch.setattr("unbag.tables.options.has_module", lambda name: installed)
    table, labels = make_table(rng, n_bags=120)
    model = learn_table(table, ROLES, options=FitOptions(quick=installed))
    names = {candidate["name"] for candidate in model.record["candidates"]}
    assert {"prior", "process"} <= names
    assert any(name.startswith("em_") for name in names) == installed
    again = TableModel.load(model.save(tmp_path / "m"))
    assert again.predict(table).equals(model.predict(table))
    assert np.mean(again.predict(table)["prediction"].to_numpy() == labels) > 0.9


def test_bags_of_a_block_are_held_out_together(rng):
    table, _ = make_table(rng, n_bags=60)
    day = pa.array([f"day {group % 12}" for group in table["group"].to_pylist()])
    scanned = scan_table(table.append_column("day", day), Roles("group", ("rate",), block="day"))
    assert "day" not in scanned.encoder.names
    found = fit_table(scanned, RIDGE)
    assert len(np.intersect1d(found.split.judging % 12, found.split.training % 12)) == 0
    assert len(found.split.judging) == 15  # three days: the first that have a fifth of the bags


@pytest.mark.parametrize("memory", [8000, 2400])
def test_blocks_stay_whole_in_large_tables_too(rng, memory):
    table, _ = make_table(rng, n_bags=60)
    day = pa.array([f"day {group % 12}" for group in table["group"].to_pylist()])
    scanned = scan_table(table.append_column("day", day), Roles("group", ("rate",), block="day"))
    split = fit_table(scanned, replace(LARGE, memory=memory)).split
    held_out = np.union1d(split.judging, split.choosing)
    assert len(np.intersect1d(held_out % 12, split.training % 12)) == 0
    # A day has five bags of ten rows.
    assert 10 * max(len(split.judging), len(split.choosing)) <= max(memory // 80, 50)


def test_at_least_three_bags_judge_where_each_has_its_own_block(rng):
    table, _ = make_table(rng, n_bags=12)
    scanned = scan_table(table.append_column("day", table["group"]), replace(ROLES, block="day"))
    assert len(fit_table(scanned, replace(RIDGE, held_out=0.05)).split.judging) == 3


def test_a_block_of_one_bag_alone_cannot_judge(rng):
    table, _ = make_table(rng, n_bags=12)
    block = pa.array(np.digitize(table["group"].to_numpy(), [1, 6]))  # bag 0 has its own
    scanned = scan_table(table.append_column("block", block), replace(ROLES, block="block"))
    refused = 0
    for seed in range(6):
        try:
            assert len(fit_table(scanned, replace(RIDGE, seed=seed)).split.judging) > 1
        except TableError as error:
            refused += "at least 2 bags, got 1 of 12 in 3 blocks" in str(error)
    assert 0 < refused < 6


def test_a_block_is_that_of_a_whole_bag(rng):
    table, _ = make_table(rng, n_bags=20)
    day = pa.array(np.arange(table.num_rows) % 3)
    with pytest.raises(TableError, match="'day' differs"):
        scan_table(table.append_column("day", day), Roles("group", ("rate",), block="day"))


def test_every_headline_has_the_trivial_baseline_beside_it(rng):
    table, labels = make_table(rng, n_bags=100)
    good = learn_table(table, ROLES, options=RIDGE)
    prior = labels.mean()
    assert good.record["baseline"]["error"] == pytest.approx(min(prior, 1 - prior))
    assert re.search(r"% error \(95 % interval .*\); always '(no|yes)': \d", repr(good))
    assert good.record["baseline"]["verdict"] == ""
    noise = table.set_column(2, "x", [rng.normal(size=len(labels))])
    bad = learn_table(noise, ROLES, options=FitOptions(models=("prior",)))
    assert "model is better" in bad.record["baseline"]["verdict"]
    assert bad.record["baseline"]["verdict"] in unescape(render_report(bad.record))


def test_classes_are_called_by_their_columns(rng, tmp_path):
    x = rng.normal(size=(1200, 2))
    labels = (x @ [[1, 0, -1], [0, 1, -1]]).argmax(axis=1)
    group = np.repeat(np.arange(120), 10)
    shares = np.eye(3)[labels].reshape(120, 10, 3).mean(axis=1)[group]
    names = ("north", "south", "far east")
    targets = dict(zip(names, shares.T, strict=True))
    frame = pd.DataFrame({"g": group, "a": x[:, 0], "b": x[:, 1]} | targets)
    model = learn_table(frame, Roles("g", names), options=RIDGE)
    again = TableModel.load(model.save(tmp_path / "m"))
    assert again.classifier.classes_.tolist() == list(names)
    clf = BagRidgeClassifier().fit(frame[["a", "b"]], frame[list(names)], bags=group)
    assert clf.classes_.tolist() == list(names)
    assert np.mean(clf.predict(frame[["a", "b"]]) == np.array(names)[labels]) > 0.8


def test_a_model_is_evaluated_in_python(rng):
    table, _ = make_table(rng, n_bags=100)
    other, _ = make_table(rng, n_bags=80)
    model = learn_table(table, ROLES, options=RIDGE)
    found = model.evaluate(other)
    assert found["error"].value < 0.1 and found.n_bags == 80
    with pytest.warns(BagDataWarning, match="fitted on 80 % of these bags"):
        model.evaluate(table)


def test_an_evaluation_needs_only_columns_that_it_uses(rng):
    table, _ = make_table(rng, n_bags=60)
    for name, values in (("key", np.arange(600)), ("day", table["group"]), ("junk", table["z"])):
        table = table.append_column(name, pa.array(values))
    roles = Roles("group", ("rate",), keys=("key",), ignored=("junk",), block="day")
    model = learn_table(table, roles, options=RIDGE)
    other, _ = make_table(rng, n_bags=80)
    assert model.evaluate(other)["error"].value < 0.2


def test_bags_that_are_not_random_are_announced_before_training():
    x = np.sort(np.random.default_rng(0).normal(size=2000))  # neighbours share a bag
    bag = np.repeat(np.arange(100), 20)
    rate = (x > 0).reshape(100, 20).mean(axis=1)[bag]
    table = scan_table(pd.DataFrame({"x": x, "bag": bag, "rate": rate}), Roles("bag", ("rate",)))
    said = []
    found = fit_table(table, RIDGE, say=said.append)
    assert said.index(found.checks.verdict) < said.index("training ridge")


def test_too_few_bags_are_refused(rng):
    table = scan_table(make_table(rng, n_bags=9)[0], ROLES)
    with pytest.raises(TableError, match="at least 10 bags, got 9"):
        fit_table(table, RIDGE)


@pytest.mark.parametrize(("n_bags", "judging"), [(10, 3), (12, 3), (40, 8), (60, 12)])
def test_an_error_that_few_bags_tell_comes_with_a_caution(rng, n_bags, judging):
    table, _ = make_table(rng, n_bags=n_bags)
    record = learn_table(table, ROLES, options=RIDGE).record
    assert record["evaluation"]["n_bags"] == judging
    words = f"only {judging} bags evaluate.*cross_fit_risk"
    assert bool(re.search(words, record["caution"])) == (judging < 10)
    assert ("bags evaluate it" in render_report(record)) == (judging < 10)


def test_a_saved_model_predicts_the_same(rng, tmp_path):
    table, _ = make_table(rng)
    model = learn_table(table, ROLES, options=FitOptions(models=("ridge", "logistic")))
    again = TableModel.load(model.save(tmp_path / "m"))
    assert again.predict(table).equals(model.predict(table))
    assert again.record == json.loads(json.dumps(model.record))


def test_a_missing_extra_is_named(rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    table = scan_table(make_table(rng)[0], ROLES)
    with pytest.raises(MissingExtraError, match=r"unbag\[gbm\]"):
        fit_table(table, FitOptions(models=("boosting",)))


def test_a_model_says_in_one_line_what_it_is(rng):
    model = learn_table(make_table(rng)[0], ROLES, options=RIDGE)
    wanted = r"TableModel\(stack on \d columns, [\d.]+ % error \(95 % interval .*\); always .*\)"
    assert re.fullmatch(wanted, repr(model))


def test_a_name_that_clashes_is_refused(rng):
    table, _ = make_table(rng)
    model = learn_table(table, ROLES, options=RIDGE)
    renamed = table.append_column("score", table["x"])
    with pytest.raises(TableError, match="'score' cannot be kept"):
        model.predict(renamed, keep=["score"])


def test_nothing_is_left_when_saving_fails(rng, tmp_path, monkeypatch):
    model = learn_table(make_table(rng)[0], ROLES, options=RIDGE)

    def fail(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr(BagStackingClassifier, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_model_of_another_format_is_refused(rng, tmp_path):
    folder = learn_table(make_table(rng)[0], ROLES, options=RIDGE).save(tmp_path / "m")
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))
    with pytest.raises(ModelFolderError, match="format"):
        TableModel.load(folder)


@pytest.mark.parametrize("name", ["model.json", "table.json"])
def test_a_model_of_another_version_is_refused(rng, tmp_path, name):
    """Its hashes are right, but an entry this version needs is not there."""
    folder = learn_table(make_table(rng)[0], ROLES, options=RIDGE).save(tmp_path / "m")
    values = json.loads((folder / name).read_text())
    values.pop("task" if name == "model.json" else "columns")
    (folder / name).write_text(json.dumps(values))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelFolderError, match="written by another version"):
        TableModel.load(folder)


def test_bags_are_read_from_files_where_they_are_needed(rng, tmp_path):
    table, _ = make_table(rng, n_bags=30)
    pq.write_table(table, tmp_path / "rows.parquet")
    scanned = scan_table(tmp_path / "rows.parquet", ROLES)
    chosen, part = np.arange(5, 25), np.array([0, 3, 19])
    there = pickle.loads(pickle.dumps(TableBags(scanned, chosen)))  # noqa: S301
    wanted = read_bags(scanned).take(chosen).take(part).gathered()
    np.testing.assert_array_equal(there.take(part).gathered().X, wanted.X)
    np.testing.assert_array_equal(there.take(part).proportions, wanted.proportions)


@pytest.mark.parametrize("memory", [1 << 30, 2400], ids=["memory", "large"])
def test_a_folder_of_files_is_fitted_by_ray_as_by_one_machine(rng, tmp_path, ray_executor, memory):
    table, _ = make_table(rng, n_bags=40)
    folder = tmp_path / "rows"
    folder.mkdir()
    for number in range(4):
        pq.write_table(table.slice(number * 100, 100), folder / f"{number}.parquet")
    settings = {"models": ("ridge", "logistic"), "grouping": "random", "memory": memory}
    alone = learn_table(folder, ROLES, options=FitOptions(**settings))
    found = learn_table(folder, ROLES, options=FitOptions(**settings, ray="local"))
    for name in ("evaluation", "candidates"):
        assert json.dumps(found.record[name]) == json.dumps(alone.record[name])
    first, second = (model.predict(folder)["score"].to_numpy() for model in (found, alone))
    np.testing.assert_allclose(first, second, atol=1e-9)
