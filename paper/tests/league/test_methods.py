"""Every method learns; the parts that are theirs alone are as their papers define them."""

from itertools import product

import numpy as np
import pytest
import torch
from paper.tests.support.made_up_images import made_up, run_of, tiny_net

from unbag import BagBatch
from unbag.images import ImageBags, ImageBatch
from unbag.models.nets import MODELS
from unbag_paper.league.methods import METHODS, Method, Start
from unbag_paper.league.methods.ahil import Ahil
from unbag_paper.league.methods.llp_dc import likeliest_labels
from unbag_paper.league.methods.llp_vat import LlpVat
from unbag_paper.league.methods.mixbag import MixBag
from unbag_paper.league.methods.rot import Rot
from unbag_paper.league.methods.softmatch import SoftMatch
from unbag_paper.league.training import Machine, train_run

BIBLIOGRAPHY = "docs/references.bib"


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setitem(MODELS, "tiny", tiny_net)


class Idle(Method):
    """Learns nothing: what the test below must reject."""

    name, label, reference = "idle", "idle", ""

    def loss(self, net, batch):
        return 0 * net(batch.weak).sum()


def error_of(method):
    data = made_up()
    return train_run(run_of(method, data), data, Machine())["test_error"].min()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_single_images(method):
    assert error_of(method) < 0.4  # chance: about 0.67


def test_an_idle_method_does_not(monkeypatch):
    monkeypatch.setitem(METHODS, "idle", Idle)
    assert error_of("idle") > 0.5


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_every_method_is_cited(method, request):
    text = (request.config.rootpath / BIBLIOGRAPHY).read_text()
    assert not method.reference or f"{{{method.reference}," in text


def batch_of(sizes, n_classes, generator, done=0.5):
    n = sum(sizes)
    shares = torch.rand(len(sizes), n_classes, generator=generator)
    shares = shares / shares.sum(dim=1, keepdim=True)
    bags = BagBatch(shares, torch.tensor(sizes), task="multiclass")
    images = torch.rand(n, 1, 8, 8, generator=generator)
    return ImageBatch(images, bags, torch.arange(n), done, generator, False)


def test_the_flow_is_the_likeliest_labeling(rng):
    scores, counts = rng.normal(size=(6, 3)), np.array([3, 1, 2])
    possible = [
        labels
        for labels in product(range(3), repeat=6)
        if (np.bincount(labels, minlength=3) == counts).all()
    ]
    best = max(possible, key=lambda labels: scores[np.arange(6), labels].sum())
    np.testing.assert_array_equal(likeliest_labels(scores, counts), best)


def test_mixtures_inside_the_interval_cost_nothing(generator):
    batch = batch_of([40, 40], 3, generator)
    spread = batch.bags.spread(batch.bags.targets)
    assert MixBag(deviations=0.5)._mixtures(spread, batch) == 0
    assert MixBag(deviations=0.5)._mixtures(spread.roll(1, dims=1), batch) > 0


def test_weights_of_ahil_are_those_of_the_paper(generator):
    batch = batch_of([4, 6], 3, generator)
    scores = torch.randn(10, 3, generator=generator).softmax(dim=1)
    found = Ahil()._bag_weights(scores, batch)
    for bag, rows in enumerate((slice(0, 4), slice(4, 10))):
        shares = scores[rows] / scores[rows].sum(dim=0)
        entropy = -(shares * shares.log()).sum(dim=0)
        wanted = ((rows.stop - rows.start) * batch.bags.targets[bag]).log()
        torch.testing.assert_close(found[bag], torch.exp(-((entropy - wanted) ** 2) / 5))


def test_softmatch_spares_what_is_surer_than_the_mean(generator):
    data = ImageBags(torch.zeros(4, 1, 8, 8), batch_of([4], 2, generator).bags)
    method = SoftMatch(decay=0.0)
    method.begin(Start(torch.nn.Identity(), data))
    scores = torch.tensor([[0.9, 0.1], [0.1, 0.9], [0.6, 0.4], [0.4, 0.6]])
    weights = method._weights(scores)
    torch.testing.assert_close(weights[:2], torch.ones(2))
    below, variance = 0.6 - 0.75, scores.amax(dim=1).var()
    wanted = torch.exp(-(torch.tensor(below) ** 2) / (variance / 2))
    torch.testing.assert_close(weights[2:], wanted.expand(2))


def test_the_worst_disturbance_has_its_length_and_is_worse_than_chance(generator):
    batch = batch_of([8], 3, generator)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
    logits = net(batch.weak).detach()
    worst = LlpVat(radius=0.7)._worst(net, batch, logits)
    torch.testing.assert_close(worst.flatten(1).norm(dim=1), torch.full((8,), 0.7))
    random = torch.randn(8, 1, 8, 8, generator=generator)
    random = 0.7 * random / random.flatten(1).norm(dim=1)[:, None, None, None]
    change = [(net(batch.weak + d) - logits).abs().sum() for d in (worst, random)]
    assert change[0] > change[1]


def test_transport_reverses_a_prediction_that_the_counts_forbid():
    bags = BagBatch(torch.tensor([[1.0, 0.0]]), 2, task="multiclass")
    batch = ImageBatch(torch.zeros(2, 1, 8, 8), bags, torch.arange(2), 0.5, None, False)
    object.__setattr__(batch, "__dict__", {**batch.__dict__, "weak": batch.images})
    logits = torch.tensor([[0.0, 3.0], [0.0, 2.0]], requires_grad=True)
    (slope,) = torch.autograd.grad(Rot(proportion_weight=0)(lambda x: logits, batch), logits)
    assert (slope[:, 0] < 0).all()  # descent raises the first class
