"""The laws every rule must obey, each as a function that measures how far a rule is from it.

A law returns a number that must be small, so the tests can run it on the registered rules and on
broken ones that it has to reject.
"""

from itertools import product

import numpy as np
import torch

from unbag import BagBatch

INSTANCE_LOSSES = {
    "square": lambda f, y: (f - y) ** 2,
    "log": lambda f, y: -np.log(np.where(y == 1, f, 1 - f)),
    "zero_one": lambda f, y: (f > 0.5) != (y == 1),
    "majority": lambda f, y: 4 * np.abs(f - y) ** 3 - 3 * np.abs(f - y) ** 4,
}


def prior_for(rule, prior):
    """A rule that splits the sample must find the prior by itself."""
    return None if rule.prior_share else torch.tensor(prior, dtype=torch.double)


def random_problem(generator, sizes, task="binary", n_outputs=3):
    """Logits, labels and their batch, in float64."""
    n = sum(sizes)
    single = task in ("binary", "amount")
    if single:
        logits = torch.randn(n, generator=generator, dtype=torch.double)
        labels = torch.rand(n, generator=generator, dtype=torch.double)
        labels = 9 * labels - 4 if task == "amount" else (labels < 0.4).double()
    else:
        logits = torch.randn(n, n_outputs, generator=generator, dtype=torch.double)
        draws = torch.randint(n_outputs, (n,), generator=generator)
        labels = torch.nn.functional.one_hot(draws, n_outputs).double()
    bags = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    proportions = torch.stack([labels[bags == b].mean(dim=0) for b in range(len(sizes))])
    prior = torch.tensor(0.4) if single else torch.full((n_outputs,), 1 / n_outputs)
    equal = len(set(sizes)) == 1
    batch = BagBatch(
        proportions, sizes[0] if equal else torch.tensor(sizes), prior=prior, task=task
    )
    return logits, labels, batch


def exact_bias(rule, bag_sizes=(2, 1, 2), *, prior_known=False):
    """Expectation of the loss minus the risk, over every draw of the bags from three atoms.

    The atoms are (logit, label, probability); the expectation is a finite sum, so the answer is
    exact up to rounding.
    """
    atoms = [(0.8, 1, 0.5), (-1.3, 0, 0.3), (0.4, 0, 0.2)]
    prior = sum(weight for _, label, weight in atoms if label)
    draws = np.array(list(product(range(3), repeat=sum(bag_sizes))))
    logit, label, weight = (np.array(column)[draws] for column in zip(*atoms, strict=True))
    bag_of = np.repeat(np.arange(len(bag_sizes)), bag_sizes)
    proportions = np.stack(
        [label[:, bag_of == b].mean(axis=1) for b in range(len(bag_sizes))], axis=1
    )
    batch = BagBatch(
        torch.tensor(proportions),
        torch.tensor(bag_sizes),
        prior=torch.full((len(draws),), prior, dtype=torch.double) if prior_known else None,
    )
    probability = weight.prod(axis=1)
    expected = (rule(torch.tensor(logit), batch).numpy() * probability).sum()
    loss = INSTANCE_LOSSES[rule.instance_loss]
    risk = sum(w * loss(1 / (1 + np.exp(-f)), np.array(y)) for f, y, w in atoms)
    return abs(float(expected - risk))


def bias_in_standard_errors(rule, generator, n_draws=20_000, n_bags=4, bag_size=8):
    """Monte Carlo bias over random scores and labels, in units of its own standard error."""
    shape = (n_draws, n_bags * bag_size)
    logits = torch.randn(shape, generator=generator, dtype=torch.double)
    uniform = torch.rand(shape, generator=generator, dtype=torch.double)
    labels = (uniform < torch.sigmoid(2 * logits - 0.5)).double()
    prior = None if rule.prior_share else _prior_of_random_labels()
    batch = BagBatch(labels.unflatten(-1, (n_bags, bag_size)).mean(dim=-1), bag_size, prior=prior)
    loss = INSTANCE_LOSSES[rule.instance_loss]
    risk = torch.as_tensor(loss(logits.sigmoid().numpy(), labels.numpy())).double().mean(dim=-1)
    error = rule(logits, batch) - risk
    return abs(error.mean() / error.std()).item() * n_draws**0.5


def _prior_of_random_labels():
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    prior = (weights / (1 + np.exp(-(2 * nodes - 0.5)))).sum() / weights.sum()
    return torch.tensor(prior, dtype=torch.double)


def change_under_reordering(rule, generator, sizes=(3, 2, 4)):
    """Largest change of the loss when bags, and instances inside bags, change places."""
    if rule.prior_share:
        return 0.0  # which bags estimate the prior is part of such a rule
    logits, _, batch = random_problem(generator, list(sizes))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    order = [2, 0, 1]
    rows = np.concatenate([np.arange(starts[b], starts[b + 1])[::-1] for b in order])
    moved = BagBatch(batch.proportions[order], torch.tensor(sizes)[order], prior=batch.prior)
    return abs(float(rule(logits[rows.copy()], moved) - rule(logits, batch)))


def gap_to_supervised_loss(rule, generator, n=6):
    """Difference from the mean instance loss when every bag holds one instance."""
    logits, labels, batch = random_problem(generator, [1] * n)
    start = n // 2 if rule.prior_share else 0
    loss = INSTANCE_LOSSES[rule.instance_loss]
    wanted = loss(logits.sigmoid().numpy(), labels.numpy())[start:].mean()
    batch = BagBatch(batch.proportions, 1, prior=prior_for(rule, 0.4))
    return abs(float(rule(logits, batch)) - float(wanted))


def lowest_loss(rule, generator, n_draws=4000):
    """Smallest loss over many random small batches with confident scores."""
    shape = (n_draws, 12)
    logits = 4 * torch.randn(shape, generator=generator, dtype=torch.double)
    labels = (torch.rand(shape, generator=generator) < 0.5).double()
    batch = BagBatch(labels.unflatten(-1, (4, 3)).mean(dim=-1), 3, prior=prior_for(rule, 0.5))
    return float(rule(logits, batch).min())
