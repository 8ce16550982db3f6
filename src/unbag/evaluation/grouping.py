"""Are bags random groups of instances, or natural ones? The question is asked here, once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from unbag.bags import Bags
from unbag.evaluation import bag_tests, feature_tests
from unbag.frames import frame_encoder

__all__ = ["Grouping", "explain_grouping", "find_grouping", "with_features"]

Grouping = Literal["random", "natural", "auto"]
# Level of each of two tests that say whether bags are random groups. Natural groups are far beyond
# it, and random ones taken for natural lose the estimate of their error.
LEVEL = 1e-3


def find_grouping(bags: Bags) -> Literal["random", "natural"]:
    """Whether proportions and features vary between bags as those of random groups do."""
    return explain_grouping(bags)[0]


def explain_grouping(bags: Bags) -> tuple[Literal["random", "natural"], str]:
    """The grouping that the bags show, and one sentence that says why."""
    if (bags.sizes == 1).all():
        return "random", "Bags of one instance are taken for random groups."
    found = bag_tests.dispersion(bags), feature_tests.homogeneity(_without_gaps(bags))
    raised = [answer for answer in found if answer.p_value < LEVEL]
    if not raised:
        return "random", (
            "Bags are taken for random groups: their proportions and features vary no more than "
            "those of random groups do."
        )
    worst = min(raised, key=lambda answer: answer.p_value)
    return "natural", (
        f"Bags are taken for natural groups: {worst.detail} (p = {worst.p_value:.2g})."
    )


def with_features(bags: Bags, X: Any) -> Bags:
    """The same bags with the features of `X` as numbers, or without any if there are none."""
    if X is None or isinstance(X, Bags):
        return bags
    encoder = frame_encoder(X)
    values = np.asarray(X if encoder is None else encoder.transform(X))
    return replace(bags, X=values) if values.dtype.kind in "fiub" else bags


def _without_gaps(bags: Bags) -> Bags:
    values = np.asarray(bags.X)
    if values.dtype.kind != "f" or not (gaps := np.isnan(values)).any():
        return bags
    known = np.maximum((~gaps).sum(axis=0), 1)
    return replace(bags, X=np.where(gaps, np.nansum(values, axis=0) / known, values))
