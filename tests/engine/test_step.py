"""Which steps are captured for a GPU."""

import pytest
import torch

from unbag.engine.batches import Batch
from unbag.engine.step import GraphedStep


class Watched(GraphedStep):
    """Notes what it would capture, where there is no GPU."""

    def __init__(self, step):
        super().__init__(step)
        self.captured = []

    def _capture(self, batch):
        self.captured.append(batch.sizes)


@pytest.mark.parametrize(
    ("sizes", "captured"), [(3, True), (torch.tensor([1, 5]), False)], ids=["equal", "unequal"]
)
def test_only_steps_on_equal_bags_are_captured(sizes, captured):
    """Unequal sizes are read back to the host, which must not happen in a capture."""
    seen = []
    step = Watched(seen.append)
    batch = Batch(torch.arange(6)[None], torch.zeros(1, 2), None, sizes)
    for _ in range(4):
        step(batch)
    assert seen == [batch] * 4
    assert bool(step.captured) == captured
