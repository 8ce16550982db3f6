"""Base class of the estimators that train networks, and saving of networks."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from unbag.bags import Bags
from unbag.estimators.instances import InstanceEstimator
from unbag.estimators.saving import ModelFolderError, plain_parameters
from unbag.evaluation.estimate import Estimate
from unbag.models import (
    AveragedNet,
    BlendedNet,
    LinearScores,
    ModelBuilder,
    RadialUnits,
    get_model,
)
from unbag.rules import RULES, Rule, get_rule
from unbag.training import Trial, TrialResult
from unbag.training.batches import warn_of_single_precision

CENTRES = "models.1.units.centres"  # of a blend
Arrays = dict[str, NDArray[Any]]


class NetEstimator(InstanceEstimator):
    """Base of the estimators that train nets."""

    model: str | ModelBuilder
    result_: TrialResult
    risk_: Estimate | None

    def _read(self, X: Any, *given: Any, **options: Any) -> Bags:
        data = super()._read(X, *given, **options)
        warn_of_single_precision(X, stacklevel=4)  # says where `fit` was called
        return data

    def _learned(self) -> tuple[dict[str, Any], Arrays]:
        result, net, state = self.result_, self.result_.model, self.result_.model.state_dict()
        plain = net.net if isinstance(net, BlendedNet) else net
        about = {
            "model": self.model if isinstance(self.model, str) else None,
            "n_nets": len(plain.nets) if isinstance(plain, AveragedNet) else 1,
            "n_units": len(state[CENTRES]) if CENTRES in state else None,
            "input_shape": list(result.input_shape),
            "best_epoch": result.best_epoch,
            "stopped": result.stopped,
            "learning_rate": result.trial.learning_rate,
            "seed": result.trial.seed,
            **plain_parameters({"rule": result.trial.rule}),
        }
        tensors = {f"net.{name}": tensor.numpy() for name, tensor in state.items()}
        tensors |= {f"history.{name}": np.asarray(v) for name, v in result.history.items()}
        return {"net": about, "risk": None if self.risk_ is None else asdict(self.risk_)}, tensors

    def _restore_net(self, result: TrialResult, description: dict[str, Any]) -> None:
        risk = description["risk"]
        self.result_, self.risk_ = result, None if risk is None else Estimate(**risk)


def read_rule(described: str | dict[str, Any]) -> str | Rule:
    """A rule from its name or description."""
    options = {"name": described} if isinstance(described, str) else dict(described)
    name = options.pop("name")
    if name not in RULES:
        raise ModelFolderError(
            f"The net was trained with a rule of your own, {name!r}: pass `rule`, that rule."
        )
    return name if isinstance(described, str) else get_rule(name, **options)


def read_net(
    description: dict[str, Any],
    tensors: Arrays,
    *,
    model: ModelBuilder | None = None,
    rule: Rule | None = None,
) -> tuple[TrialResult, str | ModelBuilder]:
    """The saved net with its history, and its builder."""
    about = description["net"]
    built_by = about["model"] or model
    if built_by is None:
        raise ModelFolderError(
            "The folder holds a net of your own: pass `model`, the function that built it."
        )
    trial = Trial(rule or get_rule(read_rule(about["rule"])), about["learning_rate"], about["seed"])
    shape, build = tuple(about["input_shape"]), get_model(built_by)
    nets = [build(shape, description["n_outputs"]) for _ in range(about["n_nets"])]
    net = nets[0] if len(nets) == 1 else AveragedNet(nets)
    if about["n_units"] is not None:
        net = _blend(net, shape[0], about["n_units"], description)
    try:
        net.load_state_dict({name: torch.tensor(t) for name, t in _named("net.", tensors)})
    except RuntimeError as error:
        raise ModelFolderError(f"The saved weights do not fit the net: {error}") from error
    history = dict(_named("history.", tensors))
    ended = about["best_epoch"], about["stopped"], len(nets) > 1
    return TrialResult(trial, net.eval(), history, *ended, shape), built_by


def _blend(net: nn.Module, n_features: int, n_units: int, about: dict[str, Any]) -> BlendedNet:
    """A blend with the right shapes."""
    layers = (nn.Identity(), n_features), (RadialUnits(n_features, n_units), n_units)
    models = [
        LinearScores(layer, nn.Linear(n_inputs, about["n_outputs"]), task=about["task"])
        for layer, n_inputs in layers
    ]
    return BlendedNet(net, models, [0.0, 0.0, 1.0], task=about["task"])


def _named(prefix: str, tensors: Arrays) -> list[tuple[str, NDArray[Any]]]:
    return [(n.removeprefix(prefix), t) for n, t in tensors.items() if n.startswith(prefix)]
