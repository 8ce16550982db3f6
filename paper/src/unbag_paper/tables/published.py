"""The numbers the paper printed."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from unbag_paper.runs.trial_spec import Conditions

__all__ = [
    "PAPER_SEEDS",
    "best_published",
    "is_close",
    "name_in_paper",
    "net_name",
    "published_error",
    "reason_for",
]

PAPER_SEEDS = 10
"""Seeds behind each of the paper's numbers."""
_VARIANTS = {
    "cnn_padded": "cnn_large",
    "cnn_small_plain": "cnn_small",
    "cnn_large_plain": "cnn_large",
}

_NETS = {
    "linear": "Linear",
    "mlp100": "Two layer small",
    "mlp1000": "Two layer large",
    "cnn_small": "CNN small",
    "cnn_large": "CNN large",
    "cnn_padded": "CNN large, padded",
    "cnn_small_plain": "CNN small, no dropout",
    "cnn_large_plain": "CNN large, no dropout",
}


def _declared(name: str) -> dict[str, Any]:
    return tomllib.loads((resources.files("unbag_paper.tables") / name).read_text("utf-8"))


@cache
def _numbers() -> dict[tuple[str, int, str, str], float]:
    declared = _declared("published.toml")
    rules = declared.pop("rules")
    return {
        (dataset, int(size), model, rule): error
        for dataset, sizes in declared.items()
        for size, models in sizes.items()
        for model, errors in models.items()
        for rule, error in zip(rules, errors, strict=True)
    }


def name_in_paper(model: str) -> str:
    """Which of the paper's nets a net stands for: variants differ in padding and dropout."""
    return _VARIANTS.get(model, model)


def net_name(model: str) -> str:
    """What a net is called in tables and figures."""
    return _NETS.get(model, model)


def published_error(dataset: str, bag_size: int, model: str, rule: str) -> float | None:
    """Test error in percent as printed in the paper, or None if it has no such cell.

    Examples
    --------
    >>> published_error("mnist", 100, "cnn_padded", "PM.Sq")
    0.774
    >>> len(_numbers())
    150
    """
    return _numbers().get((dataset, bag_size, name_in_paper(model), rule))


def best_published(dataset: str, bag_size: int, model: str) -> float | None:
    """Least of the errors in a row of the paper's tables, or None if it has no such row.

    Examples
    --------
    >>> best_published("cifar", 1000, "cnn_large_plain")
    35.9
    """
    row = dataset, bag_size, name_in_paper(model)
    return min((error for where, error in _numbers().items() if where[:3] == row), default=None)


def is_close(error: float, published: float) -> bool:
    """Whether an error is within 15 % or half a point of the published one.

    Examples
    --------
    >>> is_close(2.0, 1.56), is_close(2.2, 1.56), is_close(22.0, 19.9)
    (True, False, True)
    """
    return abs(error - published) <= max(0.15 * published, 0.5)


def reason_for(
    dataset: str, bag_size: int, model: str, rule: str, *, conditions: Conditions = "ours"
) -> str:
    """Why this cell is far from the paper, as declared in ``reasons.toml``, or an empty string."""
    cell = {"bag_sizes": bag_size, "models": model, "rules": rule}
    for entry in _declared("reasons.toml").get("reasons", []):
        alike = (entry["dataset"], entry.get("conditions", "ours")) == (dataset, conditions)
        if alike and all(v in entry.get(n, [v]) for n, v in cell.items()):
            return str(entry["text"])
    return ""
