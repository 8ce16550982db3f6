"""What is recorded is what its name says, and what claims to see no label sees none."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from unbag.bags import BagBatch, make_bags
from unbag.rules import DebiasedSquare, EasySquare
from unbag_paper.compiled.monitors import measure_all
from unbag_paper.data import load_problem
from unbag_paper.runs.monitors import error_monitors, held_out_half, labelled_error
from unbag_paper.runs.square_loss_estimates import TestBags, bag_estimates


@pytest.fixture(scope="module")
def data():
    return load_problem("digits")


class OneModel:
    """A learner of one fixed linear model that counts its forward passes."""

    def __init__(self, n_pixels, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.weights = torch.randn(n_pixels, 1, generator=generator)
        self.n_calls = 0

    def logits(self, x, *, shared=False):
        self.n_calls += 1
        return ((x.flatten(1) - 0.3) @ self.weights).unsqueeze(0)


def values(monitors, learner):
    return {name: value.item() for name, value in measure_all(monitors, learner).items()}


def test_errors_against_plain_numpy(data):
    learner = OneModel(64)
    found = values(error_monitors(data, bag_size=10, device="cpu"), learner)
    X = data.X_test.reshape(len(data.X_test), -1) / 255 - 0.3
    wrong = (X @ learner.weights.numpy()[:, 0] > 0) != data.y_test
    second = np.setdiff1d(np.arange(len(wrong)), held_out_half(len(wrong)))
    assert found["test_error"] == pytest.approx(wrong.mean())
    assert found["second_half_error"] == pytest.approx(wrong[second].mean())


def test_all_monitors_share_one_forward_pass(data):
    learner = OneModel(64)
    values(error_monitors(data, bag_size=10, device="cpu"), learner)
    assert learner.n_calls == 1


def test_the_shared_pass_is_not_a_stale_one(data):
    monitors = error_monitors(data, bag_size=10, device="cpu")
    one, two = (values(monitors, OneModel(64, seed)) for seed in (0, 1))
    assert one != two
    assert values(monitors, OneModel(64, 0)) == one


def relabelled(data, rows, seed=0):
    """The same data with the labels of some rows dealt out anew among them."""
    y = data.y_test.copy()
    y[rows] = np.random.default_rng(seed).permutation(y[rows])
    return replace(data, y_test=y)


def test_the_label_free_risk_sees_only_proportions_of_the_first_half(data):
    first = held_out_half(len(data.y_test))
    bags = make_bags(data.X_test[first], data.y_test[first], bag_size=10, seed=0)
    in_one_bag = first[bags.rows[:10]]
    second = np.setdiff1d(np.arange(len(data.y_test)), first)

    def risk(data):
        found = values(error_monitors(data, bag_size=10, device="cpu"), OneModel(64))
        return found["held_out_error"], found["held_out_square"]

    assert risk(relabelled(data, in_one_bag)) == risk(data)
    assert risk(relabelled(data, second)) == risk(data)
    assert risk(relabelled(data, first)) != risk(data)  # the check can fail


def test_the_label_free_risk_is_near_the_error(data):
    """Over cuts into bags it is unbiased, so a mean over many models is near their mean error."""
    monitors = error_monitors(data, bag_size=10, device="cpu")
    found = [values(monitors, OneModel(64, seed)) for seed in range(40)]
    gap = [f["held_out_error"] - (2 * f["test_error"] - f["second_half_error"]) for f in found]
    assert abs(np.mean(gap)) < 0.15  # one cut of 25 bags: sd 0.5 sqrt(2 / 25) = 0.14 for one model


@pytest.mark.parametrize(
    ("name", "rule"), [("EZ.Sq", EasySquare()), ("pairwise", DebiasedSquare())]
)
def test_the_mean_of_the_bag_estimates_is_the_rule_s_loss(name, rule, generator):
    logits = torch.randn(30, 8, generator=generator)
    labels = (torch.rand(30, 8, generator=generator) < 0.4).float()
    proportions = labels.mean(dim=-1)
    prior = proportions.mean()
    batch = BagBatch(proportions, 8, prior=prior)
    found = bag_estimates(logits.sigmoid(), proportions, prior=float(prior))
    torch.testing.assert_close(found[name].mean(), rule(logits.flatten(), batch))


def test_full_batch_dsq_is_the_paper_s(generator):
    logits = torch.randn(30, 8, generator=generator)
    proportions = (torch.rand(30, 8, generator=generator) < 0.4).float().mean(dim=-1)
    batch = BagBatch(proportions, 8)
    found = bag_estimates(logits.sigmoid(), proportions, prior=float(proportions.mean()))
    wanted = DebiasedSquare(debias="batch")(logits.flatten(), batch)
    torch.testing.assert_close(found["DSQ"].mean(), wanted)


def test_estimates_of_a_stack_and_of_a_model_agree(data):
    bags = TestBags(data, bag_size=10, device="cpu")
    learner = OneModel(64)
    found = values(bags.monitors(), learner)

    class Model(torch.nn.Module):
        def forward(self, x):
            return learner.logits(x)[0]

    snapshot = bags.snapshot(Model())
    assert snapshot["bag truth"].shape == (50,)
    assert snapshot["bag truth"].mean() == pytest.approx(found["true_square"], rel=1e-5)
    for name in ("EZ.Sq", "DSQ", "pairwise"):
        assert snapshot[f"bag {name}"].mean() == pytest.approx(
            found[f"estimate {name}"], rel=1e-4, abs=1e-6
        )


def test_labels_may_stand_in_a_column_and_in_no_other_shape(rng):
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    logits = torch.from_numpy(rng.normal(size=(2, 40, 1)))
    flat, column = (labelled_error(X, labels).measure(logits) for labels in (y, y[:, None]))
    torch.testing.assert_close(column, flat, rtol=0, atol=0)
    for wrong in (y[1:], np.eye(2)[y]):
        with pytest.raises(ValueError, match="y must have one label an instance"):
            labelled_error(X, wrong)
