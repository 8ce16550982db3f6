"""What pixels tell without training."""

import pytest
import torch

from unbag.images import looks_alike_mirrored, pixel_components, small_net
from unbag.images.views import weak_view


@pytest.mark.parametrize("shape", [(50, 1, 8, 8), (50, 3, 20, 30), (50, 1, 100, 40)])
def test_components_are_few_finite_and_centred(shape, generator):
    found = pixel_components(torch.rand(shape, generator=generator))
    assert found.shape == (50, 40) and found.isfinite().all()
    torch.testing.assert_close(found.mean(dim=0), torch.zeros(40), atol=1e-3, rtol=0)


def test_bytes_have_the_components_of_floats(generator):
    images = torch.randint(256, (30, 1, 8, 8), generator=generator, dtype=torch.uint8)
    bytes_, floats = pixel_components(images), pixel_components(images / 255)
    torch.testing.assert_close(bytes_.abs(), floats.abs(), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("n", [50, 2000])
def test_noise_may_be_mirrored_and_a_slope_may_not(n, generator):
    noise = torch.rand(n, 1, 8, 8, generator=generator)
    assert looks_alike_mirrored(noise)
    assert not looks_alike_mirrored((noise + torch.linspace(0, 1, 8)) / 2)


@pytest.mark.parametrize("shape", [(4, 1, 2, 2), (4, 1, 3, 40), (4, 3, 40, 2)])
def test_narrow_images_have_views(shape, generator):
    assert weak_view(torch.rand(shape, generator=generator), generator).shape == shape


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (1, 20, 30)])
def test_the_small_net_takes_any_size(shape):
    assert small_net(shape, 5)(torch.rand(2, *shape)).shape == (2, 5)
