"""The stages of image training, at a size that a CPU does in seconds."""

import numpy as np
import pytest
import torch
from torch.nn.functional import one_hot

from unbag import BagBatch
from unbag.estimators.image import BagImageClassifier, start_posteriors
from unbag.images import (
    Consistency,
    ConsistencySettings,
    ContrastiveSettings,
    ImageBatch,
    contrastive_start,
    propagate,
)
from unbag.images.contrastive import contrastive_loss
from unbag.images.propagation import nearest_neighbours
from unbag.models.resnet import ResNet


def small_net(input_shape, n_outputs):
    return ResNet(input_shape[0], n_outputs, widths=(8, 16), n_blocks=1)


def draw_bars(rng, bag_size):
    """200 noisy images of a bright bar, lying, standing, or none, in bags."""
    labels = rng.integers(3, size=200)
    images = rng.uniform(0, 0.4, size=(200, 1, 9, 9))
    images[labels == 0, :, 4] += 0.6
    images[labels == 1, :, :, 4] += 0.6
    bags = np.arange(200) // bag_size
    shares = np.eye(3)[labels].reshape(-1, bag_size, 3).mean(axis=1)
    return images.astype(np.float32), labels, bags, shares


@pytest.fixture
def bars(rng):
    images, labels, bags, shares = draw_bars(rng, 10)
    return images, labels, bags, shares[bags]


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
    shares = one_hot(labels, 3).float().reshape(10, 30, 3).mean(dim=1)
    noise = torch.randn(300, 3, generator=generator)
    start = (one_hot(labels, 3) + 1.5 * noise).softmax(dim=1)
    found = propagate(features, BagBatch(shares, 30, task="multiclass"), start)
    before, after = ((p.argmax(1) == labels).float().mean() for p in (start, found))
    assert after > before + 0.1


def test_held_out_bags_choose_the_features(generator):
    labels = torch.randint(3, (300,), generator=generator)
    useful = 4 * torch.eye(3)[labels] + torch.randn(300, 3, generator=generator)
    useless = torch.randn(300, 3, generator=generator)
    shares = one_hot(labels, 3).float().reshape(20, 15, 3).mean(dim=1)
    bags = BagBatch(shares, 15, task="multiclass")
    found = start_posteriors([useless, useful], bags)
    torch.testing.assert_close(found, start_posteriors([useful], bags))
    assert (found.argmax(dim=1) == labels).float().mean() > 0.95


@pytest.mark.parametrize(("hold", "moved"), [(0.0, True), (0.5, True), (0.6, False)])
def test_first_probabilities_are_held(hold, moved):
    bags = BagBatch(torch.tensor([[0.5, 0.5]]), 4, task="multiclass")
    generator = torch.Generator().manual_seed(0)
    batch = ImageBatch(torch.rand(4, 1, 8, 8), bags, torch.arange(4), 0.5, generator, False)
    start = torch.full((4, 2), 0.5)
    objective = Consistency(start, ConsistencySettings(hold=hold))
    objective(lambda x: torch.tensor([[0.0, 3.0]]).expand(len(x), 2), batch)
    assert (not torch.equal(objective.predictions[0], start)) == moved


def consistency_of(shares, **settings):
    """Loss and gradient on four images that a net takes for the second of two classes."""
    bags = BagBatch(torch.tensor([shares]), 4, task="multiclass")
    generator = torch.Generator().manual_seed(0)
    batch = ImageBatch(torch.rand(4, 1, 8, 8), bags, torch.arange(4), 0.5, generator, False)
    logits = torch.tensor([[0.0, 3.0], [0.0, 2.0], [0.0, 1.0], [0.0, 0.5]]).repeat(2, 1)
    logits.requires_grad_()
    settings = ConsistencySettings(mixup=0.0, memory=0.0, **settings)
    objective = Consistency(torch.full((4, 2), 0.5), settings)
    return torch.autograd.grad(objective(lambda x: logits, batch), logits)[0][4:, 1]


def test_strong_views_learn_what_the_counts_make_of_weak_ones():
    """Half of the images must be of the first class: the two least sure ones."""
    slope = consistency_of([0.5, 0.5], hard=True)
    assert (slope[2:] > 0).all() and (slope[:2] < 0).all()
    assert (consistency_of([0.0, 1.0]) < 0).all()  # all of the second, as predicted
    assert (consistency_of([1.0, 0.0]) > 0).all()


