"""`Estimate`: a number estimated from bags, with its interval and text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from unbag.arrays import Array
from unbag.evaluation.printing import readable


@dataclass(frozen=True)
class Estimate:
    """A number estimated from bags.

    Attributes
    ----------
    value : float
        The estimate. It is not clipped, so noise can put it outside the metric's range.
    low, high : float
        Ends of the interval, within the metric's range; NaN if there is no interval.
    standard_error : float
    lowest, highest : float
        Range of the metric.
    n_bags : int, optional
    confidence : float
    reason : str
        Why there is no interval.

    Notes
    -----
    An interval contains its estimate, unless the estimate lies outside the metric's range. Such an
    estimate is printed as "at most", "at least" or "cannot tell".

    Examples
    --------
    >>> print(Estimate(0.99, 0.97, 1.03, 0.02))
    0.9900 (95 % interval 0.9700 to 1.0000)
    >>> print(Estimate(-0.01, -0.05, 0.03, 0.02))
    at most 0.0300 (95 % interval 0.0000 to 0.0300): noise puts it below 0
    >>> print(Estimate(1.75, 1.4, 2.1, 0.1))
    cannot tell: no possible value fits these bags
    >>> Estimate(0.031, 0.022, 0.043, 0.005, n_bags=120).percent
    '3.1 % (95 % interval 2.2 to 4.3 %), from 120 bags'
    """

    value: float
    low: float
    high: float
    standard_error: float
    lowest: float = 0.0
    highest: float = 1.0
    n_bags: int | None = None
    confidence: float = 0.95
    reason: str = ""

    def __post_init__(self) -> None:
        low, high = (
            float(np.clip(end, self.lowest, self.highest)) for end in (self.low, self.high)
        )
        if not self.outside:
            low, high = min(low, self.value), max(high, self.value)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def outside(self) -> bool:
        """Whether the estimate lies outside the metric's range."""
        return self.value < self.lowest - 1e-9 or self.value > self.highest + 1e-9

    @property
    def has_interval(self) -> bool:
        """Whether the bags allow an interval."""
        return not np.isnan([self.value, self.low, self.high]).any()

    @property
    def _fits(self) -> bool:
        return not self.outside or self.high - self.low > 1e-9

    @property
    def _tells(self) -> bool:
        """Whether the interval excludes anything, if the estimate is outside the range."""
        whole = self.low <= self.lowest and self.high >= self.highest
        return self.has_interval and self._fits and not (self.outside and whole)

    def _headline(self, form: Callable[[float], str]) -> str:
        if np.isnan(self.value):
            return "not defined"
        if not self._tells:
            return "cannot tell"
        if not self.outside:
            return form(self.value)
        below = self.value < self.lowest
        return f"at most {form(self.high)}" if below else f"at least {form(self.low)}"

    @property
    def headline(self) -> str:
        """The estimate in words: a number, "at most", "at least" or "cannot tell"."""
        return self._headline(readable)

    @property
    def headline_percent(self) -> str:
        """The headline as a percentage."""
        return self._headline(lambda share: f"{100 * share:.1f} %")

    @property
    def interval(self) -> str:
        """The interval in words; empty if there is none."""
        if not (self.has_interval and self._fits):
            return ""
        return f"{readable(self.low)} to {readable(self.high)}"

    @property
    def note(self) -> str:
        """Reason or caution; empty if there is none."""
        if not self.has_interval:
            return self.reason or "not defined"
        if not self._fits:
            return "no possible value fits these bags"
        if self.outside:
            side = ("below", self.lowest) if self.value < self.lowest else ("above", self.highest)
            return f"noise puts it {side[0]} {side[1]:g}"
        return ""

    @property
    def percent(self) -> str:
        """The estimate as a percentage, with its interval and number of bags."""
        text = self.headline_percent
        if self.interval:
            ends = f"{100 * self.low:.1f} to {100 * self.high:.1f} %"
            text += f" ({100 * self.confidence:g} % interval {ends})"
        text += f": {self.note}" if self.note else ""
        return f"{text}, from {self.n_bags} bags" if self.n_bags else text

    def scaled(self, scale: float) -> Estimate:
        """Multiply by a positive constant, including the range."""
        names = ("value", "low", "high", "standard_error", "lowest", "highest")
        return replace(self, **{name: scale * getattr(self, name) for name in names})

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and words, for JSON and tables."""
        names = ("value", "low", "high", "standard_error", "headline", "headline_percent", "note")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        interval = (
            f" ({100 * self.confidence:g} % interval {self.interval})" if self.interval else ""
        )
        note = f": {self.note}" if self.note and self.note != self.headline else ""
        return f"{self.headline}{interval}{note}"


def student_estimate(
    value: float, error: float, freedom: int, *, confidence: float, **about: Any
) -> Estimate:
    """Estimate with the interval of Student's t for a standard error."""
    reach = stats.t.ppf((1 + confidence) / 2, freedom) * error
    ends = float(value - reach), float(value + reach)
    return Estimate(float(value), *ends, float(error), confidence=confidence, **about)


