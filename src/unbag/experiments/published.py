"""The numbers the paper printed."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources

__all__ = ["PAPER_SEEDS", "is_close", "published_error"]

PAPER_SEEDS = 10
"""Seeds behind each of the paper's numbers."""


@cache
def _numbers() -> dict[tuple[str, int, str, str], float]:
    text = (resources.files("unbag.experiments") / "published.toml").read_text("utf-8")
    declared = tomllib.loads(text)
    rules = declared.pop("rules")
    return {
        (dataset, int(size), model, rule): error
        for dataset, sizes in declared.items()
        for size, models in sizes.items()
        for model, errors in models.items()
        for rule, error in zip(rules, errors, strict=True)
    }


def published_error(dataset: str, bag_size: int, model: str, rule: str) -> float | None:
    """Test error in percent as printed in the paper, or None if it has no such cell.

    Examples
    --------
    >>> published_error("mnist", 100, "cnn_large", "PM.Sq")
    0.774
    >>> len(_numbers())
    150
    """
    return _numbers().get((dataset, bag_size, model, rule))


def is_close(error: float, published: float) -> bool:
    """Whether an error is within 15 % or half a point of the published one.

    Examples
    --------
    >>> is_close(2.0, 1.56), is_close(2.2, 1.56), is_close(22.0, 19.9)
    (True, False, True)
    """
    return abs(error - published) <= max(0.15 * published, 0.5)
