"""Localized uniform convergence: covering numbers, Dudley's integral, the critical radius."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.special import lambertw

from unbag.planning.conditions import require, require_probability, require_whole

__all__ = [
    "critical_radius",
    "critical_radius_vc",
    "local_rademacher_bound",
    "localized_bound",
    "log_covering_number",
    "refined_dudley",
    "sub_root_vc",
]


def log_covering_number(scale: float, vc_dimension: int, *, lipschitz: float = 1.0) -> float:
    r"""Log of the empirical L2 covering number of a VC class, or of a Lipschitz bag loss over it.

    .. math:: d \log\left(4 e^2 \log\frac{2 e^2 \lambda}{\epsilon}\right)
              + 2 d \log\frac{\lambda}{\epsilon}

    Notes
    -----
    It does not depend on the number of bags nor on their size. At scales of `lipschitz` and above
    one ball is enough and 0 is returned.

    Examples
    --------
    >>> round(log_covering_number(0.1, 3), 2)
    28.8

    References
    ----------
    mendelson2003few, Theorem 2.14; li2024optimistic, Lemmas 4 and 5
    """
    require(scale > 0, f"`scale` must be positive, got {scale!r}.")
    require_whole("vc_dimension", vc_dimension)
    ratio = lipschitz / scale
    if ratio <= 1:
        return 0.0
    inner = 4 * math.e**2 * math.log(2 * math.e**2 * ratio)
    return vc_dimension * (math.log(inner) + 2 * math.log(ratio))


def refined_dudley(log_cover: Callable[[float], float], n_bags: int, *, radius: float) -> float:
    r"""Refined Dudley integral, minimised over where it starts.

    .. math:: \inf_{\eta > 0} \; 4 \eta
              + 12 \int_\eta^{\mathrm{radius}} \sqrt{\log N(\epsilon) / n} \, d\epsilon

    Parameters
    ----------
    radius : float
        Largest empirical L2 norm in the class.

    Examples
    --------
    >>> from functools import partial
    >>> cover = partial(log_covering_number, vc_dimension=3)
    >>> round(refined_dudley(cover, 10_000, radius=0.1), 4)
    0.071

    References
    ----------
    srebro2010optimistic, Lemma A.1; li2024optimistic, Lemma 3
    """
    require_whole("n_bags", n_bags)
    require(radius > 0, f"`radius` must be positive, got {radius!r}.")

    def total(log_start: float) -> float:
        start = math.exp(log_start)
        area, _ = quad(lambda scale: math.sqrt(log_cover(scale) / n_bags), start, radius, limit=200)
        return 4 * start + 12 * area

    best = minimize_scalar(
        total, bounds=(math.log(radius) - 20, math.log(radius)), method="bounded"
    )
    return min(float(best.fun), 4 * radius)


def local_rademacher_bound(
    second_moment: float, n_bags: int, *, vc_dimension: int, lipschitz: float
) -> float:
    """Rademacher complexity of the bag losses whose empirical second moment is at most `r`.

    Dudley's integral over the covering numbers, with radius ``sqrt(r)``; unlike
    :func:`sub_root_vc` it has no unknown constant.

    Examples
    --------
    >>> round(local_rademacher_bound(0.01, 10_000, vc_dimension=3, lipschitz=1.0), 4)
    0.071
    """

    def cover(scale: float) -> float:
        return log_covering_number(scale, vc_dimension, lipschitz=lipschitz)

    return refined_dudley(cover, n_bags, radius=math.sqrt(second_moment))


def sub_root_vc(
    second_moment: float,
    n_bags: int,
    *,
    vc_dimension: int,
    lipschitz: float,
    constant: float = 1.0,
) -> float:
    r"""The paper's sub-root function of a VC class under a Lipschitz bag loss.

    .. math:: \phi_n(r) = C \sqrt{\frac{r d \log(\lambda n / r)}{n}}

    Notes
    -----
    It rises, as a sub-root function must, for r below ``lipschitz * n / e`` only; larger r are
    refused.

    Examples
    --------
    >>> round(sub_root_vc(0.01, 10_000, vc_dimension=3, lipschitz=1.0), 5)
    0.00644

    References
    ----------
    li2024optimistic, Lemma 5
    """
    require(n_bags > vc_dimension, f"The lemma needs n > d, got n={n_bags}, d={vc_dimension}.")
    ceiling = lipschitz * n_bags / math.e
    require(
        0 <= second_moment <= ceiling,
        f"The function is sub-root for r in [0, {ceiling:g}], got {second_moment!r}.",
    )
    if second_moment == 0:
        return 0.0
    inside = second_moment * vc_dimension * math.log(lipschitz * n_bags / second_moment) / n_bags
    return constant * math.sqrt(inside)


def critical_radius(sub_root: Callable[[float], float], *, largest: float) -> float:
    r"""Largest solution of :math:`\phi(r) = r` for a sub-root function.

    Parameters
    ----------
    sub_root : callable
        Non-negative, non-decreasing, with ``sub_root(r) / sqrt(r)`` non-increasing; then there is
        one positive fixed point and bisection finds it.
    largest : float
        A point where ``sub_root(r) <= r``.

    Examples
    --------
    >>> round(critical_radius(lambda r: 0.5 * r**0.5, largest=1.0), 6)
    0.25
    """
    require(sub_root(largest) <= largest, "`largest` lies below the fixed point: raise it.")
    smallest = 1e-150
    require(
        sub_root(smallest) > smallest, "The function lies below the identity: no positive radius."
    )
    return float(brentq(lambda r: sub_root(r) - r, smallest, largest, xtol=1e-300, rtol=1e-12))


def critical_radius_vc(
    n_bags: int, *, vc_dimension: int, lipschitz: float, constant: float = 1.0
) -> float:
    r"""Critical radius of :func:`sub_root_vc`, in closed form with Lambert's W.

    .. math:: r^* = \frac{C^2 d}{n} \, W\!\left(\frac{\lambda n^2}{C^2 d}\right)
              = O\!\left(\frac{d \log(\lambda n)}{n}\right)

    Examples
    --------
    >>> round(critical_radius_vc(10_000, vc_dimension=3, lipschitz=10.0), 6)
    0.005041
    """
    require(n_bags > vc_dimension, f"The lemma needs n > d, got n={n_bags}, d={vc_dimension}.")
    unit = constant**2 * vc_dimension / n_bags
    return float(unit * lambertw(lipschitz * n_bags / unit).real)


def localized_bound(
    expectation: float,
    n_bags: int,
    *,
    radius: float,
    largest_loss: float,
    variance_offset: float,
    variance_slope: float,
    confidence: float = 0.95,
    constant: float = 1.0,
    log_log_constant: float = 1.0,
) -> float:
    r"""Largest gap of mean and expectation over a class, in the shape of the paper's Theorem 5.

    .. math::
        C \Bigl( b r^* + \sqrt{r^* (A + B\,\mathbb{E} g)}
        + \sqrt{B\,\mathbb{E}g\, t / n} + r_0 \Bigr), \quad
        t = \log\tfrac1\delta + c \log\log n, \quad
        r_0 = \sqrt{2 b^2 A t / n} + 22 b^2 t / n

    Parameters
    ----------
    radius : float
        Critical radius r* of the class.
    largest_loss : float
        Bound b on the absolute loss.
    variance_offset, variance_slope : float
        A and B of the assumption ``E[g^2] <= A + B E[g]``: (0, k) for the square loss of a bag of
        k times its size, ``(8 k^2 L*, 4 k^2)`` for EasyLLP's offset loss.

    Examples
    --------
    >>> radius = critical_radius_vc(100_000, vc_dimension=3, lipschitz=10.0)
    >>> round(localized_bound(0.0, 100_000, radius=radius, largest_loss=10.0,
    ...                       variance_offset=0.0, variance_slope=10.0), 3)
    0.126

    References
    ----------
    bousquet2002concentration, Theorem 6.2; li2024optimistic, Theorem 5
    """
    require(n_bags >= 3, f"log log n needs at least 3 bags, got {n_bags}.")
    require_probability("confidence", confidence)
    require(expectation >= 0, "The variance assumption needs a non-negative expectation.")
    tail = -math.log(1 - confidence) + log_log_constant * math.log(math.log(n_bags))
    rest = math.sqrt(2 * largest_loss**2 * variance_offset * tail / n_bags)
    rest += 22 * largest_loss**2 * tail / n_bags
    spread = math.sqrt(radius * (variance_offset + variance_slope * expectation))
    noise = math.sqrt(variance_slope * expectation * tail / n_bags)
    return constant * (largest_loss * radius + spread + noise + rest)
