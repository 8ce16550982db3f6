"""Declared grids say what the paper's experiments are, and can be cut down."""

import hashlib
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest
from paper.tests.support.handmade import spec
from paper.tests.support.small_grid import small_grid

from unbag_paper.nets import NETS
from unbag_paper.runs.grid import GRIDS, RuleEntry, load_grids
from unbag_paper.runs.rows import read_rows
from unbag_paper.runs.trial_spec import TrialSpec
from unbag_paper.tables.published import published_error


@pytest.mark.parametrize("name", GRIDS)
def test_every_grid_loads_and_names_real_rules(name):
    for grid in load_grids(name):
        for cell in grid.cells():
            assert cell.model in NETS
            if cell.rule.name != "ridge":
                cell.spec.make_rule()


@pytest.mark.parametrize("name", ["mnist", "cifar"])
def test_a_table_holds_the_paper_s_75_cells_and_ours(name):
    [grid] = load_grids(name)
    cells = list(grid.cells())
    published = [
        published_error(c.dataset, c.bag_size, c.model, c.rule.label)
        for c in cells
        if c.rule.published
    ]
    assert len(published) == 75
    assert None not in published
    assert len(cells) == 5 * 3 * 7 + 3 * 3 + 3 + 3 + 4 * 3
    assert (len(grid.learning_rates), len(grid.seeds), grid.epochs) == (5, 10, 100)


@pytest.mark.parametrize(("name", "n_bags"), [("mnist", 4), ("cifar", 5)])
def test_pairs_get_several_bags_of_1000_and_the_others_the_paper_s_batches(name, n_bags):
    [grid] = load_grids(name)
    found = {(c.rule.label, c.bag_size): c.spec.bags_per_batch for c in grid.cells()}
    assert found["pairwise", 1000] == n_bags
    assert [found["DSQ", size] for size in (10, 100, 1000)] == [100, 10, 1]
    assert [found["pairwise", size] for size in (10, 100)] == [100, 10]


@pytest.mark.parametrize("name", ["mnist_exact", "cifar_exact"])
def test_the_paper_s_offset_is_judged_and_the_rule_without_it_stays_beside(name):
    [grid] = load_grids(name)
    first, second = grid.rules[:2]
    assert (first.label, first.options, first.published) == ("EZ.Log", {"offset": 1e-8}, True)
    assert (second.label, second.options, second.published) == ("EZ.Log (no offset)", {}, False)
    assert [rule.label for rule in grid.rules[2:4]] == ["EZ.Sq", "PM.Log"]
    assert grid.restrict(rules=["EZ.Log"]).rules == (first,)


def test_figure_1_is_drawn_from_trials_of_the_tables():
    names = ("mnist", "cifar_exact")
    tables = {c.spec for name in names for g in load_grids(name) for c in g.cells()}
    figure = {c.spec for g in load_grids("figure1") for c in g.cells()}
    assert figure < tables


def test_restricting_keeps_the_declared_order():
    [grid] = load_grids("mnist")
    part = grid.restrict(
        models=["mlp100", "linear"], rules=["pairwise", "dsq"], bag_sizes=[100], n_seeds=2, epochs=3
    )
    assert part.models == ("linear", "mlp100")
    assert [rule.label for rule in part.rules] == ["DSQ", "pairwise"]
    assert (part.seeds, part.epochs) == ((0, 1), 3)


def test_a_registered_name_chooses_all_its_variants():
    [grid] = load_grids("mnist")
    assert len(grid.restrict(rules=["debiased_square"]).rules) == 3


@pytest.mark.parametrize("wrong", [{"models": ["vgg"]}, {"rules": ["sgd"]}, {"bag_sizes": [7]}])
def test_unknown_parts_are_refused_with_the_known_ones(wrong):
    [grid] = load_grids("mnist")
    with pytest.raises(ValueError, match="must be among"):
        grid.restrict(**wrong)


def test_a_wrong_declaration_is_refused():
    with pytest.raises(ValueError, match="name must be"):
        RuleEntry("x", "no_such_rule")
    with pytest.raises(ValueError, match="models must be"):
        small_grid(models=("vgg",))
    with pytest.raises(ValueError, match="figure1"):
        load_grids("table3")


OTHER_VALUES = {str: "other", int: 77, float: 0.5, bool: True}


@pytest.mark.parametrize("name", [field.name for field in fields(TrialSpec)])
def test_the_key_depends_on_every_field(name):
    value = getattr(spec(), name)
    changed = replace(spec(), **{name: OTHER_VALUES[type(value)]})
    assert changed.key != spec().key
    assert TrialSpec.from_json(changed.to_json()) == changed


def test_what_was_added_later_leaves_old_keys_alone():
    assert not {"redraw", "schedule", "teacher"} & json.loads(spec().to_json()).keys()
    assert spec().key == "0d53583e7357adb1f2d44f578017eedb"


def test_committed_rows_are_found_under_their_keys():
    rows = read_rows(Path(__file__).parents[2] / "results" / "rows")
    committed = {row.spec.key for row in rows if row.outcome["finished"] < "2026-11-17"}
    assert len(committed) == 9361
    digest = hashlib.sha256("".join(sorted(committed)).encode()).hexdigest()
    assert digest[:16] == "52a26651738d15e7"
