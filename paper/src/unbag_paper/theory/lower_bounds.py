"""Lower bounds for every rule: the trivial ones, and Fano's on the coordinate class."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from unbag.planning.conditions import require, require_probability, require_whole
from unbag_paper.theory.conditions import warn_unless

__all__ = [
    "coordinate_information",
    "coordinate_information_bound",
    "coordinate_shape",
    "fano_bound",
    "fano_sample_size",
    "trivial_agnostic_bound",
    "trivial_realizable_bound",
]


def trivial_realizable_bound(
    error: float, bag_size: int, *, vc_dimension: int, confidence: float = 0.99
) -> float:
    r"""Bags that every rule needs under realizability: n bags tell less than nk labels.

    .. math:: n \ge \frac1k \max\left( \frac{1-\varepsilon}{\varepsilon} \ln\frac1\delta,\;
              \frac{d - 1}{32 \varepsilon} \right)

    Notes
    -----
    The constants are those of supervised learning, proved for eps <= 1/8 and delta <= 1/100. The
    paper writes ``d log(1/delta) / (k eps)``, a product; the supervised bound is a sum, and the
    product cannot hold, since ``(d + log(1/delta)) / eps`` labels are enough.

    Examples
    --------
    >>> round(trivial_realizable_bound(0.01, 10, vc_dimension=100))
    46

    References
    ----------
    ehrenfeucht1989general; hanneke2016optimal; li2024optimistic, Section 5
    """
    _check(error, bag_size, vc_dimension, confidence)
    warn_unless(
        error <= 1 / 8, f"The realizable lower bound is proved for eps <= 1/8, got {error}."
    )
    warn_unless(
        confidence >= 0.99,
        f"The realizable lower bound is proved for delta <= 0.01, got {confidence}.",
    )
    tail = -(1 - error) / error * math.log(1 - confidence)
    return max(tail, (vc_dimension - 1) / (32 * error)) / bag_size


def trivial_agnostic_bound(
    error: float,
    bag_size: int,
    *,
    vc_dimension: int,
    confidence: float = 0.99,
    constant: float = 1.0,
) -> float:
    r"""Bags that every rule needs without realizability, as a shape.

    .. math:: n \ge \frac{C}{k} \cdot \frac{d + \ln(1/\delta)}{\varepsilon^2}

    Examples
    --------
    >>> round(trivial_agnostic_bound(0.1, 10, vc_dimension=100))
    1046

    References
    ----------
    li2024optimistic, Section 5
    """
    _check(error, bag_size, vc_dimension, confidence)
    return constant * (vc_dimension - math.log(1 - confidence)) / (error**2 * bag_size)


def count_channel(bag_size: int, margin: float) -> NDArray[np.float64]:
    """Law of the positive count given the coordinate's count, one row per coordinate count.

    Row z is the law of ``Bin(z, 1/2 + margin) + Bin(k - z, 1/2 - margin)``.

    Examples
    --------
    >>> count_channel(1, 0.5).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rows = []
    for ones in range(bag_size + 1):
        kept = binom.pmf(np.arange(ones + 1), ones, 0.5 + margin)
        flipped = binom.pmf(np.arange(bag_size - ones + 1), bag_size - ones, 0.5 - margin)
        rows.append(np.convolve(kept, flipped))
    return np.clip(np.array(rows), 0.0, 1.0)


def coordinate_information(bag_size: int, margin: float) -> float:
    r"""Information (in nats) that one bag can carry about which coordinate makes the labels.

    .. math:: I(Z; Y), \quad Z \sim \mathrm{Bin}(k, \tfrac12), \quad Y \mid Z \sim
              \mathrm{Bin}(Z, \tfrac12 + \gamma) + \mathrm{Bin}(k - Z, \tfrac12 - \gamma)

    Notes
    -----
    An upper bound on the divergence of one coordinate's law from the average law, for any number
    of coordinates: given the bag, the count Y has at most the entropy of Bin(k, 1/2); given the
    coordinate too, it depends on Z only. With margin 1/2 it is the entropy of Bin(k, 1/2), about
    ``log(pi e k / 2) / 2``. For small margins it tends to ``-log(1 - 4 margin**2) / 2``, which does
    *not* grow with k: see :func:`coordinate_information_bound`.

    Examples
    --------
    >>> round(coordinate_information(100, 0.5), 3)
    3.028
    >>> [round(coordinate_information(bag_size, 0.1), 4) for bag_size in (1, 10, 100)]
    [0.0201, 0.0204, 0.0204]

    References
    ----------
    li2024optimistic, Appendix E
    """
    require_whole("bag_size", bag_size)
    require(0 <= margin <= 0.5, f"`margin` must lie in [0, 1/2], got {margin!r}.")
    weights = binom.pmf(np.arange(bag_size + 1), bag_size, 0.5)
    channel = count_channel(bag_size, margin)
    # Counts too rare for a normal number would add less than 1e-300, and overflow the ratio.
    told = (channel > 0) & (weights >= np.finfo(float).tiny)
    ratio = np.divide(channel, weights, out=np.ones_like(channel), where=told)
    return max(0.0, float(weights @ np.sum(channel * np.log(ratio), axis=1)))


