"""What is measured after each epoch."""

import numpy as np
import pytest
import torch
from torch import nn

from unbag.bags import make_bags
from unbag.errors import BagDataError
from unbag.evaluation import estimate_risk
from unbag.training import Trial
from unbag_paper.compiled import EngineSettings, train
from unbag_paper.compiled.monitors import Monitor, held_out_risk


@pytest.mark.parametrize("criterion", ["zero_one", "square"])
@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
def test_held_out_risk_is_the_risk_that_evaluation_states(rng, task, criterion):
    if task == "multiclass":
        labels = np.eye(5)[rng.integers(0, 5, 400)]
    else:
        labels = rng.integers(0, 2, 400 if task == "binary" else (400, 5)).astype(float)
    bags = make_bags(np.zeros((400, 1)), labels, bag_size=10, seed=0)
    logits = torch.from_numpy(2 * labels + rng.normal(size=labels.shape))
    scores = logits.softmax(dim=-1) if task == "multiclass" else logits.sigmoid()
    wanted = estimate_risk(scores.numpy(), bags, loss=criterion, weights="size").value
    by_bag = logits[bags.rows].reshape(1, 400, -1)
    found = held_out_risk(bags, criterion=criterion).measure(by_bag)
    assert found.item() == pytest.approx(wanted, rel=1e-5)


def test_a_monitor_travels_to_another_machine():
    cloudpickle = pytest.importorskip("cloudpickle")
    bags = make_bags(np.zeros((40, 1)), np.arange(40) % 2, bag_size=10, seed=0)
    used, logits = held_out_risk(bags), torch.zeros(1, 40, 1)
    sent = cloudpickle.loads(cloudpickle.dumps(used))
    assert sent.measure(logits) == used.measure(logits)


class Counted(nn.Linear):
    """Notes how many instances it is evaluated on."""

    def __init__(self, input_shape, n_outputs):
        super().__init__(*input_shape, n_outputs)
        self.seen = []

    def forward(self, x):
        if not self.training:
            self.seen.append(len(x))
        return super().forward(x)


def test_monitors_of_one_array_share_its_logits(rng):
    X, other = rng.normal(size=(2, 40, 3))
    bags = make_bags(X, X[:, 0] > 0, bag_size=5, seed=0)
    monitors = [
        Monitor(f"on {i}", x, lambda z: z.mean((1, 2))) for i, x in enumerate([X, other, X])
    ]
    settings = EngineSettings(max_epochs=1)
    [result] = train([Trial()], bags, model=Counted, monitors=monitors, settings=settings)
    assert result.model.seen == [40, 40]
    assert result.history["on 0"] == result.history["on 2"] != result.history["on 1"]


def test_monitors_that_cannot_be_told_apart_or_measured_are_refused(rng):
    bags = make_bags(rng.normal(size=(40, 3)), np.arange(40) % 2, bag_size=5, seed=0)
    monitor, settings = held_out_risk(bags), EngineSettings(max_epochs=1)
    with pytest.raises(ValueError, match="distinct names"):
        train([Trial()], bags, monitors=[monitor, monitor], settings=settings)
    with pytest.raises(ValueError, match="criterion must be 'zero_one' or 'square', got 'log'"):
        held_out_risk(bags, criterion="log")
    with pytest.raises(BagDataError, match="at least 2 bags, got 1"):
        held_out_risk(bags.take([0]))
