"""Noise variance of proportions from the parameters of differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy import optimize, special

from unbag.arguments import check_choice, check_share

Mechanism = Literal["laplace", "gaussian", "geometric"]


@dataclass(frozen=True)
class PrivacyNoise:
    """Noise of a privacy mechanism, in the form that `unbag.evaluate` accepts.

    `variance`, shaped like the sizes, is that of the noise in each proportion (`noise_variance`),
    `kurtosis` its excess kurtosis (`noise_kurtosis`), and `count_variance` that of a count.
    """

    variance: Any
    kurtosis: float
    count_variance: float


def privacy_noise(
    mechanism: Mechanism,
    sizes: Any,
    *,
    epsilon: float,
    delta: float | None = None,
    sensitivity: float = 1.0,
) -> PrivacyNoise:
    r"""Variance of a proportion whose count was released with differential privacy.

    A count with noise of variance :math:`v` gives a proportion with noise of variance
    :math:`v / k^2`. Laplace noise of scale :math:`b = \Delta/\epsilon` has :math:`v = 2 b^2`; the
    two-sided geometric distribution with ratio :math:`\alpha = e^{-\epsilon/\Delta}` has
    :math:`v = 2 \alpha / (1 - \alpha)^2`; normal noise has the least :math:`\sigma^2` with

    .. math:: \Phi\Bigl(\frac{\Delta}{2\sigma} - \frac{\epsilon\sigma}{\Delta}\Bigr)
              - e^\epsilon \Phi\Bigl(-\frac{\Delta}{2\sigma} - \frac{\epsilon\sigma}{\Delta}\Bigr)
              \le \delta .

    Parameters
    ----------
    mechanism : {"laplace", "gaussian", "geometric"}
    sizes : int or array
        Size of each bag; for `fit` and `evaluate`, the bag size of each instance.
    epsilon : float
        Privacy budget of each count.
    delta : float, optional
        For the Gaussian mechanism only.
    sensitivity : float
        Largest change of a count by one person.

    References
    ----------
    dwork2006calibrating, ghosh2009universally, balle2018improving

    Examples
    --------
    >>> noise = privacy_noise("laplace", 100, epsilon=1.0)
    >>> noise.variance, noise.kurtosis
    (0.0002, 3.0)
    """
    check_choice("mechanism", mechanism, get_args(Mechanism))
    if not epsilon > 0 or not sensitivity > 0:
        raise ValueError(
            f"epsilon and sensitivity must be positive, got {epsilon} and {sensitivity}."
        )
    if (delta is not None) != (mechanism == "gaussian"):
        raise ValueError(
            f"delta is for the Gaussian mechanism, and needed there; got {delta} for {mechanism!r}."
        )
    numbers = np.asarray(sizes, dtype=float)
    if not (numbers >= 1).all():
        raise ValueError(f"sizes must be numbers of instances, at least 1, got {sizes!r}.")
    if mechanism == "laplace":
        variance, kurtosis = 2 * (sensitivity / epsilon) ** 2, 3.0
    elif mechanism == "geometric":
        ratio = float(np.exp(-epsilon / sensitivity))
        variance = 2 * ratio / (1 - ratio) ** 2
        # Difference of two geometric laws, each of excess kurtosis 6 + (1 - a)^2 / a.
        kurtosis = 3 + (1 - ratio) ** 2 / (2 * ratio)
    else:
        variance, kurtosis = _gaussian_deviation(epsilon, delta, sensitivity) ** 2, 0.0
    per_bag = variance / numbers**2
    return PrivacyNoise(per_bag if per_bag.ndim else float(per_bag), kurtosis, variance)


def _gaussian_deviation(epsilon: float, delta: Any, sensitivity: float) -> float:
    check_share("delta", delta)

    def excess(log_sigma: float) -> float:
        sigma = np.exp(log_sigma)
        half, shift = 1 / (2 * sigma), epsilon * sigma
        # exp(epsilon) times a normal tail, in logarithms: the factor alone can overflow.
        second = np.exp(epsilon + special.log_ndtr(-half - shift))
        return float(special.ndtr(half - shift) - second - delta)

    return sensitivity * float(np.exp(optimize.brentq(excess, -20, 20)))
