"""Choices made by hand-written curves come out as they must."""

from dataclasses import replace

import numpy as np
import pytest
from paper.tests.support.handmade import rows_of
from paper.tests.support.small_grid import small_grid

from unbag_paper.errors import StoreWarning
from unbag_paper.runs.protocol import count_planned, missing_trials
from unbag_paper.runs.selection import best_by_held_out, best_by_test, index_rows, shared_seeds
from unbag_paper.tables.summary import MeanWithError, summarize

GRID = small_grid()
CELL = next(GRID.cells())


def cell_rows(curves, **options):
    [found] = index_rows(rows_of(CELL, curves, **options)).values()
    return found


def test_the_paper_s_choice_is_the_best_epoch_of_the_mean_curve():
    found = cell_rows(
        {
            (0.01, 0): [0.5, 0.1, 0.5],  # each run has a better epoch, but at different times
            (0.01, 1): [0.1, 0.5, 0.5],
            (0.001, 0): [0.4, 0.3, 0.2],
            (0.001, 1): [0.4, 0.3, 0.2],
        }
    )
    assert best_by_test(found) == (0.001, 2)


def test_a_lucky_pair_of_seeds_is_no_match_for_more():
    found = cell_rows({(0.01, 0): [0.2], (0.01, 1): [0.9], (0.001, 0): [0.3]})
    assert shared_seeds(found) == [0]
    assert best_by_test(found)[0] == 0.01
    found = cell_rows({(0.01, 0): [0.2], (0.01, 1): [0.9], (0.001, 0): [0.3], (0.001, 1): [0.3]})
    assert best_by_test(found)[0] == 0.001


def test_a_diverged_run_is_never_the_best():
    nan = float("nan")
    found = cell_rows({(0.01, 0): [nan, nan], (0.001, 0): [0.5, 0.4]})
    assert best_by_test(found) == (0.001, 1)
    assert best_by_held_out(found)[0] == 0.001


def test_the_label_free_choice_looks_at_held_out_bags_alone():
    errors = {(0.01, 0): [0.1, 0.2], (0.01, 1): [0.1, 0.2], (0.001, 0): [0.3, 0.4]}
    errors |= {(0.001, 1): [0.3, 0.4]}
    risks = {(0.01, 0): [0.9, 0.8], (0.01, 1): [0.9, 0.8]}
    risks |= {(0.001, 0): [0.2, 0.3], (0.001, 1): [0.3, 0.2]}
    rate, epochs = best_by_held_out(cell_rows(errors, risks=risks))
    assert rate == 0.001
    assert epochs.tolist() == [0, 1]


def test_a_summary_by_hand():
    curves = {(0.01, 0): [0.10, 0.12], (0.01, 1): [0.14, 0.20]}
    risks = {(0.01, 0): [0.5, 0.4], (0.01, 1): [0.4, 0.5]}
    [cell] = summarize(GRID, rows_of(CELL, curves, risks=risks))
    assert (cell.learning_rate, cell.epoch, cell.n_seeds) == (0.01, 1, 2)
    assert cell.best == MeanWithError(12.0, 2.0, 2)
    assert cell.last == MeanWithError(16.0, 4.0, 2)
    assert cell.free_whole.mean == pytest.approx(13.0)
    assert cell.free.mean == pytest.approx(14.0)
    assert cell.regret == pytest.approx(1.0)


def test_the_cost_of_choosing_without_labels_is_over_the_seeds_of_both_choices():
    curves = {(0.01, 0): [0.10], (0.01, 1): [0.20], (0.01, 2): [0.90], (0.001, 0): [0.15]}
    curves |= {(0.001, 1): [0.25]}
    risks = {key: [0.5 if key[0] == 0.01 else 0.4] for key in curves}
    [cell] = summarize(GRID, rows_of(CELL, curves, risks=risks))
    assert (cell.learning_rate, cell.free_rate) == (0.01, 0.001)
    assert cell.regret == pytest.approx(5.0)


def test_choices_that_share_no_seed_have_no_cost():
    curves = {(0.01, 0): [0.10], (0.001, 1): [0.15]}
    [cell] = summarize(GRID, rows_of(CELL, curves, risks={(0.01, 0): [0.5], (0.001, 1): [0.4]}))
    assert (cell.learning_rate, cell.free_rate, cell.regret) == (0.01, 0.001, None)


def run_on(data, error, *, seeds=CELL.seeds, **outcome):
    rows = rows_of(CELL, {(0.01, seed): [error] for seed in seeds}, data=data)
    return [replace(row, outcome=row.outcome | outcome) for row in rows]


