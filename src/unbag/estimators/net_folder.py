"""Base class of the estimators that train networks, and saving of networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from unbag.arrays import Array, Arrays
from unbag.bags import Bags
from unbag.estimators.instances import InstanceEstimator
from unbag.estimators.saving import ModelFolderError
from unbag.evaluation.estimate import Estimate
from unbag.models import (
    AveragedNet,
    BlendedNet,
    LinearScores,
    ModelBuilder,
    RadialUnits,
    get_model,
)
from unbag.rules import Rule, get_rule
from unbag.training import Trial, TrialResult
from unbag.training.batches import warn_of_single_precision

CENTRES = "models.1.units.centres"  # of a blend


class NetEstimator(InstanceEstimator):
    """Base of the estimators that train nets."""

    _state: ClassVar[tuple[str, ...]] = ("n_outputs", "risk")
    rule: str | Rule
    model: str | ModelBuilder
    n_outputs_: int
    result_: TrialResult
    risk_: Estimate | None

    def fit_bags(self, data: Bags) -> Self:
        """Train on a `Bags`."""
        warn_of_single_precision(data.X)
        return super().fit_bags(data)

    def _read(self, X: Any, *given: Any, **options: Any) -> Bags:
        data = super()._read(X, *given, **options)
        warn_of_single_precision(X, stacklevel=4)  # points at the call of `fit`
        return data

    def _learned(self) -> tuple[dict[str, Any], Arrays]:
        plain, arrays = super()._learned()
        result, net, state = self.result_, self.result_.model, self.result_.model.state_dict()
        average = net.net if isinstance(net, BlendedNet) else net
        plain["net"] = {
            "n_nets": len(average.nets) if isinstance(average, AveragedNet) else 1,
            "n_units": len(state[CENTRES]) if CENTRES in state else None,
            "input_shape": list(result.input_shape),
            "interrupted": result.interrupted,
            "learning_rate": result.trial.learning_rate,
            "seed": result.trial.seed,
        }
        arrays |= {f"net.{name}": tensor.numpy() for name, tensor in state.items()}
        arrays |= {f"history.{name}": np.asarray(v) for name, v in result.history.items()}
        return plain, arrays

    def _restore(self, description: dict[str, Any], tensors: Arrays, folder: Path) -> None:
        super()._restore(description, tensors, folder)
        about = description["net"]
        shape, build = tuple(about["input_shape"]), get_model(self.model)
        nets = [build(shape, self.n_outputs_) for _ in range(about["n_nets"])]
        net = nets[0] if len(nets) == 1 else AveragedNet(nets)
        if about["n_units"] is not None:
            net = self._blend(net, shape[0], about["n_units"])
        try:
            net.load_state_dict({name: torch.tensor(t) for name, t in _named("net.", tensors)})
        except RuntimeError as error:
            raise ModelFolderError(f"The saved weights do not fit the net: {error}") from error
        trial = Trial(get_rule(self.rule), about["learning_rate"], about["seed"])
        history = dict(_named("history.", tensors))
        interrupted, stacked = about["interrupted"], len(nets) > 1
        self.result_ = TrialResult(trial, net.eval(), history, interrupted, stacked, shape)

    def _blend(self, net: nn.Module, n_features: int, n_units: int) -> BlendedNet:
        """A blend with the right shapes."""
        layers = (nn.Identity(), n_features), (RadialUnits(n_features, n_units), n_units)
        models = [
            LinearScores(layer, nn.Linear(n_inputs, self.n_outputs_), task=self.task_)
            for layer, n_inputs in layers
        ]
        return BlendedNet(net, models, [0.0, 0.0, 1.0], task=self.task_)


def _named(prefix: str, tensors: Arrays) -> list[tuple[str, Array]]:
    return [(n.removeprefix(prefix), t) for n, t in tensors.items() if n.startswith(prefix)]
