"""The rules written a second time, in numpy, by loops and enumeration, for small bags."""

from itertools import product

import numpy as np


def split(values, sizes):
    return np.split(np.asarray(values), np.cumsum(sizes)[:-1])


def residuals(scores, proportions, sizes):
    bags = split(scores, sizes)
    return np.array([bag.mean() - a for bag, a in zip(bags, proportions, strict=True)])


def proportion_square(scores, proportions, sizes, prior):
    return np.mean(residuals(scores, proportions, sizes) ** 2)


def proportion_log(scores, proportions, sizes, prior):
    means = np.array([bag.mean() for bag in split(scores, sizes)])
    return np.mean(-proportions * np.log(means) - (1 - proportions) * np.log(1 - means))


def pairwise(scores, proportions, sizes, prior):
    """Weighted sum over bags and over ordered pairs of distinct bags, term by term.

    With N instances in n bags, sum k_i (r_i - rbar)^2 = sum_i k_i (1 - k_i / N) r_i^2
    - sum_{i != j} k_i k_j / N r_i r_j, and rbar^2 expands likewise.
    """
    r, total, n = residuals(scores, proportions, sizes), sum(sizes), len(sizes)
    value = 0.0
    for i, k_i in enumerate(sizes):
        for j, k_j in enumerate(sizes):
            in_mean = k_i * k_j / total**2
            in_spread = (k_i if i == j else 0) - k_i * k_j / total
            value += (in_mean + (1 - 1 / total) * in_spread / (n - 1)) * r[i] * r[j]
    return value


def batch(scores, proportions, sizes, prior):
    r, sizes = residuals(scores, proportions, sizes), np.asarray(sizes)
    mean = np.average(r, weights=sizes)
    return np.mean(sizes * r**2) - np.mean(sizes - 1) * mean**2


def moving(scores, proportions, sizes, prior):
    r, sizes = residuals(scores, proportions, sizes), np.asarray(sizes)
    return np.mean(sizes * r**2) - np.mean(sizes - 1) * (np.mean(scores) - prior) ** 2


def easy(scores, proportions, sizes, prior, loss):
    values = []
    for bag, a, k in zip(split(scores, sizes), proportions, sizes, strict=True):
        positive = np.mean([loss(1, f) for f in bag])
        negative = np.mean([loss(0, f) for f in bag])
        values.append(
            (k * (a - prior) + prior) * positive + (k * (prior - a) + 1 - prior) * negative
        )
    return np.mean(values)


def easy_split(scores, proportions, sizes, prior, loss):
    half = len(sizes) // 2
    estimate = np.average(proportions[:half], weights=sizes[:half])
    kept = scores[sum(sizes[:half]) :]
    return easy(kept, proportions[half:], sizes[half:], estimate, loss)


def square_loss(y, f):
    return (y - f) ** 2


def log_loss(y, f, offset=0.0):
    return -np.log((f if y else 1 - f) + offset)


def eprm(scores, proportions, sizes, prior):
    hard = (np.asarray(scores) > 0.5).astype(float)
    return np.mean(np.abs(residuals(hard, proportions, sizes)) > 1e-9)


def count_likelihood(scores, proportions, sizes, prior):
    """Add up the probability of every labeling of a bag that has the bag's count."""
    values = []
    for bag, a, k in zip(split(scores, sizes), proportions, sizes, strict=True):
        mass = sum(
            np.prod(np.where(np.array(labels) == 1, bag, 1 - bag))
            for labels in product([0, 1], repeat=k)
            if sum(labels) == round(k * a)
        )
        values.append(-np.log(mass))
    return np.mean(values)


def count_posterior(scores, proportions, sizes, prior):
    """Average the loss of every labeling of a bag that has the bag's count."""
    values = []
    for bag, a, k in zip(split(scores, sizes), proportions, sizes, strict=True):
        labelings = [y for y in map(np.array, product([0, 1], repeat=k)) if y.sum() == round(k * a)]
        masses = np.array([np.prod(np.where(y == 1, bag, 1 - bag)) for y in labelings])
        errors = np.abs(np.array(labelings) - bag)
        losses = (4 * errors**3 - 3 * errors**4).mean(axis=1)
        values.append(masses @ losses / masses.sum())
    return np.mean(values)


REFERENCES = {
    "ProportionSquare()": proportion_square,
    "ProportionLog()": proportion_log,
    "DebiasedSquare(debias='pairwise', beta=0.99)": pairwise,
    "DebiasedSquare(debias='batch', beta=0.99)": batch,
    "DebiasedSquare(debias='moving', beta=0.99)": moving,
    "EasySquare(prior='plug_in')": lambda *data: easy(*data, square_loss),
    "EasyLog(prior='plug_in', offset=0.0)": lambda *data: easy(*data, log_loss),
    "EasySquare(prior='split')": lambda *data: easy_split(*data, square_loss),
    "EasyLog(prior='split', offset=0.0)": lambda *data: easy_split(*data, log_loss),
    "EprmRule()": eprm,
    "CountLikelihood(exact_up_to=1000)": count_likelihood,
    "CountPosterior(votes=2)": count_posterior,
}