def test_neighbours_leave_the_image_itself_out(generator):
    points = torch.randn(50, 4, generator=generator)
    found, weights = nearest_neighbours(points, 5, chunk=7)
    assert not (found == torch.arange(50)[:, None]).any()
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(50))


def accuracy_of(problem, seed, **options):
    images, labels, bags, shares = problem
    clf = BagImageClassifier(model=small_net, flip=False, random_state=seed, **options)
    clf.fit(images, shares[bags], bags=bags)
    assert np.allclose(clf.predict_proba(images).sum(axis=1), 1, atol=1e-5)
    return (clf.predict(images) == labels).mean()


@pytest.mark.parametrize(
    ("bag_size", "options"),
    [
        (10, {"start_epochs": 2, "max_epochs": 20, "images_per_batch": 50}),
        (2, {"start_epochs": 0, "max_epochs": 12, "images_per_batch": 20, "n_nets": 2}),
    ],
    ids=["with a start", "two nets"],
)
def test_the_classifier_learns_single_images(rng, seed, bag_size, options):
    assert accuracy_of(draw_bars(rng, bag_size), seed, **options) > 0.9


def test_proportions_of_other_bags_teach_nothing(rng, seed):
    """What the test above must reject: its 90 % come from the bags, not from the images alone."""
    images, labels, bags, shares = draw_bars(rng, 10)
    problem = images, labels, bags, rng.permutation(shares)
    options = {"start_epochs": 2, "max_epochs": 20, "images_per_batch": 50}
    assert accuracy_of(problem, seed, **options) < 0.9


@pytest.mark.parametrize("start_epochs", [0, 1])
def test_it_is_the_same_from_the_same_seed_and_after_loading(bars, tmp_path, start_epochs):
    images, _, bags, y = bars
    options = {"max_epochs": 1, "images_per_batch": 40}
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
        (lambda X: (255 * X).astype(int), r"astype\(np.uint8\)"),
        (lambda X: X[:, 0], r"X\[:, None\]"),
        (lambda X: X.transpose(0, 2, 3, 1), r"X.transpose\(0, 3, 1, 2\)"),
    ],
)
def test_bad_images_are_refused(bars, change, words):
    images, _, bags, y = bars
    with pytest.raises(ValueError, match=words):
        BagImageClassifier(model=small_net, max_epochs=1).fit(change(images), y, bags=bags)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: X[..., 1:], "as in fit"),
        (lambda X: 255 * X, r"bytes or floats in \[0, 1\]"),
    ],
)
def test_bad_images_are_refused_in_prediction(bars, change, words):
    images, _, bags, y = bars
    clf = BagImageClassifier(model=small_net, max_epochs=1, random_state=0)
    clf.fit(images, y, bags=bags)
    with pytest.raises(ValueError, match=words):
        clf.predict(change(images))


@pytest.mark.parametrize("name", ["n_nets", "start_epochs", "max_epochs", "images_per_batch"])
def test_numbers_are_checked(bars, name):
    images, _, bags, y = bars
    with pytest.raises(ValueError, match=f"{name} must be a whole number"):
        BagImageClassifier(**{name: -1}).fit(images, y, bags=bags)


def test_bytes_unequal_bags_and_two_classes(rng):
    images, labels, *_ = draw_bars(rng, 10)
    bags = np.repeat(np.arange(5), [20, 30, 40, 50, 60])
    y = np.array([(labels[bags == b] == 0).mean() for b in range(5)])[bags]
    clf = BagImageClassifier(max_epochs=2, random_state=0)
    clf.fit((255 * images).astype(np.uint8), y, bags=bags)
    of_bytes = clf.predict_proba((255 * images).astype(np.uint8))
    assert of_bytes.shape == (200, 2)
    np.testing.assert_allclose(of_bytes, clf.predict_proba(images), atol=0.05)


def test_a_net_of_ones_own_is_not_read_back(bars, tmp_path):
    images, _, bags, y = bars
    clf = BagImageClassifier(model=small_net, max_epochs=1).fit(images, y, bags=bags)
    with pytest.raises(ValueError, match="net of your own"):
        BagImageClassifier.load(clf.save(tmp_path / "model"))


def test_a_net_without_features_is_refused(bars):
    images, _, bags, y = bars
    with pytest.raises(ValueError, match="`features` and `head`"):
        BagImageClassifier(model="linear", max_epochs=1).fit(images, y, bags=bags)
