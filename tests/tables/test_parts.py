"""Bags larger than memory: whole, every one once, and the step on them exact."""

from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pyarrow as pa
import pytest
import torch
from tests.support.example_files import ROLES, make_table

from unbag import BagRidgeClassifier
from unbag.errors import TableError
from unbag.frames.chunks import TableInMemory
from unbag.models import Standardize
from unbag.rules import RULES
from unbag.tables import read_bags, scan_table
from unbag.tables.out_of_core import _Stream, train_stream
from unbag.tables.parts import BagParts, bag_sums, plan_parts
from unbag.training import Settings, Trial

SIZES = [3, 5, 2, 40, 7, 4, 6, 60, 5, 3, 2, 8]


@pytest.fixture
def table(rng):
    rows, _ = make_table(rng, sizes=SIZES)
    return scan_table(TableInMemory(rows, chunk_rows=11), ROLES)


def everything(table):
    return {"all": np.arange(table.index.n_bags)}


@pytest.mark.parametrize("rows_per_part", [10, 33, 50, 1000])
def test_every_part_holds_two_bags_and_no_more_rows_than_planned(table, rows_per_part):
    sizes = table.index.sizes
    parts, oversized = plan_parts(sizes, np.arange(12), rows_per_part=rows_per_part, seed=0)
    assert min(map(len, parts)) >= 2 and sorted(np.concatenate(parts)) == list(range(12))
    small = parts[:-1] if oversized else parts
    assert all(sizes[part].sum() <= 1.5 * rows_per_part for part in small)


@pytest.mark.parametrize("rows_per_part", [8, 100])
def test_no_part_holds_one_bag_alone_whatever_the_sizes(rows_per_part):
    sizes_of_a_bag = (1, rows_per_part // 4, 10 * rows_per_part)
    for n_bags in range(1, 8):
        for sizes in combinations_with_replacement(sizes_of_a_bag, n_bags):
            for seed in range(3):
                parts, _ = plan_parts(
                    np.array(sizes), np.arange(n_bags), rows_per_part=rows_per_part, seed=seed
                )
                counts = list(map(len, parts))
                assert sum(counts) == n_bags and min(counts) >= min(n_bags, 2), sizes


def test_parts_hold_each_bag_whole_and_once(table):
    bags = read_bags(table)
    means = dict(zip(bags.ids, bags.mean(bags.X).tolist(), strict=True))
    with BagParts(table, everything(table), rows_per_part=30) as parts:
        found = {}
        for part in parts.parts["all"]:
            some = parts.bags(part)
            found |= dict(zip(some.ids, some.mean(some.X).tolist(), strict=True))
    assert found.keys() == means.keys()
    for name, mean in means.items():
        np.testing.assert_allclose(found[name], mean, rtol=1e-5, atol=1e-6)


def test_files_are_gone_afterwards(table, tmp_path):
    with BagParts(table, everything(table), folder=tmp_path):
        assert [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("change", [lambda t: t.slice(1), lambda t: pa.concat_tables([t, t[:1]])])
def test_a_table_that_changed_is_refused_and_leaves_no_files(table, tmp_path, change):
    source = TableInMemory(change(table.source.table), chunk_rows=11)
    with pytest.raises(TableError, match="changed during reading"):
        BagParts(replace(table, source=source), everything(table), folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_closed_form_is_that_of_memory(table):
    bags = read_bags(table)
    with BagParts(table, everything(table), rows_per_part=30) as parts:
        numbers = parts.parts["all"]
        sums = bag_sums(parts.rows(numbers, n_rows=7), 12, parts.n_features)
    streamed = BagRidgeClassifier().fit_means(
        sums / table.index.sizes[:, None], table.index.proportions, table.index.sizes
    )
    np.testing.assert_allclose(streamed.coef_, BagRidgeClassifier().fit_bags(bags).coef_, rtol=1e-6)


@pytest.mark.parametrize("rows_per_part", [1000, 40, 6])
@pytest.mark.parametrize("wanted", [1, 15, 10**6])
def test_features_are_standardised_by_as_many_parts_as_have_enough_rows(
    table, rows_per_part, wanted, monkeypatch
):
    monkeypatch.setattr("unbag.tables.out_of_core.SAMPLE_ROWS", wanted)
    with BagParts(table, everything(table), rows_per_part=rows_per_part) as parts:
        stream = _Stream([Trial()], parts, ["all"], "mlp", Settings())
        rows = [np.concatenate([X for X, _ in parts.rows([n])]) for n in parts.parts["all"]]
    n_parts = next((n for n in range(1, len(rows)) if sum(map(len, rows[:n])) >= wanted), len(rows))
    X = np.concatenate(rows[:n_parts])
    layer = next(m for m in stream.learner.model.modules() if isinstance(m, Standardize))
    np.testing.assert_allclose(layer.mean, X.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(layer.scale, X.std(axis=0), rtol=1e-5)


@pytest.mark.parametrize("name", RULES)
def test_a_step_on_bags_that_outgrow_memory_is_the_step_on_whole_bags(table, name, monkeypatch):
    """The same weights after one step, with rows read a few at a time and all at once."""
    trials = [Trial(RULES[name](), 0.1, seed=3)]
    settings = Settings(max_epochs=1, bags_per_batch=12)
    weights = []
    for rows_per_part, n_rows in ((4, 9), (1_000_000, 1_000_000)):
        rows = BagParts.rows
        monkeypatch.setattr(
            BagParts, "rows", lambda self, parts, rows=rows, n=n_rows: rows(self, parts, n_rows=n)
        )
        with BagParts(table, everything(table), rows_per_part=rows_per_part) as parts:
            assert bool(parts.oversized) == (rows_per_part == 4)
            [result] = train_stream(
                trials, parts, groups=["all"], model="linear", settings=settings
            )
        monkeypatch.undo()
        weights.append(torch.cat([p.flatten() for p in result.model.parameters()]).detach())
    torch.testing.assert_close(*weights, rtol=1e-4, atol=1e-5)


def test_the_exactness_check_sees_truncated_bags(table, monkeypatch):
    """With a part of the rows left out, the step is another one."""
    trials = [Trial(seed=3, learning_rate=0.1)]
    with BagParts(table, everything(table), rows_per_part=4) as parts:
        settings = Settings(max_epochs=1)
        stream = _Stream(trials, parts, ["all"], "linear", settings)
        whole, _ = stream._all_logits(parts.parts["all"][0])
        rows = parts.rows
        monkeypatch.setattr(parts, "rows", lambda p, **options: list(rows(p, n_rows=9))[:3])
        with pytest.raises(ValueError, match="changed during reading"):
            stream._large_step(parts.parts["all"][0])
    assert whole.shape[1] == sum(SIZES)


def test_several_rules_learn_from_a_stream(rng):
    rows, labels = make_table(rng, n_bags=200)
    table = scan_table(rows, ROLES)
    trials = [Trial(RULES[name](), 0.01) for name in ("debiased_square", "proportion_log")]
    settings = Settings(max_epochs=15)
    with BagParts(table, everything(table), rows_per_part=300) as parts:
        results = train_stream(trials, parts, groups=["all"], settings=settings)
    X = torch.from_numpy(table.encoder.transform(rows))
    for result in results:
        assert result.history["loss"].shape == (15,)
        with torch.no_grad():
            predicted = result.model(X).squeeze(-1).numpy() > 0
        assert (predicted == labels).mean() > 0.9
