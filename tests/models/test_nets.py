"""The architectures as the paper describes them, and the keyed dropout they use."""

import numpy as np
import pytest
import torch

from unbag.models import (
    MODELS,
    KeyedDropout,
    Standardize,
    advance_key,
    join_moments,
    moments_of,
)

# Weights and biases, counted by hand from the paper's appendix for 28 x 28 images.
PARAMETERS = {
    "linear": 784 + 1,
    "mlp100": 784 * 100 + 100 + 100 + 1,
    "mlp1000": 784 * 1000 + 1000 + 1000 + 1,
    "cnn_small": (9 * 32 + 32) + (9 * 32 * 64 + 64) + (5 * 5 * 64 + 1),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_number_of_parameters(name):
    net = MODELS[name]((1, 28, 28), 1)
    assert sum(p.numel() for p in net.parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", PARAMETERS)
def test_biases_start_at_zero_and_weights_are_glorot_uniform(name):
    net = MODELS[name]((1, 28, 28), 1)
    for parameter_name, parameter in net.named_parameters():
        if parameter_name.endswith("bias"):
            assert (parameter == 0).all()
        else:
            fan = torch.nn.init._calculate_fan_in_and_fan_out(parameter)
            assert parameter.abs().max() <= (6 / sum(fan)) ** 0.5


def test_a_cnn_refuses_images_that_are_too_small():
    MODELS["cnn_small"]((1, 13, 13), 1)
    with pytest.raises(ValueError, match="5 x 5 pixels are too small"):
        MODELS["cnn_small"]((1, 5, 5), 1)


def test_a_cnn_refuses_a_table():
    with pytest.raises(ValueError, match="images of shape"):
        MODELS["cnn_small"]((64,), 1)


def test_dropout_keeps_its_share_and_scale():
    drop = KeyedDropout(0.25)
    out = drop(torch.ones(400, 500))
    kept = (out != 0).float()
    assert kept.mean().item() == pytest.approx(0.75, abs=4 * (0.25 * 0.75 / 200_000) ** 0.5)
    assert out[out != 0].unique().item() == pytest.approx(1 / 0.75)
    rows = kept.mean(dim=1)
    assert rows.std().item() == pytest.approx((0.1875 / 500) ** 0.5, rel=0.2)


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("key", [0, 2112189577, 2**31 - 2, -(2**31)])
def test_the_mask_is_murmur3_of_position_and_key_modulo_2_to_the_32(rate, key):
    drop = KeyedDropout(rate)
    drop.dropout_key.fill_(key)
    hashes = np.arange(5000, dtype=np.uint32) + np.array(key).astype(np.uint32)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashes = hashes.astype(np.int32)
        hashes = (hashes ^ (hashes >> shift)).astype(np.uint32) * np.uint32(factor)
    kept = hashes.astype(np.int32) >= int((rate - 0.5) * 2**32)
    assert np.array_equal(drop(torch.ones(5000)).numpy() > 0, kept)


def test_masks_of_successive_steps_are_unrelated():
    drop = KeyedDropout(0.5)
    first = drop(torch.ones(100_000)) > 0
    advance_key(drop.dropout_key)
    second = drop(torch.ones(100_000)) > 0
    agreement = (first == second).float().mean().item()
    assert agreement == pytest.approx(0.5, abs=4 * 0.5 / 100_000**0.5)
    shifted = (first[1:] == second[:-1]).float().mean().item()
    assert shifted == pytest.approx(0.5, abs=4 * 0.5 / 100_000**0.5)


def test_dropout_rests_outside_training():
    x = torch.randn(10)
    assert torch.equal(KeyedDropout(0.5).eval()(x), x)


def test_standardize_joins_chunks(generator):
    X = torch.randn(100, 3, generator=generator) * torch.tensor([1.0, 5.0, 0.0]) + 10
    layer = Standardize(3)
    layer.set(join_moments(map(moments_of, X.split(17))))
    torch.testing.assert_close(layer.mean, X.mean(dim=0))
    torch.testing.assert_close(layer.scale[:2], X.std(dim=0, correction=0)[:2])
    assert layer.scale[2] == 1  # a constant feature


@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1e20, 1e30])
def test_standardize_keeps_features_of_any_scale(scale, generator):
    shape = torch.randn(100, 1, generator=generator) + 3
    layer = Standardize(1)
    layer.set(join_moments(map(moments_of, (scale * shape).split(17))))
    torch.testing.assert_close(
        layer.scale, scale * shape.std(dim=0, correction=0), atol=0, rtol=1e-5
    )
    torch.testing.assert_close(
        layer(scale * shape), (shape - shape.mean()) / shape.std(correction=0)
    )


def test_a_feature_that_varies_by_less_than_floats_can_divide_by_is_constant():
    layer = Standardize(1)
    X = torch.tensor([[0.0], [1e-45]])
    layer.set(moments_of(X))
    assert layer(X).isfinite().all()
