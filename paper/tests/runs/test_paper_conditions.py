"""The conditions of the paper's own code: one partition for all seeds, larger images."""

from dataclasses import replace

import numpy as np
import pytest
from paper.tests.support.small_grid import small_data, small_grid

from unbag_paper.errors import DatasetError
from unbag_paper.runs import paper_conditions, trainer
from unbag_paper.runs.grid import load_grids
from unbag_paper.runs.paper_conditions import as_the_paper_sees, enlarged, paper_order
from unbag_paper.runs.rows import Store
from unbag_paper.runs.runner import Runner
from unbag_paper.runs.trainer import Trainer
from unbag_paper.tables.published import name_in_paper, published_error

DATA = small_data()


@pytest.fixture
def backwards(monkeypatch):
    """The small data have no order of the paper's: take them from the last to the first."""
    order = lambda name, n_instances: np.arange(n_instances)[::-1]  # noqa: E731
    monkeypatch.setattr(paper_conditions, "paper_order", order)


def specs(n_seeds, **changes):
    grid = small_grid(conditions="exact", seeds=tuple(range(n_seeds)), **changes)
    [data] = DATA.values()
    return [
        cell.trial(rate, seed, data.fingerprint)
        for cell in grid.cells()
        for rate in cell.learning_rates
        for seed in cell.seeds
    ]


@pytest.mark.parametrize(("name", "n_instances"), [("mnist", 60_000), ("cifar", 50_000)])
def test_the_stored_orders_are_permutations_by_a_buffer(name, n_instances):
    order = paper_order(name, n_instances)
    assert sorted(order) == list(range(n_instances))
    # A buffer of 10,000 holds a row back as long as it likes, but cannot bring it forward more.
    assert (order <= np.arange(n_instances) + 9_999).all()
    assert (order > np.arange(n_instances)).any()


def test_data_of_another_size_have_no_order():
    with pytest.raises(DatasetError, match="60000 instances, the data have 10"):
        paper_order("mnist", 10)


def test_images_are_enlarged_between_their_pixels():
    ramp = np.tile(np.arange(28, dtype=np.uint8), (1, 1, 28, 1))
    large = enlarged(ramp) * 255
    assert large.shape == (1, 1, 32, 32)
    expected = np.clip((np.arange(32) + 0.5) * 28 / 32 - 0.5, 0, 27)
    np.testing.assert_allclose(large[0, 0, 5], expected, atol=1e-4)
    already = np.zeros((2, 3, 32, 32), dtype=np.uint8)
    assert enlarged(already) is already


def test_all_seeds_share_bags(backwards):
    first, second = specs(2)[:2]
    assert first.seed != second.seed
    trainer = Trainer(DATA, device="cpu", settings={})
    one, other = trainer._bags(first), trainer._bags(second)
    assert (one.rows == other.rows).all() and (one.proportions == other.proportions).all()
    [data] = DATA.values()
    last = data.y_train[-first.bag_size :].mean()
    assert one.proportions[0] == pytest.approx(last)


@pytest.mark.parametrize(
    ("conditions", "redraw", "shuffled"),
    [("exact", False, False), ("exact", True, True), ("ours", False, True)],
)
def test_batches_keep_the_order_unless_they_are_redrawn(
    backwards, monkeypatch, conditions, redraw, shuffled
):
    seen = []
    monkeypatch.setattr(trainer, "train", lambda *_, settings, **__: seen.append(settings) or [])
    [first, *_] = (replace(s, conditions=conditions, redraw=redraw) for s in specs(1))
    Trainer(DATA, device="cpu", settings={})([first])
    assert [settings.shuffle for settings in seen] == [shuffled]


def test_rows_of_both_conditions_are_told_apart(backwards, tmp_path):
    store = Store(tmp_path / "rows")
    ours = Runner([small_grid()], store, DATA, protocol="paper")
    exactly = Runner([small_grid(conditions="exact")], store, DATA, protocol="paper")
    assert ours.run() == "finished"
    assert len(exactly.missing()) == len(store.rows())
    assert exactly.run() == "finished" and not ours.missing()
    errors = {row.spec.conditions: row.arrays["test_error"] for row in store.rows()}
    assert set(errors) == {"ours", "exact"}
    assert not np.array_equal(errors["ours"], errors["exact"])


def test_batches_of_all_seeds_are_read_once_on_a_cpu(backwards, tmp_path):
    stacks = {"cpu": dict.fromkeys(small_grid().models, 100)}
    store = Store(tmp_path / "rows")
    for conditions, together in (("ours", False), ("exact", True)):
        grid = small_grid(conditions=conditions, stacks=stacks)
        runner = Runner([grid], store, DATA, protocol="paper")
        seeds = [{trial.seed for trial in stack} for stack in runner._stacks(runner.missing())]
        assert any(len(each) > 1 for each in seeds) == together


@pytest.mark.parametrize("name", ["mnist", "cifar"])
def test_the_exact_table_has_the_paper_s_cells(name):
    [grid] = load_grids(f"{name}_exact")
    cells = list(grid.cells())
    assert all(cell.spec.conditions == "exact" for cell in cells)
    published = [c for c in cells if c.rule.published]
    for c in published:
        assert published_error(c.dataset, c.bag_size, c.model, c.rule.label) is not None
    assert len({(c.bag_size, name_in_paper(c.model), c.rule.label) for c in published}) == 75
    taught = [c for c in cells if c.rule.label == "distilled"]
    assert {c.trial(0.1, 3, "0f").taught_by.conditions for c in taught} == {"exact"}


def test_the_problem_is_the_same(backwards):
    [data] = DATA.values()
    seen = as_the_paper_sees(data)
    assert (seen.y_train == data.y_train[::-1]).all() and (seen.y_test == data.y_test).all()
    assert seen.X_train.shape[-2:] == (32, 32)
