"""`check_bags`: is what the guarantees assume plausible for these bags?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from unbag.bags import Bags, BagTarget, as_bags
from unbag.bags.noise import rounding_grid
from unbag.bags.reading import read_blocks
from unbag.errors import BagDataError, BagDataWarning
from unbag.evaluation import bag_tests, feature_tests, order_tests
from unbag.evaluation.bag_tests import Answer
from unbag.extras import import_extra
from unbag.frames import frame_encoder

__all__ = ["BagReport", "Finding", "check_bags", "check_made_bags"]

Bias = Literal["upper", "lower", "unreliable", "none"]


@dataclass(frozen=True)
class Finding:
    """One question asked of the bags, and the answer.

    Attributes
    ----------
    check : str
    p_value : float
        Corrected for the number of checks (Holm); NaN if the question does not arise.
    effect : float
        Size of the effect; what it measures is in `detail`.
    detail : str
    raised : bool
        Whether the assumption is rejected.
    bias : {"upper", "lower", "unreliable", "none"}
        What the finding makes of the estimated risk, if raised.
    advice : str
        What to do about it.
    """

    check: str
    p_value: float
    effect: float
    detail: str
    raised: bool
    bias: Bias
    advice: str


@dataclass(frozen=True)
class BagReport:
    """All findings about some bags.

    Attributes
    ----------
    findings : list of Finding
    n_bags : int
    level : float
    """

    findings: list[Finding]
    n_bags: int
    level: float

    @property
    def raised(self) -> list[Finding]:
        """Findings that reject an assumption."""
        return [finding for finding in self.findings if finding.raised]

    @property
    def plausible(self) -> bool:
        """Whether the bags may be random draws with exact proportions."""
        return not self.raised

    @property
    def bias(self) -> Bias:
        """What is to be made of the risk estimated from these bags."""
        kinds = {finding.bias for finding in self.raised} - {"none"}
        if not kinds:
            return "none"
        return kinds.pop() if len(kinds) == 1 else "unreliable"

    @property
    def verdict(self) -> str:
        """One sentence."""
        return VERDICTS[self.bias] if self.raised else VERDICTS["plausible"]

    def __getitem__(self, check: str) -> Finding:
        return next(finding for finding in self.findings if finding.check == check)

    def __rich__(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        table = Table(title=f"{self.n_bags} bags", caption=self.verdict)
        for column in ("check", "p", "finding", "what to do"):
            table.add_column(column)
        for f in self.findings:
            p_value = "" if np.isnan(f.p_value) else f"{f.p_value:.2g}"
            mark = "! " if f.raised else ""
            # Features may be named like markup.
            detail = Text(f.detail)
            table.add_row(mark + f.check, p_value, detail, f.advice if f.raised else "")
        return table

    def __str__(self) -> str:
        from io import StringIO

        from rich.console import Console

        stream = StringIO()
        Console(file=stream, width=110, color_system=None).print(self.__rich__())
        return stream.getvalue()

    def to_frame(self) -> Any:
        """All findings as a pandas DataFrame, one row per check."""
        pd = import_extra("pandas", extra="pandas", purpose="A frame of findings")
        return pd.DataFrame([vars(finding) for finding in self.findings]).set_index("check")


VERDICTS = {
    "plausible": "Nothing speaks against random bags with exact proportions.",
    "none": "Nothing speaks against random bags, but the features say nothing of the proportions.",
    "upper": "These bags are not random draws: the risk estimate is an upper one.",
    "lower": "These bags are not random draws: the risk estimate is a lower one.",
    "unreliable": "These bags break the assumptions: the risk estimate is unreliable.",
}


@dataclass(frozen=True)
class _Check:
    test: Callable[..., Answer]
    bias: Callable[[Answer], Bias]
    advice: str
    needs_blocks: bool = False


# What each finding does to the estimate. If bags draw their instances from laws of their own,
# R_hat exceeds R by (k - 1) Var(mean residual of a bag) on average: never less than nothing.
CHECKS: dict[str, _Check] = {
    "dispersion": _Check(
        bag_tests.dispersion,
        lambda found: "upper" if found.effect > 1 else "lower",
        "Find out what instances of a bag share and give it to the model as a feature; regroup "
        "at random if you can. Balanced bags need the rule `proportion_square`.",
    ),
    "homogeneity": _Check(
        feature_tests.homogeneity,
        lambda found: "upper",
        "Bags were grouped by something the features show. Include it in the model; read errors "
        "as upper limits and other metrics with care.",
    ),
    "one_value": _Check(
        feature_tests.one_value,
        # Given a count of the labels, those of a bag are not independent: residuals cancel out.
        lambda found: "unreliable" if found.effect else "upper",
        "Leave out what was counted from labels, or name it (--ignore, --count, --size): with it a "
        "model is worse than it seems. What was not may stay.",
    ),
    "duplicates": _Check(
        feature_tests.duplicates,
        lambda found: "unreliable",
        "Bags overlap, so their errors are not independent and intervals are too short. Keep each "
        "instance in one bag, and repeat the count.",
    ),
    "one_class": _Check(
        bag_tests.one_class,
        lambda found: "upper",
        "Bags were formed by label. Use those of one class as labelled instances.",
    ),
    "rounding": _Check(
        bag_tests.rounding,
        lambda found: "upper",
        'If they were rounded, ask for counts, or say so: noise_variance="rounding" in Python, '
        "--noise rounding on the command line. Other noise needs its variance there.",
    ),
    "suppression": _Check(
        bag_tests.suppression,
        lambda found: "unreliable",
        "Small counts are withheld: which bags are missing depends on their labels. Ask for noise "
        "instead of suppression, or use larger bags.",
    ),
    "clipping": _Check(
        bag_tests.clipping,
        lambda found: "unreliable",
        "Extreme proportions were cut off. Ask for the counts, or drop those bags knowing that "
        "the rest is no random choice.",
    ),
    "size_drift": _Check(
        bag_tests.size_drift,
        lambda found: "upper",
        "Large and small bags hold different instances. Evaluate them apart.",
    ),
    "trend": _Check(
        order_tests.trend,
        lambda found: "upper",
        "Labels change along the order of the bags. Give the model what changes, such as time, as "
        "a feature, and evaluate on the latest bags.",
    ),
    "blocks": _Check(
        order_tests.blocks_differ,
        lambda found: "upper",
        "Blocks have effects of their own. Split by blocks, not by bags, and read intervals as too "
        "short for new blocks.",
        needs_blocks=True,
    ),
    "signal": _Check(
        feature_tests.signal,
        lambda found: "none",
        "Nothing shows that these features and proportions belong together: check that each "
        "proportion was joined to its own bag.",
    ),
}


def check_bags(
    X: Any,
    y: Any = None,
    *,
    bags: Any = None,
    noise_variance: Any = None,
    blocks: Any = None,
    level: float = 0.05,
) -> BagReport:
    """Ask of bags what the guarantees assume of them.

    Parameters
    ----------
    X : Bags, or array of shape (n_instances, ...)
        The bags, or their instances.
    y : array of shape (n_instances,) or (n_instances, n_outputs), optional
        Each instance's bag proportion, or a `BagTarget`; not needed with a `Bags`.
    bags : array of shape (n_instances,), optional
        Bag of each instance; not needed with a `BagTarget`.
    noise_variance : float, mapping from bag, array of shape (n_instances,), or "rounding"
        Known variance of the noise in the proportions.
    blocks : mapping from bag, or array of shape (n_instances,) or (n_bags,), optional
        What several bags have in common, such as a day or a region.
    level : float
        Chance that random bags with exact proportions raise anything at all.

    Returns
    -------
    BagReport

    Notes
    -----
    P-values are corrected for the number of checks by Holm's method. A check that is not raised
    proves nothing: bags can be formed by something no feature shows, and small effects are found in
    many bags only: `benchmarks/results/checks/power.md` says which are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> labels = X[:, 0] > 0
    >>> by_feature = np.argsort(np.argsort(X[:, 1] + X[:, 0])) // 20
    >>> y = np.array([labels[by_feature == b].mean() for b in by_feature])
    >>> check_bags(X, y, bags=by_feature).verdict
    'These bags are not random draws: the risk estimate is an upper one.'
    """
    if bags is None and not isinstance(X, Bags) and not isinstance(y, BagTarget):
        raise BagDataError(
            "check_bags needs the bags: pass `bags`, a BagTarget as y, or a Bags as X."
        )
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    if (encoder := frame_encoder(X)) is not None:
        X, names = encoder.transform(X), encoder.features
    with warnings.catch_warnings():
        # What this warning says is one of the findings.
        warnings.simplefilter("ignore", BagDataWarning)
        data = as_bags(X, y, bags=bags, noise_variance=noise_variance)
    return check_made_bags(data, level=level, names=names, blocks=blocks)


def check_made_bags(
    bags: Bags,
    *,
    level: float = 0.05,
    names: Sequence[str] | None = None,
    blocks: Any = None,
) -> BagReport:
    """Ask of a `Bags`, whose features may have names, what the guarantees assume.

    See `check_bags`.
    """
    results = _answers(bags, read_blocks(blocks, bags.bag_of_row, bags.ids), level)
    corrected = _holm({name: found.p_value for name, found in results.items()})
    findings = [
        Finding(
            name,
            corrected[name],
            found.effect,
            found.detail + _at_fault(found.features, names),
            bool(corrected[name] <= level),
            CHECKS[name].bias(found),
            CHECKS[name].advice,
        )
        for name, found in results.items()
    ]
    return BagReport(findings, bags.n_bags, level)


def _answers(bags: Bags, blocks: Any, level: float) -> dict[str, Answer]:
    """Answers to all questions; what rounding explains is put down to nothing else."""
    rounding = bag_tests.rounding(bags)
    step, _ = rounding_grid(bags.proportions, bags.sizes)
    if rounding.p_value <= level and step:
        bags = replace(bags, noise_variance=np.full(bags.n_bags, step**2 / 12))
    found = {
        name: check.test(bags, blocks) if check.needs_blocks else check.test(bags)
        for name, check in CHECKS.items()
    }
    return found | {"rounding": rounding}


def _at_fault(features: Sequence[int], names: Sequence[str] | None, most: int = 3) -> str:
    """The worst features, by name or by position."""
    if not features:
        return ""
    shown = [f"feature {i}" if names is None else names[i] for i in features[:most]]
    return f" ({', '.join(shown)}{', ...' if len(features) > most else ''})"


def _holm(p_values: dict[str, float]) -> dict[str, float]:
    """Holm's correction; questions that do not arise stay out of it."""
    asked = sorted((p, name) for name, p in p_values.items() if not np.isnan(p))
    corrected, highest = dict(p_values), 0.0
    for rank, (p, name) in enumerate(asked):
        highest = max(highest, min(1.0, (len(asked) - rank) * p))
        corrected[name] = highest
    return corrected
