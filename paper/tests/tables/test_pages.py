"""Tables and figures say what the rows say, and never train."""

import csv
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from io import StringIO

import numpy as np
import pytest
from paper.tests.support.handmade import row, rows_of
from paper.tests.support.small_grid import small_grid

from unbag_paper.errors import StoreWarning
from unbag_paper.runs.grid import load_grids
from unbag_paper.tables.error_tables import page, to_csv
from unbag_paper.tables.figures import draw_figure, write_figures
from unbag_paper.tables.pages import short_table, write_pages
from unbag_paper.tables.published import reason_for
from unbag_paper.tables.rendering import FORMATS, Table, Text, render
from unbag_paper.tables.summary import summarize


@pytest.fixture(autouse=True)
def nothing_trains(monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("a table must not train")

    monkeypatch.setattr("unbag.training.loop.train", refuse)
    monkeypatch.setattr("unbag_paper.runs.trainer.train", refuse)


def table_grid():
    [grid] = load_grids("mnist")
    return grid.restrict(models=["linear", "mlp100"], bag_sizes=[100], n_seeds=3)


def made_rows(grid, *, error=0.11, n_epochs=4):
    """Rows in which the label-free choice is the last epoch and the paper's the third."""
    rng = np.random.default_rng(0)
    rows = []
    for number, cell in enumerate(grid.cells()):
        curves = {
            (rate, seed): error
            + 0.01 * number
            + np.array([0.2, 0.1, 0.0, 0.02])[:n_epochs]
            + 0.001 * rng.normal()
            for rate in cell.learning_rates
            for seed in cell.seeds
        }
        risks = {key: np.linspace(0.5, 0.4, n_epochs) for key in curves}
        rows += rows_of(cell, curves, risks=risks)
    return rows


@pytest.fixture(scope="module")
def grid():
    return table_grid()


@pytest.fixture(scope="module")
def rows(grid):
    return made_rows(grid)


def test_the_csv_holds_every_number(grid, rows):
    found = list(csv.DictReader(StringIO(to_csv(summarize(grid, rows)))))
    assert len(found) == 18
    first = found[0]
    assert (first["model"], first["rule"], first["epoch"]) == ("linear", "EZ.Log", "3")
    assert float(first["best"]) == pytest.approx(11, abs=0.3)
    assert float(first["last"]) - float(first["best"]) == pytest.approx(2, abs=0.01)
    assert float(first["published"]) == 14.2
    assert float(first["regret"]) == pytest.approx(2, abs=0.3)
    assert float(first["free"]) - float(first["free_whole"]) == pytest.approx(1, abs=1e-3)


def test_the_main_table_shows_ours_and_the_paper_s(grid, rows):
    text = short_table(grid, rows)
    lines = [line for line in text.splitlines() if line.startswith("| 100")]
    assert len(lines) == 2
    assert "(14.2)" in lines[0] and "(3.84)" in lines[1]
    assert lines[0].count("**") == 2
    assert lines[0].split("|")[3].strip().startswith("**10.9")


def test_the_page_counts_what_is_close(grid, rows):
    [text, *_] = page(grid, summarize(grid, rows))
    assert "18 of 18 cells" in text
    # Errors from 11 up in steps of one, against 14.2, 12.9, 11.8, 11.8, 11.8, 8.72 and so on.
    assert "2 of 10 cells" in text


def test_of_two_nets_for_one_of_the_paper_s_the_later_is_judged():
    [grid] = load_grids("mnist_exact")
    models = ["cnn_small", "cnn_small_plain"]
    grid = grid.restrict(models=models, bag_sizes=[10], rules=["PM.Sq", "pairwise"], n_seeds=2)
    cells = summarize(grid, made_rows(grid, error=0.01))
    assert [round(c.best.mean) for c in cells] == [1, 2, 3, 4]
    text = render("T", page(grid, cells), format="md")
    assert "0 of 1 cells that the paper has" in text  # 3 % against 1.08, where 1 % is close
    assert "| 10 | CNN small | 1.02 | 0.9" in text  # the least of both, in one row


def test_a_cell_that_was_begun_does_not_displace_one_that_was_finished():
    [grid] = load_grids("mnist_exact")
    models = ["cnn_small", "cnn_small_plain"]
    grid = grid.restrict(models=models, bag_sizes=[10], rules=["PM.Sq"], n_seeds=2)
    finished, begun = grid.cells()
    rows = rows_of(finished, {(0.001, seed): np.full(4, 0.011) for seed in range(2)})
    rows += rows_of(begun, {(0.001, 0): np.full(4, 0.005)})
    text = render("T", page(grid, summarize(grid, rows)), format="md")
    assert "1 of 1 cells that the paper has" in text  # 1.1 against 1.08, where 0.5 is far
    assert "| 10 | CNN small | 1.02 | 1.10 " in text


def test_a_cell_of_fewer_seeds_says_so_and_is_not_the_row_s_best(grid):
    cells = [cell for cell in grid.cells() if cell.rule.label in ("PM.Sq", "pairwise", "count")]
    rows = []
    for cell, n_seeds, error in zip(cells[:3], (3, 3, 1), (0.12, 0.11, 0.10), strict=True):
        rows += rows_of(cell, {(0.001, seed): np.full(4, error) for seed in range(n_seeds)})
    [line] = [line for line in short_table(grid, rows).splitlines() if line.startswith("| 100 ")]
    filled = [cell.strip() for cell in line.split("|")[3:-1] if cell.strip()]
    assert filled == ["12.0 ± 0 (11.8)", "**11.0 ± 0**", "10.0, 1 seed"]
    text = render("T", page(grid, summarize(grid, rows)), format="md")
    assert text.count("10.0, 1 seed") == 3 and text.count("11.0, 1 seed") == 1
    assert "3 seeds where a cell names no other number" in text
    assert "| 100 | Linear | 11.8 | 11.0 ± 0 | 3 | pairwise | yes |" in text


def test_a_cell_far_from_the_paper_gets_its_reason(grid, rows, monkeypatch):
    cells = summarize(grid, rows)
    declared = {"reasons": [{"dataset": "mnist", "rules": ["DSQ"], "text": "a dry spell"}]}
    monkeypatch.setattr("unbag_paper.tables.published._declared", lambda name: declared)
    assert reason_for("mnist", 100, "linear", "DSQ") == "a dry spell"
    assert reason_for("mnist", 100, "linear", "PM.Sq") == ""
    assert reason_for("cifar", 100, "linear", "DSQ") == ""
    assert reason_for("mnist", 100, "linear", "DSQ", conditions="exact") == ""
    text = render("T", page(grid, cells), format="md")
    assert "no: a dry spell" in text and "no: not explained yet" in text


@pytest.fixture
def both_conditions():
    """PM.Sq and pairwise on a net, under our conditions and under the paper's."""
    grids = [grid for name in ("mnist_exact", "mnist") for grid in load_grids(name)]
    chosen = {"models": ["cnn_small"], "bag_sizes": [10], "rules": ["PM.Sq", "pairwise"]}
    return [grid.restrict(**chosen, n_seeds=2) for grid in grids]


def test_one_page_judges_all_tables_under_the_paper_s_conditions_first(both_conditions, tmp_path):
    exact, ours = both_conditions
    rows = [*made_rows(ours, error=0.0095), *made_rows(exact, error=0.05)]
    paths = write_pages(both_conditions, rows, tmp_path)
    texts = {path.name: path.read_text() for path in paths}
    assert {"paper.md", "paper.tex", "paper.html"} <= set(texts)
    page = texts["paper.md"]
    # 5 % under the paper's conditions is judged, though 0.95 % under ours is close to its 1.08.
    assert "0 of 1 published numbers" in page
    assert re.search(r"CNN small \| PM.Sq \| 1.08 \| (4.9|5.0).* \| the paper's \|", page)
    # The best published one is DSQ's 1.02, which was not run here; ours is the better of both.
    assert "In 1 of 1 rows" in page
    assert re.search(r"CNN small \| 1.02 \| 0.[89]\d+ ± .* \| 2 \| PM.Sq \| ours \| yes", page)


def test_the_page_of_all_tables_says_where_the_paper_is_better(both_conditions, tmp_path):
    rows = [row for grid in both_conditions for row in made_rows(grid, error=0.0135)]
    page = write_pages(both_conditions, rows, tmp_path)
    text = next(path for path in page if path.name == "paper.md").read_text()
    assert "1 of 1 published numbers" in text and "In 0 of 1 rows" in text and "| **no** |" in text


def test_one_table_has_no_page_of_all(grid, rows, tmp_path):
    assert not [path for path in write_pages([grid], rows, tmp_path) if path.stem == "paper"]


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.n_cells = [], 0

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "html"):
            self.open.append(tag)
        self.n_cells += tag == "td"

    def handle_endtag(self, tag):
        if tag != "html":
            assert self.open.pop() == tag


