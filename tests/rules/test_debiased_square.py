"""What only the debiased square loss claims."""

import numpy as np
import pytest
import torch
from tests.support import laws

from unbag import BagBatch
from unbag.rules import DebiasedSquare


def noisy_bias_in_standard_errors(subtract_noise, generator, n_draws=20_000):
    """Bias under Gaussian noise in the proportions of unequal bags."""
    sizes = torch.tensor([2, 9, 4, 6])
    logits = torch.randn(n_draws, 21, generator=generator, dtype=torch.double)
    labels = (torch.rand(n_draws, 21, generator=generator) < logits.sigmoid()).double()
    clean = BagBatch(torch.zeros(n_draws, 4, dtype=torch.double), sizes)
    proportions = clean.mean(labels.unsqueeze(-1)).squeeze(-1)
    variance = torch.tensor([0.02, 0.01, 0.03, 0.0], dtype=torch.double)
    noise = torch.randn(n_draws, 4, generator=generator, dtype=torch.double) * variance.sqrt()
    batch = BagBatch(proportions + noise, sizes, variance if subtract_noise else None)
    error = DebiasedSquare()(logits, batch) - (logits.sigmoid() - labels).square().mean(dim=-1)
    return abs(error.mean() / error.std()).item() * n_draws**0.5


def test_known_noise_is_subtracted(generator):
    assert noisy_bias_in_standard_errors(True, generator) < 4


def test_the_noise_check_rejects_noise_left_in(generator):
    assert noisy_bias_in_standard_errors(False, generator) > 4


def test_the_moving_average_is_carried():
    rule = DebiasedSquare(debias="moving", beta=0.9)
    batch = BagBatch(torch.tensor([0.5, 0.0]), 2, prior=torch.tensor(0.25))
    first = torch.tensor([0.0, 0.0, 0.0, 0.0])
    _, state = rule.step(first, batch)
    assert state.item() == pytest.approx(0.5)
    second = torch.full((4,), 1e3)
    loss, state = rule.step(second, batch, state)
    assert state.item() == pytest.approx(0.9 * 0.5 + 0.1 * 1.0)
    # k * mean(r^2) - (k - 1) * (v - p)^2 with r = (1/2, 1), v = .55, p = .25
    assert loss.item() == pytest.approx(2 * (0.25 + 1) / 2 - 0.3**2)


def test_the_gradient_flows_through_the_batch_share_only():
    rule = DebiasedSquare(debias="moving", beta=0.9)
    batch = BagBatch(torch.tensor([0.5, 0.0]), 2, prior=torch.tensor(0.25))
    logits = torch.randn(4, requires_grad=True)
    loss, state = rule.step(logits, batch, torch.tensor([[0.4]]))
    scores = logits.sigmoid()
    moved = 0.9 * 0.4 + 0.1 * scores.mean()
    residuals = scores.view(2, 2).mean(dim=1) - batch.proportions
    wanted = 2 * residuals.square().mean() - (moved - 0.25) ** 2
    torch.testing.assert_close(
        torch.autograd.grad(loss, logits), torch.autograd.grad(wanted, logits)
    )
    assert not state.requires_grad


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
def test_an_average_without_a_past_has_its_own_gradient(task, generator):
    rule = DebiasedSquare(debias="moving", beta=0.0)
    assert not rule.semi_gradient
    logits, _, batch = laws.random_problem(generator, [1, 4, 2, 5], task)
    assert torch.autograd.gradcheck(lambda x: rule(x, batch), logits.requires_grad_())


def test_nan_in_the_state_means_not_started():
    rule = DebiasedSquare(debias="moving")
    batch = BagBatch(torch.tensor([0.5, 0.0]), 2)
    logits = torch.randn(4)
    fresh, _ = rule.step(logits, batch, torch.tensor([[float("nan")]]))
    assert fresh == rule(logits, batch)


@pytest.mark.parametrize("options", [{"debias": "none"}, {"beta": 1.5}])
def test_bad_options_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        DebiasedSquare(**options)


def test_large_unequal_bags_keep_their_digits_in_single_precision():
    """Of scores that are all alike: what rounding leaves of their mean counts k-fold squared."""
    sizes = torch.tensor([20_000, 50_000, 100_000, 200_000])
    proportions = torch.tensor([0.50, 0.55, 0.58, 0.61])
    logits = torch.full((int(sizes.sum()),), 0.3)
    single = DebiasedSquare()(logits, BagBatch(proportions, sizes))
    double = DebiasedSquare()(logits.double(), BagBatch(proportions.double(), sizes))
    assert float(single) == pytest.approx(float(double), rel=1e-3)


def test_a_batch_takes_arrays(generator):
    logits = torch.randn(6, generator=generator)
    shares = np.array([0.5, 0.25], dtype=np.float32)
    for given, same in (([2, 4], torch.tensor([2, 4])), (np.int64(3), 3)):
        expected = DebiasedSquare()(logits, BagBatch(torch.as_tensor(shares), same))
        for proportions in (shares, shares.tolist()):
            found = DebiasedSquare()(logits, BagBatch(proportions, given))
            torch.testing.assert_close(found, expected)


def test_a_batch_says_what_shapes_it_wants():
    with pytest.raises(ValueError, match=r"proportions must have shape .* got \(2,\)"):
        BagBatch(torch.tensor([0.5, 0.5]), 2, task="multiclass")
    with pytest.raises(TypeError, match="logits must be a tensor, got ndarray"):
        DebiasedSquare()(np.zeros(4), BagBatch(torch.tensor([0.5, 0.5]), 2))
