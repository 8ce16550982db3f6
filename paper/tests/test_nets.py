"""The large CNNs and those without dropout, as the paper describes them."""

import numpy as np
import pytest
import torch
from tests.support.small_problem import weights_of

from unbag import make_bags
from unbag.training import Settings, Trial, train
from unbag_paper.nets import NETS

# Weights and biases, counted by hand from the paper's appendix for 28 x 28 images.
PARAMETERS = {
    "cnn_small_plain": (9 * 32 + 32) + (9 * 32 * 64 + 64) + (5 * 5 * 64 + 1),
    "cnn_large": (9 * 32 + 32)
    + (9 * 32 * 32 + 32)
    + (9 * 32 * 64 + 64)
    + (9 * 64 * 64 + 64)
    + (4 * 4 * 64 * 512 + 512)
    + (512 + 1),
}
PARAMETERS["cnn_large_plain"] = PARAMETERS["cnn_large"]
PARAMETERS["cnn_padded"] = PARAMETERS["cnn_large"] + (5 * 5 - 4 * 4) * 64 * 512


@pytest.mark.parametrize("name", PARAMETERS)
def test_number_of_parameters(name):
    net = NETS[name]((1, 28, 28), 1)
    assert sum(p.numel() for p in net.parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", PARAMETERS)
def test_biases_start_at_zero_and_weights_are_glorot_uniform(name):
    net = NETS[name]((1, 28, 28), 1)
    for parameter_name, parameter in net.named_parameters():
        if parameter_name.endswith("bias"):
            assert (parameter == 0).all()
        else:
            fan = torch.nn.init._calculate_fan_in_and_fan_out(parameter)
            assert parameter.abs().max() <= (6 / sum(fan)) ** 0.5


@pytest.mark.parametrize(("name", "side"), [("cnn_large", 15), ("cnn_padded", 9)])
def test_a_cnn_refuses_images_that_are_too_small(name, side):
    NETS[name]((1, side + 8, side + 8), 1)
    with pytest.raises(ValueError, match=f"{side} x {side} pixels are too small"):
        NETS[name]((1, side, side), 1)


@pytest.mark.parametrize("name", ["cnn_small", "cnn_large", "cnn_small_plain", "cnn_large_plain"])
def test_only_a_plain_cnn_drops_nothing_in_training(name):
    net, images = NETS[name]((1, 28, 28), 1), torch.rand(4, 1, 28, 28)
    same = torch.equal(net.train()(images), net.eval()(images))
    assert same == name.endswith("_plain")


@pytest.mark.parametrize("name", ["cnn_large", "cnn_padded"])
def test_dropout_is_the_same_in_a_stack(rng, name):
    X = rng.integers(0, 256, size=(60, 1, 16, 16), dtype=np.uint8)
    bags = make_bags(X, rng.integers(0, 2, size=60), bag_size=5, seed=0)
    options = {"model": NETS[name], "settings": Settings(max_epochs=2, bags_per_batch=6)}
    trials = [Trial(seed=seed) for seed in range(2)]
    together, [alone] = train(trials, bags, **options), train(trials[1:], bags, **options)
    torch.testing.assert_close(weights_of(together[1]), weights_of(alone), rtol=1e-3, atol=1e-4)
