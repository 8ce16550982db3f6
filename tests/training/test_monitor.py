"""What is measured after each epoch."""

import numpy as np
import pytest
import torch
from torch import nn

from unbag.bags import make_bags
from unbag.evaluation import estimate_risk
from unbag.training import Monitor, Settings, Trial, held_out_risk, labelled_error, monitor, train


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


def test_what_a_monitor_compares_with_is_moved_to_a_device_once(monkeypatch):
    moves = []
    monkeypatch.setattr(monitor, "_move", lambda batch, device: moves.append(device) or batch)
    bags = make_bags(np.zeros((40, 1)), np.arange(40) % 2, bag_size=10, seed=0)
    measure = held_out_risk(bags).measure
    for _ in range(3):
        measure(torch.zeros(1, 40, 1))
    assert moves == [torch.device("cpu")]


@pytest.mark.parametrize("make", [held_out_risk, lambda bags: labelled_error(bags.X, np.ones(40))])
def test_a_monitor_that_was_used_travels_without_what_a_device_holds(make):
    cloudpickle = pytest.importorskip("cloudpickle")
    bags = make_bags(np.zeros((40, 1)), np.arange(40) % 2, bag_size=10, seed=0)
    used, logits = make(bags), torch.zeros(1, 40, 1)
    value = used.measure(logits)
    sent = cloudpickle.loads(cloudpickle.dumps(used))
    assert [len(kept.moved) for kept in (kept_by(used), kept_by(sent))] == [1, 0]
    assert sent.measure(logits) == value


def kept_by(used):
    [kept] = [
        cell.cell_contents
        for cell in used.measure.__closure__
        if isinstance(cell.cell_contents, monitor._OnceADevice)
    ]
    return kept


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
    settings = Settings(max_epochs=1)
    [result] = train([Trial()], bags, model=Counted, monitors=monitors, settings=settings)
    assert result.model.seen == [40, 40]
    assert result.history["on 0"] == result.history["on 2"] != result.history["on 1"]


def test_labels_may_stand_in_a_column_and_in_no_other_shape(rng):
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    logits = torch.from_numpy(rng.normal(size=(2, 40, 1)))
    flat, column = (labelled_error(X, labels).measure(logits) for labels in (y, y[:, None]))
    torch.testing.assert_close(column, flat, rtol=0, atol=0)
    for wrong in (y[1:], np.eye(2)[y]):
        with pytest.raises(ValueError, match="y must have one label an instance"):
            labelled_error(X, wrong)
