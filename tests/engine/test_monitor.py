"""What is measured after each epoch."""

import numpy as np
import pytest
import torch

from unbag.bags import make_bags
from unbag.engine import held_out_risk
from unbag.evaluation import estimate_risk


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
