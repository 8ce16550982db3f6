"""The stages of image training, at a size that a CPU does in seconds."""

import numpy as np
import pytest
import torch
from torch.nn.functional import one_hot

from unbag.estimators.image import BagImageClassifier
from unbag.images import BagCounts, ContrastiveSettings, contrastive_start, propagate
from unbag.images.contrastive import contrastive_loss
from unbag.images.propagation import nearest_neighbours
from unbag.models.resnet import ResNet


def small_net(input_shape, n_outputs):
    return ResNet(input_shape[0], n_outputs, widths=(8, 16), n_blocks=1)


@pytest.fixture
def bars(rng):
    """Noisy images of a bright bar: lying, standing, or none; in 20 bags of 10."""
    labels = rng.integers(3, size=200)
    images = rng.uniform(0, 0.4, size=(200, 1, 9, 9))
    images[labels == 0, :, 4] += 0.6
    images[labels == 1, :, :, 4] += 0.6
    bags = np.repeat(np.arange(20), 10)
    shares = np.stack([np.eye(3)[labels[bags == b]].mean(axis=0) for b in range(20)])
    return images.astype(np.float32), labels, bags, shares[bags]


def test_one_view_of_each_image_is_nearest_to_the_other():
    points = torch.eye(4).repeat(2, 1)
    assert contrastive_loss(points, 0.1) < contrastive_loss(points.roll(1, dims=0)[:8], 0.1) + 1e-6
    shuffled = torch.cat([torch.eye(4), torch.eye(4).roll(1, dims=0)])
    assert contrastive_loss(shuffled, 0.1) > 5


def test_the_start_lowers_its_loss(bars, seed):
    images = torch.as_tensor(bars[0])
    torch.manual_seed(seed)
    net = small_net((1, 9, 9), 3)
    before = net.blocks[0].conv1.weight.clone()
    settings = ContrastiveSettings(n_epochs=1, images_per_batch=50)
    contrastive_start(net, images, settings=settings, flip=False)
    assert not torch.equal(before, net.blocks[0].conv1.weight)


def test_propagation_mends_a_poor_start(generator):
    centres = 4 * torch.eye(3)
    labels = torch.randint(3, (300,), generator=generator)
    features = centres[labels] + torch.randn(300, 3, generator=generator)
    bag_of = torch.arange(300) // 30
    counts = torch.zeros(10, 3).index_put_((bag_of, labels), torch.ones(300), accumulate=True)
    noise = torch.randn(300, 3, generator=generator)
    start = (one_hot(labels, 3) + 1.5 * noise).softmax(dim=1)
    found = propagate(features, BagCounts(bag_of, counts), start)
    before, after = ((p.argmax(1) == labels).float().mean() for p in (start, found))
    assert after > before + 0.1


def test_neighbours_leave_the_image_itself_out(generator):
    points = torch.randn(50, 4, generator=generator)
    found, weights = nearest_neighbours(points, 5, chunk=7)
    assert not (found == torch.arange(50)[:, None]).any()
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(50))


@pytest.mark.parametrize(("start_epochs", "n_nets"), [(0, 2), (2, 1)])
def test_the_classifier_learns_single_images(bars, start_epochs, n_nets, seed, tmp_path):
    images, labels, bags, y = bars
    clf = BagImageClassifier(
        model=small_net,
        start_epochs=start_epochs,
        max_epochs=25,
        n_nets=n_nets,
        flip=False,
        images_per_batch=50,
        random_state=seed,
    )
    clf.fit(images, y, bags=bags)
    assert (clf.predict(images) == labels).mean() > 0.6  # chance: 0.4
    assert np.allclose(clf.predict_proba(images).sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("start_epochs", [0, 1])
def test_it_is_the_same_from_the_same_seed_and_after_loading(bars, tmp_path, start_epochs):
    images, _, bags, y = bars
    options = {"model": "wrn16_2", "max_epochs": 1, "images_per_batch": 40}
    options["start_epochs"] = start_epochs
    first, second = (
        BagImageClassifier(**options, random_state=3).fit(images[:40], y[:40], bags=bags[:40])
        for _ in range(2)
    )
    found = first.predict_proba(images[:5])
    np.testing.assert_allclose(found, second.predict_proba(images[:5]), atol=1e-6)
    again = BagImageClassifier.load(first.save(tmp_path / "model"))
    np.testing.assert_allclose(found, again.predict_proba(images[:5]), atol=1e-6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: X.reshape(len(X), -1), "must be images of shape"),
        (lambda X: 255 * X, r"bytes or floats in \[0, 1\]"),
    ],
)
def test_bad_images_are_refused(bars, change, words):
    images, _, bags, y = bars
    with pytest.raises(ValueError, match=words):
        BagImageClassifier(model=small_net, max_epochs=1).fit(change(images), y, bags=bags)


def test_a_net_without_features_is_refused(bars):
    images, _, bags, y = bars
    with pytest.raises(ValueError, match="`features` and `head`"):
        BagImageClassifier(model="linear", max_epochs=1).fit(images, y, bags=bags)