@pytest.mark.parametrize(
    "rows",
    [
        run_on("old", 0.5) + run_on("new", 0.1, seeds=[1]),
        run_on("new", 0.1, finished="2026-02-01", seeds=[1])  # an older store, merged later
        + run_on("old", 0.5, finished="2026-01-01"),
    ],
)
def test_a_cell_does_not_mix_rows_of_different_data(rows):
    with pytest.warns(StoreWarning, match=r"3 rows were left out.*digits"):
        [summary] = summarize(GRID, rows)
    assert (summary.best.mean, summary.n_seeds) == (10, 1)


def test_every_data_set_has_its_own_latest_state():
    other = [replace(row, spec=replace(row.spec, dataset="other")) for row in run_on("b", 0.2)]
    assert len(index_rows(run_on("a", 0.1) + other)) == 2  # without a warning


def test_the_difference_counts_the_paper_s_own_spread():
    grid = small_grid(datasets=("mnist",), bag_sizes=(100,))
    cell = next(grid.cells())
    rows = rows_of(cell, {(0.01, seed): [0.12 + 0.001 * seed] for seed in range(10)})
    [summary] = summarize(grid, rows)
    assert summary.published == 11.8
    assert summary.difference.mean == pytest.approx(12.45 - 11.8, abs=1e-4)
    assert summary.difference.standard_error == pytest.approx(
        summary.best.standard_error * np.sqrt(2), rel=1e-4
    )


DATA = {"digits": "0f"}


def missing(rows, **options):
    return [
        t for t in missing_trials([GRID], rows, data=DATA, **options) if t.rule == CELL.rule.name
    ]


SEARCH = {(rate, seed): [0.3] for rate in (0.01, 0.001) for seed in (0, 1)}


def test_lean_first_tries_every_rate_on_two_seeds():
    assert {(t.learning_rate, t.seed) for t in missing([])} == set(SEARCH)


def test_with_one_rate_there_is_nothing_to_search():
    grid = small_grid(learning_rates=(0.01,))
    assert len(missing_trials([grid], [], data=DATA)) == 2 * 3


def test_lean_waits_for_the_search_to_end():
    rows = rows_of(CELL, dict(list(SEARCH.items())[:3]))
    assert len(missing(rows)) == 1


def test_lean_then_runs_the_other_seeds_of_the_winner():
    rows = rows_of(CELL, SEARCH | {(0.001, 0): [0.1], (0.001, 1): [0.1]})
    assert [(t.learning_rate, t.seed) for t in missing(rows)] == [(0.001, 2)]


def test_lean_confirms_the_label_free_winner_last_and_only_if_asked():
    curves = SEARCH | {(0.001, 0): [0.1], (0.001, 1): [0.1]}
    risks = {(0.01, 0): [0.0], (0.01, 1): [0.0]}
    rows = rows_of(CELL, curves, risks=risks)
    assert [t.learning_rate for t in missing(rows)] == [0.001, 0.01]
    assert [t.learning_rate for t in missing(rows, label_free=False)] == [0.001]


@pytest.mark.parametrize(("others", "wanted"), [(0.31, []), (0.9, [0.01])])
def test_where_the_winner_disappoints_the_next_is_confirmed(others, wanted):
    winner = {(0.001, seed): [0.1 if seed < 2 else others] for seed in range(10)}
    grid = small_grid(seeds=tuple(range(10)))
    rows = rows_of(CELL, SEARCH | winner)
    found = missing_trials([grid], rows, data=DATA, label_free=False)
    assert sorted({t.learning_rate for t in found if t.rule == CELL.rule.name}) == wanted


def test_paper_runs_everything():
    assert len(missing([], protocol="paper")) == 6
    assert missing(rows_of(CELL, {t: [0.1] for t in SEARCH}), protocol="paper") == [
        CELL.trial(rate, 2, "0f") for rate in (0.01, 0.001)
    ]


def test_rows_of_other_data_do_not_count():
    assert len(missing(rows_of(CELL, SEARCH, data="another"))) == 4


def test_search_of_all_cells_comes_before_any_confirmation():
    rows = rows_of(CELL, SEARCH)
    found = missing_trials([GRID], rows, data=DATA)
    rules = [t.rule for t in found]
    assert rules.index("debiased_square") < rules.index(CELL.rule.name)


@pytest.mark.parametrize(("protocol", "wanted"), [("paper", 12), ("lean", 2 * (4 + 1))])
def test_the_plan_counts_trials(protocol, wanted):
    assert count_planned(GRID, protocol=protocol) == wanted
