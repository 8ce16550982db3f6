"""The table of one recipe: thirty rows, no error is looked at when a cell is taken."""

import numpy as np
from paper.tests.support.handmade import rows_of

from unbag_paper.runs.grid import load_grids
from unbag_paper.tables.one_recipe import one_recipe, recipe_rows
from unbag_paper.tables.summary import summarize


def summaries(table, label, *, error, n_seeds):
    """Cells of the linear net at bags of 10; the least risk is at the last of two epochs."""
    [grid] = load_grids(table)
    part = grid.restrict(models=["linear"], bag_sizes=[10], rules=[label])
    [cell] = part.cells()
    curves = {(0.01, seed): np.array([0.0, error]) for seed in range(n_seeds)}
    risks = {key: np.array([0.5, 0.4]) for key in curves}
    return summarize(part, rows_of(cell, curves, risks=risks))


def linear_row(cells):
    [found] = [row for row in recipe_rows(cells) if row[:3] == ("mnist", 10, "linear")]
    return found[3]


def test_most_seeds_count_and_not_the_least_error():
    few = summaries("mnist_exact", "distilled", error=0.05, n_seeds=2)
    many = summaries("mnist", "distilled", error=0.2, n_seeds=5)
    for cells in ([*few, *many], [*many, *few]):
        assert linear_row(cells).free_whole.mean == 20.0


def test_other_columns_are_not_taken():
    assert linear_row(summaries("mnist", "pairwise", error=0.01, n_seeds=5)) is None


def test_the_count_is_over_all_rows_and_misses_are_shown():
    good = summaries("mnist", "distilled", error=0.09, n_seeds=3)
    text, table = one_recipe(good)
    assert "One recipe: 1 of 30" in text and "29 were not run" in text
    assert table.rows[0][-1].text == "yes" and table.rows[1][4].text == "not run"
    bad = one_recipe(summaries("mnist", "distilled", error=0.1, n_seeds=3))
    assert "One recipe: 0 of 30" in bad[0] and bad[1].rows[0][-1].text == "no"
