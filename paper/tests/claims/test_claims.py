"""The experiments: the tools they stand on, and that a wrong claim is reported as failed."""

import json

import numpy as np
import pytest

from unbag.errors import ConditionError
from unbag_paper.claims import EXPERIMENTS, claims_markdown, reproduce_theory
from unbag_paper.claims.estimation import threshold_excess
from unbag_paper.claims.proportion_matching import proportion_failure
from unbag_paper.claims.results import Claim
from unbag_paper.claims.run import load_options
from unbag_paper.claims.simulation import learned_excess, tied_mask
from unbag_paper.claims.statistics import Slope, fit_power, half_point
from unbag_paper.exact import EPRM, EasyLLP, minimise_finite, minimise_thresholds
from unbag_paper.theory import crossed_problem


def test_slopes_cover_the_truth_and_reject_another():
    rng = np.random.default_rng(0)
    x = np.geomspace(10, 1000, 8)
    hits = 0
    for _ in range(200):
        noise = 0.05 / x
        slope = fit_power(x, 1 / x + noise * rng.normal(size=8), noise)
        hits += slope.near(-1, curvature=0)
        assert not slope.near(-0.5, curvature=0.05)
    assert hits > 190


def test_near_needs_the_right_target():
    assert not Slope(-1.0, 0.01).near(-0.5, curvature=0.1)


def test_half_point_of_a_chance_that_never_rises_is_nan():
    assert np.isnan(half_point([1, 2], [0.0, 0.1]))
    assert half_point([3, 4], [0.9, 1.0]) == 3


def test_vectorised_learning_agrees_with_the_exact_minimiser():
    problem, rng = crossed_problem(), np.random.default_rng(3)
    drawn = problem.sample(6, 4, generator=rng)
    found = minimise_finite(
        problem.hypotheses[:, drawn.points.ravel()], drawn.proportions, sizes=[4] * 6, rule=EPRM()
    )
    assert tied_mask(found.values[None])[0].nonzero()[0].tolist() == found.indices.tolist()


def test_worst_ties_are_worse_than_random_ones():
    options = {"n_trials": 50, "n_bags": 1, "bag_size": 7}
    mean, worst = (
        learned_excess(
            crossed_problem(),
            {"eprm": EPRM()},
            generator=np.random.default_rng(0),
            ties=ties,
            **options,
        )["eprm"]
        for ties in ("mean", "worst")
    )
    assert (worst >= mean).all()
    assert worst.mean() > mean.mean()


def test_the_vectorised_threshold_sweep_is_the_exact_minimiser():
    n_trials, n_bags = 20, 15
    fast = threshold_excess(n_trials, n_bags, bag_size=2, generator=np.random.default_rng(5))
    x = np.random.default_rng(5).random((n_trials, n_bags, 2))
    for trial in range(n_trials):
        found = minimise_thresholds(
            x[trial].ravel(),
            (x[trial] >= 0.5).mean(axis=1),
            sizes=[2] * n_bags,
            rule=EasyLLP(prior=0.5),
        )
        places = np.clip(found.thresholds, 0, 1)
        lower, upper = np.clip(found.lower, 0, 1), np.clip(found.upper, 0, 1)
        middles = (lower + upper) / 2
        assert len(places) == len(middles)
        assert np.isclose(np.abs(middles - 0.5), fast[trial]).any()


def test_both_grids_declare_every_experiment_with_the_same_keys():
    quick, full = load_options(quick=True), load_options()
    assert list(quick) == list(full)
    assert set(quick) == set(EXPERIMENTS)
    assert all(set(quick[name]) == set(full[name]) for name in quick)
    assert load_options(quick=True, seed=9)["facts"]["seed"] == 9


def test_a_false_claim_fails():
    """With two bags a trial little can be learned, and the table must say so."""
    grid = load_options(quick=True)["proportion_failure"] | {"n_bags": 2, "n_trials": 200}
    outcome = proportion_failure(grid, lambda: None)
    assert not all(claim.passed for claim in outcome.claims)
    assert "FAIL" in claims_markdown(outcome.claims)


def test_a_refuted_claim_is_reported_as_failed_and_surprises_only_when_it_passes():
    assert Claim("c", "w", "1", "2", False, refuted=True).verdict == "FAIL as stated"
    assert Claim("c", "w", "1", "2", False, refuted=True).expected_outcome
    assert not Claim("c", "w", "1", "2", True, refuted=True).expected_outcome
    assert not Claim("c", "w", "1", "2", False).expected_outcome


def test_notes_are_numbered_below_the_table():
    text = claims_markdown([Claim("a|b", "x", "1", "1", True, note="mind this")])
    assert "pass (1)" in text
    assert "1. mind this" in text
    assert "a\\|b" in text


def test_reproduce_writes_table_rows_and_figures(tmp_path):
    claims = reproduce_theory(tmp_path, quick=True, only=["facts", "eprm_blindness"])
    assert all(claim.passed for claim in claims)
    record = json.loads((tmp_path / "claims.json").read_text())
    assert len(record["claims"]) == len(claims)
    for name in ("facts", "eprm_blindness"):
        for ending in ("csv", "png", "svg"):
            assert (tmp_path / f"{name}.{ending}").stat().st_size > 0


def test_the_same_seed_gives_the_same_files(tmp_path):
    for folder in ("one", "two"):
        reproduce_theory(tmp_path / folder, quick=True, only=["eprm_blindness"])
    for ending in ("csv", "svg"):
        first, second = (
            (tmp_path / folder / f"eprm_blindness.{ending}").read_bytes()
            for folder in ("one", "two")
        )
        assert first == second


def test_the_table_keeps_experiments_of_the_same_seed_only(tmp_path):
    first = reproduce_theory(tmp_path, quick=True, only=["eprm_blindness"])
    second = reproduce_theory(tmp_path, quick=True, only=["facts"])
    assert len((tmp_path / "claims.md").read_text().split("\n\n")[0].splitlines()) == 2 + len(
        first + second
    )
    third = reproduce_theory(tmp_path, quick=True, only=["eprm_blindness"], seed=5)
    assert len(json.loads((tmp_path / "claims.json").read_text())["claims"]) == len(third)


def test_an_unknown_experiment_is_named(tmp_path):
    with pytest.raises(ConditionError, match="alchemy"):
        reproduce_theory(tmp_path, only=["alchemy"])


@pytest.mark.slow
def test_every_quick_claim_holds(tmp_path):
    claims = reproduce_theory(tmp_path, quick=True)
    assert [claim.claim for claim in claims if not claim.expected_outcome] == []


@pytest.mark.parametrize("bag_size", [2, 10, 100])
def test_the_loss_of_appendix_c_is_2k_lipschitz_and_not_less(bag_size):
    means = np.linspace(0, 1, 2001)
    losses = bag_size * (means[:, None] - np.array([0.0, 0.3, 1.0])) ** 2
    steepest = np.abs(np.diff(losses, axis=0)).max() / (means[1] - means[0])
    # The steepest chord of the parabola falls short of its end's slope by k times one step.
    assert 2 * bag_size - 1.01 * bag_size / 2000 <= steepest <= 2 * bag_size
    assert steepest > bag_size  # what the paper states
