"""From a frame to a model: chosen and judged without labels, and as good as it says."""

import hashlib
import json
import re
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.support.example_files import ROLES, make_table

from unbag import BagRidgeClassifier, TableModel, learn_table
from unbag.errors import MissingExtraError, TableError
from unbag.estimators import ModelFolderError
from unbag.report import render_report
from unbag.tables import FitOptions, Roles, fit_table, scan_table
from unbag.tables.data import BagsInMemory, BagsOnDisk, split_index
from unbag.tables.options import BOOSTED

RIDGE = FitOptions(models=("ridge",))


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


def test_a_table_without_rows_is_refused(rng):
    table, _ = make_table(rng, n_bags=60)
    with pytest.raises(TableError, match="no rows"):
        learn_table(table, ROLES, options=RIDGE).predict(table.slice(0, 0))


def test_the_interval_of_the_error_holds_the_true_error(rng):
    table, labels = make_table(rng, n_bags=300)
    model = learn_table(table, ROLES, options=FitOptions(models=("ridge", "easy_log"), epochs=10))
    true = np.mean(model.predict(table)["prediction"].to_numpy() != labels)
    error = model.record["evaluation"]["metrics"]["error"]
    # True error on all rows, mostly trained on: an interval of three half-widths must hold it.
    width = error["high"] - error["low"]
    assert error["low"] - width <= true <= error["high"] + width


def test_the_groups_are_disjoint_and_cover_all_bags(rng):
    table = scan_table(make_table(rng, n_bags=53)[0], ROLES)
    split = split_index(table.index, share=0.2, seed=0)
    everything = np.concatenate([split.training, split.choosing, split.judging])
    np.testing.assert_array_equal(np.sort(everything), np.arange(53))
    small = split_index(table.index, share=0.2, seed=0, max_rows=40)
    assert len(small.judging) == len(small.choosing) == 4
    assert len(small.training) == 45


def test_judging_bags_do_not_reach_the_model(rng):
    """Changing their proportions must not change the weights; changing others' must."""
    table, _ = make_table(rng, n_bags=40)
    split = split_index(scan_table(table, ROLES).index, share=0.2, seed=0)

    def weights(changed):
        group, rate = table["group"].to_numpy(), table["rate"].to_numpy()
        rate = np.where(np.isin(group, changed), 1 - rate, rate)
        altered = table.set_column(1, "rate", [rate])
        return fit_table(scan_table(altered, ROLES), RIDGE).classifier.coef_

    before = weights([])
    np.testing.assert_array_equal(before, weights(split.judging))
    assert not np.allclose(before, weights(split.choosing))


def test_disk_and_memory_agree(rng):
    table = scan_table(make_table(rng, n_bags=40)[0], ROLES)
    split = split_index(table.index, share=0.2, seed=0)
    memory, disk = BagsInMemory(table, split), BagsOnDisk(table, split, rows_per_part=60)
    try:
        held = [sorted(data.held_out("judging").ids) for data in (memory, disk)]
        ridges = [data.ridge(["training", "choosing"]).coef_ for data in (memory, disk)]
    finally:
        disk.close()
    assert held[0] == held[1]
    np.testing.assert_allclose(*ridges, rtol=1e-6)


def test_the_least_square_risk_is_chosen(rng):
    table = scan_table(make_table(rng, n_bags=60)[0], ROLES)
    options = FitOptions(models=("ridge", "proportion_log", "easy_log"), epochs=4)
    found = fit_table(table, options)
    risks = [candidate.risk.value for candidate in found.candidates]
    assert risks == sorted(risks) and len(risks) == 3
    is_ridge = isinstance(found.classifier, BagRidgeClassifier)
    assert is_ridge == (found.candidates[0].name == "ridge")


def crossed(rng):
    """Labels no linear model has: the sign of x times z."""
    table, _ = make_table(rng, n_bags=300)
    group, labels = table["group"].to_numpy(), table["x"].to_numpy() * table["z"].to_numpy() > 0
    rate = np.bincount(group, labels) / np.bincount(group)
    return table.set_column(1, "rate", [rate[group]]), labels


