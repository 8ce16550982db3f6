"""`check_bags`: tests of the assumptions about bags, and whether they are random groups."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from unbag.bags import Bags, BagTarget, Task, as_bags
from unbag.bags.noise import rounding_grid
from unbag.bags.reading import read_blocks
from unbag.errors import BagDataError, BagDataWarning
from unbag.evaluation import bag_tests, feature_tests, order_tests
from unbag.evaluation.bag_report import BagReport, Bias, Finding
from unbag.evaluation.bag_tests import Answer, holm, not_asked
from unbag.frames import frame_encoder

Grouping = Literal["random", "natural", "auto"]
# Level of each of two tests of whether bags are random groups. Natural groups are far beyond
# it, and random ones taken for natural lose the estimate of their error.
GROUPING_LEVEL = 1e-3


@dataclass(frozen=True)
class _Check:
    test: Callable[..., Answer]
    advice: str
    # Bias of the estimate if raised, unless the answer states another. If bags draw their instances
    # from laws of their own, R_hat exceeds R by (k - 1) Var(mean residual of a bag) on average:
    # never less than nothing.
    bias: Bias = "upper"
    needs_blocks: bool = False
    exact: bool = False  # only for exact proportions
    amounts: bool = False  # also for averages of amounts

    def answer(self, bags: Bags, blocks: Any = None) -> Answer:
        """Answer of the test, or why it does not apply."""
        if self.exact and bags.noise_variance is not None:
            return not_asked("proportions are noisy")
        return self.test(bags, blocks) if self.needs_blocks else self.test(bags)


CHECKS: dict[str, _Check] = {
    "dispersion": _Check(
        bag_tests.dispersion,
        "Find out what the instances of a bag have in common and add it as a feature; regroup "
        "at random if you can. Balanced bags need the rule `proportion_square`.",
    ),
    "homogeneity": _Check(
        feature_tests.homogeneity,
        "Bags were grouped by something related to the features. Include it in the model. "
        "Estimated errors are upper limits; other metrics need care.",
        amounts=True,
    ),
    "one_value": _Check(
        feature_tests.one_value,
        "Leave out columns that were computed from labels (--ignore), or name them (--count, "
        "--size): with them a model is worse than it seems. Other columns may stay.",
        # Given a count of the labels, those of a bag are not independent: residuals cancel out.
        bias="unreliable",
        amounts=True,
    ),
    "duplicates": _Check(
        feature_tests.duplicates,
        "Bags overlap, so their errors are not independent and intervals are too short. Keep each "
        "instance in one bag, and repeat the count.",
        bias="unreliable",
        amounts=True,
    ),
    "one_class": _Check(
        bag_tests.one_class,
        "Bags were formed by label. Use those of one class as labelled instances.",
        exact=True,
    ),
    "rounding": _Check(
        bag_tests.rounding,
        'If they were rounded, ask for counts, or pass noise_variance="rounding" in Python, '
        "--noise rounding on the command line. Other noise needs its variance there.",
        exact=True,
    ),
    "suppression": _Check(
        bag_tests.suppression,
        "Small counts are withheld: which bags are missing depends on their labels. Ask for noise "
        "instead of suppression, or use larger bags.",
        bias="unreliable",
        exact=True,
    ),
    "clipping": _Check(
        bag_tests.clipping,
        "Extreme proportions were cut off. Ask for the counts. Without these bags the others are "
        "not a random sample.",
        bias="unreliable",
        exact=True,
    ),
    "size_drift": _Check(
        bag_tests.size_drift,
        "Large and small bags hold different instances. Evaluate them separately.",
    ),
    "trend": _Check(
        order_tests.trend,
        "Labels drift along the order of the bags. Add what drives the drift, such as time, as "
        "a feature, and evaluate on the latest bags.",
    ),
    "blocks": _Check(
        order_tests.blocks_differ,
        "Blocks have effects of their own. Split by blocks, not by bags. Intervals are too short "
        "for new blocks.",
        needs_blocks=True,
    ),
    "signal": _Check(
        feature_tests.signal,
        "There is no evidence that the features predict the proportions: check that each "
        "proportion was joined to its own bag.",
        bias="none",
        amounts=True,
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
    task: Task | None = None,
) -> BagReport:
    """Test whether bags satisfy the assumptions of the estimates.

    Parameters
    ----------
    X : Bags, or array of shape (n_instances, ...)
        The bags, or their instances.
    y : array of shape (n_instances,) or (n_instances, n_outputs), optional
        Bag proportion of each instance, or a `BagTarget`; not needed with a `Bags`.
    bags : array of shape (n_instances,), optional
        Bag of each instance; not needed with a `BagTarget`.
    noise_variance : float, mapping from bag, array of shape (n_instances,), or "rounding"
        Known variance of the noise in the proportions.
    blocks : mapping from bag, or array of shape (n_instances,) or (n_bags,), optional
        What several bags have in common, such as a day or a region.
    level : float
        Probability that random bags with exact proportions raise any check.
    task : {"binary", "multiclass", "multilabel", "amount"}, optional
        What `y` averages; None finds out among labels. Amounts have fewer checks.

    Returns
    -------
    BagReport

    Notes
    -----
    P-values are corrected for the number of checks by Holm's method. A check that is not raised
    proves nothing: no feature may show how bags were formed, and small effects need many bags
    (`benchmarks/results/checks/power.md`).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> labels = X[:, 0] > 0
    >>> by_feature = np.argsort(np.argsort(X[:, 1] + X[:, 0])) // 20
    >>> y = np.array([labels[by_feature == b].mean() for b in by_feature])
    >>> check_bags(X, y, bags=by_feature).verdict
    'These bags are not random: risks estimated from them are upper limits.'
    """
    if bags is None and not isinstance(X, Bags) and not isinstance(y, BagTarget):
        raise BagDataError(
            "check_bags needs the bags: pass `bags`, a BagTarget as y, or a Bags as X."
        )
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    if (encoder := frame_encoder(X)) is not None:
        X, names = encoder.transform(X), encoder.features
    with warnings.catch_warnings():
        # The content of this warning is one of the findings.
        warnings.simplefilter("ignore", BagDataWarning)
        data = as_bags(X, y, bags=bags, noise_variance=noise_variance, task=task)
    return check_made_bags(data, level=level, names=names, blocks=blocks)


def check_made_bags(
    bags: Bags,
    *,
    level: float = 0.05,
    names: Sequence[str] | None = None,
    blocks: Any = None,
) -> BagReport:
    """Run `check_bags` on a `Bags`, whose features may have names."""
    results = _answers(bags, read_blocks(blocks, bags.bag_of_row, bags.ids), level)
    p_values = np.array([found.p_value for found in results.values()])
    asked = ~np.isnan(p_values)
    p_values[asked] = holm(p_values[asked])
    findings = [
        Finding(
            name,
            float(p_value),
            found.effect,
            found.detail + _at_fault(found.features, names),
            bool(p_value <= level),
            found.bias or CHECKS[name].bias,
            CHECKS[name].advice,
        )
        for (name, found), p_value in zip(results.items(), p_values, strict=True)
    ]
    return BagReport(findings, bags.n_bags, level)


def _answers(bags: Bags, blocks: Any, level: float) -> dict[str, Answer]:
    """Answers of all tests; detected rounding is treated as known noise in the others."""
    if bags.task == "amount":
        return {name: check.answer(bags) for name, check in CHECKS.items() if check.amounts}
    rounding = CHECKS["rounding"].answer(bags)
    step, _ = rounding_grid(bags.proportions, bags.sizes)
    if rounding.p_value <= level and step:
        bags = replace(bags, noise_variance=np.full(bags.n_bags, step**2 / 12))
    answers = {name: check.answer(bags, blocks) for name, check in CHECKS.items()}
    return answers | {"rounding": rounding}


def _at_fault(features: Sequence[int], names: Sequence[str] | None, most: int = 3) -> str:
    """The worst features, by name or position."""
    if not features:
        return ""
    shown = [f"feature {i}" if names is None else names[i] for i in features[:most]]
    return f" ({', '.join(shown)}{', ...' if len(features) > most else ''})"


def find_grouping(bags: Bags) -> Literal["random", "natural"]:
    """Whether proportions and features vary between bags as in random groups."""
    return explain_grouping(bags)[0]


def explain_grouping(bags: Bags) -> tuple[Literal["random", "natural"], str]:
    """The grouping, and one sentence with the reason."""
    if (bags.sizes == 1).all():
        return "random", "Bags of one instance are treated as random groups."
    values = np.asarray(bags.X)
    if values.dtype.kind == "f" and (gaps := np.isnan(values)).any():
        known = np.maximum((~gaps).sum(axis=0), 1)
        bags = replace(bags, X=np.where(gaps, np.nansum(values, axis=0) / known, values))
    answers = [feature_tests.homogeneity(bags)]
    if bags.task != "amount":
        answers.append(bag_tests.dispersion(bags))
    worst = min(answers, key=lambda answer: np.nan_to_num(answer.p_value, nan=1.0))
    if worst.p_value < GROUPING_LEVEL:
        return "natural", (
            f"Bags are treated as natural groups: {worst.detail} (p = {worst.p_value:.2g})."
        )
    return "random", (
        "Bags are treated as random groups: their proportions and features vary no more than "
        "those of random groups do."
    )


def with_features(bags: Bags, X: Any) -> Bags:
    """The same bags with the features of `X` as numbers, or without any."""
    if X is None or isinstance(X, Bags):
        return bags
    encoder = frame_encoder(X)
    values = np.asarray(X if encoder is None else encoder.transform(X))
    return replace(bags, X=values) if values.dtype.kind in "fiub" else bags
