"""A grid that trains in a second."""

from dataclasses import replace

from unbag_paper.data import load_problem
from unbag_paper.runs.grid import Grid, RuleEntry, Teacher


def small_grid(**changes):
    grid = Grid(
        name="mnist",
        title="Small",
        datasets=("digits",),
        models=("linear",),
        bag_sizes=(10,),
        rules=(
            RuleEntry("PM.Sq", "proportion_square", published=True),
            RuleEntry("pairwise", "debiased_square", {"debias": "pairwise"}),
        ),
        learning_rates=(0.01, 0.001),
        seeds=(0, 1, 2),
        epochs=2,
        instances_per_batch=100,
        stacks={"cpu": {"linear": 10}},
    )
    return replace(grid, **changes)


def taught_rule():
    """A column whose trials are taught by a net with a hidden layer."""
    pairwise = RuleEntry("pairwise", "debiased_square", {"debias": "pairwise"})
    return RuleEntry("distilled", "proportion_square", teacher=Teacher("mlp100", pairwise, 0.01))


def small_data():
    """Digits, but a round number of them: bags of one size stack."""
    data = load_problem("digits")
    return {"digits": replace(data, X_train=data.X_train[:1200], y_train=data.y_train[:1200])}