@pytest.mark.parametrize("trees", ["boosting", "count_boosting"])
def test_boosting_is_chosen_where_it_is_best_and_saved_as_plain_data(rng, tmp_path, trees):
    pytest.importorskip("lightgbm", reason="the extra unbag[gbm] is not installed")
    table, labels = crossed(rng)
    model = learn_table(table, ROLES, options=FitOptions(models=("ridge", trees)))
    assert model.record["chosen"] == trees
    assert model.classifier.rule == BOOSTED[trees]
    best = model.record["candidates"][0]
    assert 0 < best["epochs"] <= len(best["history"]["held_out_risk"])
    again = TableModel.load(model.save(tmp_path / "m"))
    found = again.predict(table)
    assert found.equals(model.predict(table))
    assert np.mean(found["prediction"].to_numpy() == labels) > 0.85
    weights = tmp_path / "m" / "model.safetensors"
    weights.write_bytes(weights.read_bytes().replace(b"tree", b"TREE", 1))
    with pytest.raises(ModelFolderError, match="altered"):
        TableModel.load(tmp_path / "m")


def test_the_likelihood_may_grow_more_trees():
    """Those are too many for the square loss, and for either on a large table."""
    trees = FitOptions().trees_on
    assert (trees(5000, "boosting"), trees(5000, "count_boosting")) == (400, 800)
    assert (trees(10**7, "boosting"), trees(10**7, "count_boosting")) == (40, 40)


def test_boosting_stays_out_of_what_memory_does_not_hold(rng):
    table, said = scan_table(make_table(rng)[0], ROLES), []
    options = FitOptions(models=("ridge", "boosting"), memory=1)
    found = fit_table(table, options, say=said.append)
    assert found.streamed and [c.name for c in found.candidates] == ["ridge"]
    assert any("leaving boosting out" in words for words in said)
    with pytest.raises(TableError, match="all rows in memory"):
        fit_table(table, FitOptions(models=("boosting",), memory=1))


@pytest.mark.parametrize("installed", [True, False])
def test_boosting_is_tried_where_it_is_installed(monkeypatch, installed):
    monkeypatch.setattr("unbag.tables.options.has_module", lambda name: installed)
    assert ("boosting" in FitOptions().models) == installed


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
    with pytest.raises(TableError, match="9 bags"):
        fit_table(table, RIDGE)


@pytest.mark.parametrize(("n_bags", "judging"), [(10, 3), (12, 3), (40, 8), (60, 12)])
def test_an_error_that_few_bags_tell_comes_with_a_caution(rng, n_bags, judging):
    table, _ = make_table(rng, n_bags=n_bags)
    record = learn_table(table, ROLES, options=RIDGE).record
    assert record["evaluation"]["n_bags"] == judging
    words = f"rest on {judging} bags only.*cross_fit_risk"
    assert bool(re.search(words, record["caution"])) == (judging < 10)
    assert ("bags only" in render_report(record)) == (judging < 10)


def test_a_saved_model_predicts_the_same(rng, tmp_path):
    table, _ = make_table(rng)
    model = learn_table(table, ROLES, options=FitOptions(models=("debiased_square",), epochs=3))
    again = TableModel.load(model.save(tmp_path / "m"))
    assert again.predict(table).equals(model.predict(table))
    assert again.record == json.loads(json.dumps(model.record))


def test_a_missing_extra_is_said_before_the_rows_are_read(rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    said = []
    table = scan_table(make_table(rng)[0], ROLES)
    with pytest.raises(MissingExtraError, match=r"unbag\[gbm\]"):
        fit_table(table, FitOptions(models=("boosting",)), say=said.append)
    assert not said


def test_a_model_says_in_one_line_what_it_is(rng):
    model = learn_table(make_table(rng)[0], ROLES, options=RIDGE)
    wanted = r"TableModel\(ridge on \d columns, estimated error [\d.]+ % \(95 % interval .*\)\)"
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

    monkeypatch.setattr(BagRidgeClassifier, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_model_of_another_format_is_refused(rng, tmp_path):
    folder = learn_table(make_table(rng)[0], ROLES, options=RIDGE).save(tmp_path / "m")
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"format": 2}))
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
    with pytest.raises(ModelFolderError, match="this version cannot read"):
        TableModel.load(folder)