def jackknife_estimate(
    function: Callable[[Array], Any],
    sums: Array,
    *,
    confidence: float,
    below_one: bool = False,
    lowest: float = -np.inf,
    least: float = 0.0,
    added: float = 0.0,
    ratio: Callable[[Array], tuple[Any, Any]] | None = None,
) -> Estimate:
    """Estimate a function of sums, with the jackknife interval over summands (D26).

    The function is applied to ``sums.sum(axis=0)``, with any leading axes. With `lowest` zero or
    `below_one` the interval is computed for the logarithm of the value, or of one minus the value,
    which are less skewed, if these are positive. With `lowest` zero the upper end is extended for
    skewed summands, and allows for a deviation of the logarithm of at least `least`; the logarithm
    is that of the value and what noise had `added` to it. Of a `ratio` of two noisy functions, one
    minus which is the value, the interval is Fieller's (D27).
    """
    total, n_units = sums.sum(axis=0), len(sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.array([function(total), *function(total - sums)])
        logs = np.log(1 - values if below_one else values + added)
    value, reach = float(values[0]), stats.t.ppf((1 + confidence) / 2, max(n_units - 1, 1))
    bounds = (lowest, 1.0 if below_one else np.inf, n_units, confidence)
    if n_units < 3 or not np.isfinite(values).all():
        reason = "fewer than three bags or blocks" if n_units < 3 else "bags do not differ enough"
        return Estimate(value, np.nan, np.nan, np.nan, *bounds, reason=reason)
    error = float(np.sqrt((n_units - 1) * values[1:].var()))
    low, high = value - reach * error, value + reach * error
    if ratio:
        low, high = _fieller(ratio, sums, reach)
    elif (below_one or lowest == 0) and np.isfinite(logs).all():
        reach = max(
            reach * np.sqrt((n_units - 1) * logs[1:].var()),
            stats.norm.ppf((1 + confidence) / 2) * least,
        )
        parts = values[1:].mean() - values[1:]
        skewness = 0.0 if below_one else (parts**3).sum() / max((parts**2).sum(), 1e-100) ** 1.5
        low, high = np.exp(logs[0] - reach), np.exp(logs[0] + reach * (1 + skewness**2))
        low, high = (1 - high, 1 - low) if below_one else (low - added, high - added)
    reason = "" if np.isfinite(low) else "bags do not differ enough"
    return Estimate(value, float(low), float(high), error, *bounds, reason=reason)


def _fieller(
    ratio: Callable[[Array], tuple[Any, Any]], sums: Array, reach: float
) -> tuple[float, float]:
    """Interval of one minus a ratio; NaN if its denominator may be zero."""
    above, below = ratio(sums.sum(axis=0))
    left = np.stack(ratio(sums.sum(axis=0) - sums))
    (aa, ab), (_, bb) = reach**2 * (len(sums) - 1) * np.cov(left, ddof=0)
    square, middle, rest = below**2 - bb, above * below - ab, above**2 - aa
    if below <= 0 or square <= 0:
        return np.nan, np.nan
    half = np.sqrt(max(middle**2 - square * rest, 0))
    return 1 - (middle + half) / square, 1 - (middle - half) / square
