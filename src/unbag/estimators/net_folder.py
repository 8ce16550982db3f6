"""What the folder of a saved net holds: parameters, of any format, and the net itself."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray

from unbag.estimators.saving import ModelFolderError
from unbag.models import get_model
from unbag.rules import RULES, Rule, get_rule
from unbag.training import Trial, TrialResult

__all__ = ["read_parameters", "read_result"]


def read_parameters(description: dict[str, Any], *, rule: Rule | None) -> dict[str, Any]:
    """Parameters of the classifier, with a rule where there is a description of one."""
    # All that older folders hold of them; newer ones have a rule's name there, if that was given.
    rate = description["trial"]["learning_rate"]
    older = {"rule": description["rule"], "learning_rate": rate}
    parameters = older | description["parameters"]
    parameters["rule"] = rule or _described_rule(parameters["rule"])
    return parameters


def _described_rule(described: str | dict[str, Any]) -> str | Rule:
    options = {"name": described} if isinstance(described, str) else dict(described)
    name = options.pop("name")
    if name not in RULES:
        raise ModelFolderError(
            f"The net was trained with a rule of your own, {name!r}: pass `rule`, that rule."
        )
    return name if isinstance(described, str) else get_rule(name, **options)


def read_result(
    description: dict[str, Any], tensors: dict[str, NDArray[Any]], parameters: dict[str, Any]
) -> TrialResult:
    """Build the net, with its weights and history."""
    shape = tuple(description["input_shape"])
    net = get_model(parameters["model"])(shape, description["n_outputs"]).eval()
    state = {n.removeprefix("net."): torch.tensor(t) for n, t in tensors.items() if n[:4] == "net."}
    try:
        net.load_state_dict(state)
    except RuntimeError as error:
        raise ModelFolderError(f"The saved weights do not fit the net: {error}") from error
    history = {n.removeprefix("history."): t for n, t in tensors.items() if n[:8] == "history."}
    trial = Trial(
        get_rule(parameters["rule"]), parameters["learning_rate"], description["trial"]["seed"]
    )
    return TrialResult(
        trial, net, history, description["best_epoch"], description["stopped"], False, shape
    )
