"""Views keep shape and range, differ from image to image, and follow their generator."""

import pytest
import torch

from unbag.images.views import contrastive_view, strong_view, weak_view


@pytest.fixture(params=[weak_view, strong_view, contrastive_view])
def view(request):
    return request.param


@pytest.mark.parametrize("shape", [(6, 3, 16, 16), (6, 1, 8, 12)])
def test_shape_and_range_stay(view, shape, generator):
    made = view(torch.rand(shape, generator=generator), generator)
    assert made.shape == shape
    assert made.min() >= 0 and made.max() <= 1


def test_images_get_views_of_their_own(view, generator):
    same = torch.rand(1, 3, 16, 16, generator=generator).expand(8, -1, -1, -1)
    made = view(same, generator)
    assert len({tuple(one.flatten().tolist()) for one in made}) > 1


def test_a_generator_gives_the_same_again(view):
    images = torch.rand(4, 3, 16, 16, generator=torch.Generator().manual_seed(5))
    first, second = (view(images, torch.Generator().manual_seed(1)) for _ in range(2))
    torch.testing.assert_close(first, second)


def test_without_flips_nothing_is_mirrored(generator):
    ramp = torch.linspace(0, 1, 16).expand(32, 1, 16, 16)
    made = weak_view(ramp, generator, flip=False)[:, 0, :, 4:12]
    assert (made.diff(dim=-1) >= 0).all()
    mirrored = weak_view(ramp, generator, flip=True)[:, 0, :, 4:12]
    assert (mirrored.diff(dim=-1) < 0).any()