def test_every_format_is_well_formed(grid, rows):
    parts = page(grid, summarize(grid, rows))
    html = Tags()
    html.feed(render("T", parts, format="html"))
    assert html.open == [] and html.n_cells > 100
    tex = render("T", parts, format="tex")
    assert tex.count(r"\begin{table}") == tex.count(r"\end{table}") == 6
    assert "15 %" not in tex.replace(r"15 \%", "")
    markdown = render("T", parts, format="md")
    widths = {line.count("|") for line in markdown.splitlines() if line.startswith("| 100")}
    assert widths == {13, 9, 8}


def test_sentences_are_broken_into_lines_in_latex():
    table = Table("c", ("k", "net", "error", "why"), ((*map(Text, "123"), Text("word " * 20)),))
    assert r"\begin{tabular}{llcp{7cm}}" in render("T", [table], format="tex")


@pytest.mark.parametrize("format", FORMATS)
def test_text_is_escaped(format):
    table = Table("a & b_c", ("k", "x"), ((Text("1"), Text("<i>", bold=True)),))
    text = render("T", [table], format=format)
    assert ("<i>" in text) == (format != "html")
    assert (r"a \& b\_c" in text) == (format == "tex")


def test_pages_are_written_for_what_has_rows(grid, rows, tmp_path):
    paths = write_pages([grid, *load_grids("figure1"), *load_grids("figure3")], rows, tmp_path)
    assert {path.name for path in paths} == {"mnist.md", "mnist.tex", "mnist.html", "mnist.csv"}


