"""An independent reference: plain loops over bags, sharing no code with the library."""

import math
from fractions import Fraction
from itertools import combinations, product

from unbag_paper.exact import (
    EPRM,
    CountDebiasedSquare,
    CountProportionLog,
    CountProportionSquare,
    EasyLLP,
)

RULES = {
    "eprm": EPRM(),
    "square": CountProportionSquare(),
    "log": CountProportionLog(),
    "pairwise": CountDebiasedSquare(),
    "batch": CountDebiasedSquare(debias="batch"),
    "easy known": EasyLLP(prior=0.25),
    "easy estimated": EasyLLP(prior="estimated"),
    "easy split": EasyLLP(prior="split"),
}


def bag_numbers(predictions, member, positives):
    n_bags = len(positives)
    sizes = [member.count(bag) for bag in range(n_bags)]
    counts = [
        sum(p for p, b in zip(predictions, member, strict=True) if b == bag)
        for bag in range(n_bags)
    ]
    return counts, sizes


def debiased(counts, sizes, positives, *, pairwise):
    """Straight from the double sum over pairs of instances, or the paper's formula in gaps."""
    gaps = [Fraction(c - p, k) for c, p, k in zip(counts, positives, sizes, strict=True)]
    total, n_bags = sum(sizes), len(sizes)
    mean = sum(k * r for k, r in zip(sizes, gaps, strict=True)) / total
    spread = sum(k * (r - mean) ** 2 for k, r in zip(sizes, gaps, strict=True))
    factor = (1 - Fraction(1, total)) / (n_bags - 1) if pairwise else Fraction(1, n_bags)
    return float(mean**2 + factor * spread)


def easy(counts, sizes, positives, prior):
    n_bags = len(sizes)
    used = range(n_bags)
    if prior == "estimated":
        prior = Fraction(sum(positives), sum(sizes))
    elif prior == "split":
        half = n_bags // 2
        prior = Fraction(sum(positives[:half]), sum(sizes[:half]))
        used = range(half, n_bags)
    prior = Fraction(prior)
    losses = []
    for bag in used:
        k, a, f = (
            sizes[bag],
            Fraction(positives[bag], sizes[bag]),
            Fraction(counts[bag], sizes[bag]),
        )
        losses.append((k * (a - prior) + prior) * (1 - f) + (k * (prior - a) + 1 - prior) * f)
    return float(sum(losses) / len(losses))


def cross_entropy(share, mean):
    loss = 0.0
    for weight, chance in ((share, mean), (1 - share, 1 - mean)):
        if weight > 0:
            loss += math.inf if chance == 0 else -weight * math.log(chance)
    return loss


def reference_value(name, predictions, member, positives):
    counts, sizes = bag_numbers(predictions, member, positives)
    triples = list(zip(counts, positives, sizes, strict=True))
    if name == "eprm":
        return sum(c != p for c, p, _ in triples) / len(sizes)
    if name == "square":
        return sum((c / k - p / k) ** 2 for c, p, k in triples) / len(sizes)
    if name == "log":
        return sum(cross_entropy(p / k, c / k) for c, p, k in triples) / len(sizes)
    if name in ("pairwise", "batch"):
        return debiased(counts, sizes, positives, pairwise=name == "pairwise")
    return easy(counts, sizes, positives, RULES[name].prior)


def all_minimisers(name, labelings, member, positives):
    """Least value over a set of labelings, and every labeling that attains it."""
    values = {z: reference_value(name, z, member, positives) for z in set(labelings)}
    least = min(values.values())
    slack = 0 if math.isinf(least) else 1e-9 * max(1, abs(least))
    return least, {z for z, value in values.items() if value <= least + slack}


def threshold_labelings(x, symmetric):
    places = sorted(set(x))
    found = [tuple(int(v >= t) for v in x) for t in [*places, math.inf]]
    return found + [tuple(1 - z for z in labels) for labels in found] if symmetric else found


def interval_labelings(x, symmetric):
    places = sorted(set(x))
    pairs = [*combinations(places, 2), *((t, t) for t in places), (math.inf, -math.inf)]
    found = [tuple(int(low <= v <= high) for v in x) for low, high in pairs]
    return found + [tuple(1 - z for z in labels) for labels in found] if symmetric else found


def every_labeling(n_instances):
    return list(product((0, 1), repeat=n_instances))