def coordinate_information_bound(bag_size: int, margin: float) -> float:
    r"""The paper's own upper bound on the same divergence, its expectation computed exactly.

    .. math:: \mathbb{E}|Z - Z'| \cdot \mathrm{kl}(\tfrac12 + \gamma \,\|\, \tfrac12 - \gamma)
              \approx 8 \gamma^2 \sqrt{k / \pi}

    Notes
    -----
    The paper then bounds the expectation by ``sqrt(2 k log(2k))``, whose logarithm its theorem does
    not carry; by Cauchy-Schwarz it is at most ``sqrt(k/2)`` and the theorem stands.

    Examples
    --------
    >>> [round(coordinate_information_bound(bag_size, 0.1), 3) for bag_size in (1, 10, 100)]
    [0.041, 0.143, 0.457]
    """
    require(0 <= margin < 0.5, f"`margin` must lie in [0, 1/2), got {margin!r}.")
    gap = np.abs(np.arange(2 * bag_size + 1) - bag_size)
    # The difference of two Bin(k, 1/2) variables is Bin(2k, 1/2) - k.
    expected = float(gap @ binom.pmf(np.arange(2 * bag_size + 1), 2 * bag_size, 0.5))
    return expected * 2 * margin * math.log((0.5 + margin) / (0.5 - margin))


def fano_bound(n_bags: int, bag_size: int, *, dimension: int, margin: float = 0.5) -> float:
    r"""Excess error that some coordinate forces on every rule, by Fano with the exact information.

    .. math:: \frac{\gamma}{2} \left( 1 - \frac{n I(Z; Y) + \ln 2}{d \ln 2} \right)_+

    Parameters
    ----------
    dimension : int
        d: the class has ``2**d`` coordinates and VC dimension d.
    margin : float
        1/2 is the realizable case; gamma < 1/2 the agnostic one.

    Examples
    --------
    >>> round(fano_bound(2, 10, dimension=10), 3)
    0.09

    References
    ----------
    yu1997assouad, Lemma 3; li2024optimistic, Theorem 4
    """
    require_whole("n_bags", n_bags, least=0)
    require_whole("dimension", dimension)
    known = n_bags * coordinate_information(bag_size, margin) + math.log(2)
    return max(0.0, margin / 2 * (1 - known / (dimension * math.log(2))))


def fano_sample_size(
    bag_size: int, *, dimension: int, margin: float = 0.5, share: float = 0.5
) -> float:
    r"""Bags below which Fano forces at least `share` of its largest excess, ``margin / 2``.

    .. math:: n = \frac{(1 - s)\, d \ln 2 - \ln 2}{I(Z; Y)}

    With share 1/2 the excess is 1/8 in the realizable case, which forbids (eps, delta) below
    (1/16, 1/15).

    Notes
    -----
    Valid for every k and d. Of order d / log k when margin is 1/2, and d / margin**2 *whatever the
    bag size* when the margin is small: stronger than the paper's d / (sqrt(k) margin**2).

    Examples
    --------
    >>> [round(fano_sample_size(bag_size, dimension=20), 1) for bag_size in (1, 10, 100, 1000)]
    [9.0, 3.3, 2.1, 1.5]
    """
    require_whole("dimension", dimension)
    require_probability("share", share)
    information = coordinate_information(bag_size, margin)
    require(
        information > 0,
        f"`margin` must be above 0 for labels to tell anything: no number of bags is enough at "
        f"{margin!r}.",
    )
    room = ((1 - share) * dimension - 1) * math.log(2)
    return max(0.0, room / information)


def coordinate_shape(
    bag_size: int, *, dimension: int, margin: float | None = None, constant: float = 1.0
) -> float:
    r"""The paper's lower bound on the coordinate class, as a shape.

    .. math:: C \frac{d}{\log k} \;\text{(realizable)}, \qquad
              C \max\left(\frac{d}{\log k}, \frac{d}{\sqrt{k}\, \varepsilon^2}\right)
              \;\text{(agnostic, margin} = \varepsilon)

    Notes
    -----
    Warns outside the conditions: d >= 3, eps <= 1/16, and k = O(2^d / log d), which the proof needs
    in the form 8 (k + 1) log d <= 2^d - 1.

    Examples
    --------
    >>> round(coordinate_shape(100, dimension=12), 2)
    2.61
    >>> round(coordinate_shape(100, dimension=12, margin=0.05))
    480

    References
    ----------
    li2024optimistic, Theorem 4
    """
    require(bag_size >= 2, f"d / log k needs bags of at least 2, got {bag_size}.")
    warn_unless(dimension >= 3, f"The paper's theorem is stated for d >= 3, got {dimension}.")
    warn_unless(
        8 * (bag_size + 1) * math.log(dimension) <= 2**dimension - 1,
        f"The paper's theorem needs k = O(2^d / log d), got k={bag_size}, d={dimension}.",
    )
    realizable = dimension / math.log(bag_size)
    if margin is None:
        return constant * realizable
    warn_unless(margin <= 1 / 16, f"The agnostic theorem is stated for eps <= 1/16, got {margin}.")
    return constant * max(realizable, dimension / (math.sqrt(bag_size) * margin**2))


def _check(error: float, bag_size: int, vc_dimension: int, confidence: float) -> None:
    require_probability("error", error)
    require_whole("bag_size", bag_size)
    require_whole("vc_dimension", vc_dimension)
    require_probability("confidence", confidence)