def test_figure_1_has_a_panel_for_each_data_set_and_a_line_for_each_rule():
    grids = [g.restrict(n_seeds=3) for g in load_grids("figure1")]
    rows = [r for grid in grids for r in made_rows(grid)]
    figure = draw_figure("figure1", grids, rows)
    assert [len(ax.lines) for ax in figure.axes] == [7, 7]
    line = figure.axes[0].lines[0]
    assert line.get_ydata()[2] == pytest.approx(11, abs=0.3)


def test_a_panel_names_its_net_and_its_bags():
    grids = [g.restrict(n_seeds=1) for g in load_grids("figure1")]
    figure = draw_figure("figure1", grids, [r for grid in grids for r in made_rows(grid)])
    titles = [ax.get_title() for ax in figure.axes]
    assert "padded; bags drawn for each seed" in titles[0]
    assert "no dropout; the paper's bags" in titles[1]


def test_a_figure_does_not_mix_rows_of_different_data():
    [grid] = load_grids("figure3")
    cell = next(grid.cells())
    rows = [
        row(cell.trial(0.1, seed, data), errors=[e])
        for seed, data, e in [(0, "old", 0.5), (1, "new", 0.1)]
    ]
    with pytest.warns(StoreWarning, match="1 rows were left out"):
        figure = draw_figure("figure3", [grid], rows)
    [line] = figure.axes[0].lines
    assert line.get_ydata() == [10]


def test_figure_3_starts_at_the_first_epoch():
    grids = [g.restrict(n_seeds=2) for g in load_grids("figure3")]
    rows = [r for grid in grids for r in made_rows(grid)]
    figure = draw_figure("figure3", grids, rows)
    assert [len(ax.lines) for ax in figure.axes] == [5, 5]
    assert figure.axes[0].lines[0].get_xdata()[0] == 1


def figure_2_rows():
    rng = np.random.default_rng(0)
    [grid] = load_grids("figure2")
    rows = []
    for cell in grid.cells():
        made = row(cell.trial(cell.learning_rates[0], 0, "0f"))
        label = cell.rule.label
        made.arrays["true_square"] = np.linspace(0.2, 0.1, 3)
        made.arrays[f"estimate {label}"] = np.linspace(0.3, 0.1, 3)
        made.arrays["bag truth"] = rng.random(100)
        made.arrays[f"bag {label}"] = rng.normal(size=100)
        rows.append(made)
    return [grid], rows


def test_figure_2_tracks_losses_and_draws_three_histograms():
    figure = draw_figure("figure2", *figure_2_rows())
    assert len(figure.axes) == 4
    assert len(figure.axes[0].lines) == 6
    heights = [patch.get_height() for patch in figure.axes[1].patches]
    assert sum(heights) == 200  # every bag once in truth and once in estimate


def test_a_figure_is_written_twice_and_the_same_each_time(tmp_path):
    grids, rows = figure_2_rows()
    once = write_figures("figure2", grids, rows, tmp_path / "a")
    again = write_figures("figure2", grids, rows, tmp_path / "b")
    assert [path.name for path in once] == ["figure2.png", "figure2.svg"]
    assert once[0].read_bytes().startswith(b"\x89PNG")
    ElementTree.fromstring(once[1].read_text())
    assert once[1].read_bytes() == again[1].read_bytes()


def test_without_rows_nothing_is_drawn(tmp_path):
    assert write_pages([small_grid(), *load_grids("figure2")], [], tmp_path / "out") == []
    assert not (tmp_path / "out").exists()
