"""Models trained side by side: stacked with `torch.func`, or one at a time."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from unbag.models import KEY_SUFFIX, advance_key

# These draw from a global generator or change their buffers in place, which a stack cannot follow.
STATEFUL_LAYERS = (
    nn.modules.dropout._DropoutNd,
    nn.modules.batchnorm._BatchNorm,
    nn.RNNBase,
)


class Learner:
    """One model, whose logits carry a trial axis of one."""

    n_models = 1

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.forward: Callable[[Tensor], Tensor] = model
        self.parameters: list[Tensor] = [p for p in model.parameters() if p.requires_grad]
        self.keys = [b for n, b in model.named_buffers() if n.endswith(KEY_SUFFIX)]

    @property
    def state(self) -> dict[str, Tensor]:
        """Everything that training changes, by name: trainable parameters and all buffers."""
        named = {n: p.detach() for n, p in self.model.named_parameters() if p.requires_grad}
        return named | dict(self.model.named_buffers())

    def logits(self, x: Tensor, *, shared: bool = False) -> Tensor:
        """Logits (n_models, n_instances, n_outputs), on inputs of each model or on shared ones."""
        return self.forward(x if shared else x[0]).unsqueeze(0)

    def train(self, mode: bool) -> None:
        """Switch dropout and the like on or off."""
        self.model.train(mode)

    def advance(self) -> None:
        """Move every dropout mask to the next step, in place."""
        for key in self.keys:
            advance_key(key)

    def export(self, state: dict[str, Tensor], index: int) -> nn.Module:
        """Copy of model number `index` in this state, on the CPU."""
        return _copy_in_state(self.model, state)


class StackedLearner(Learner):
    """Several models of one architecture, evaluated in one vectorised call."""

    def __init__(self, models: list[nn.Module]) -> None:
        self.n_models = len(models)
        self.model = models[0]
        stacked, self.buffers = stack_module_state(models)
        trainable = {name for name, p in models[0].named_parameters() if p.requires_grad}
        self.named = {n: p.detach().requires_grad_() for n, p in stacked.items() if n in trainable}
        self.buffers |= {n: p.detach() for n, p in stacked.items() if n not in trainable}
        self.parameters = list(self.named.values())
        self.keys = [b for n, b in self.buffers.items() if n.endswith(KEY_SUFFIX)]

    @property
    def state(self) -> dict[str, Tensor]:
        return {n: p.detach() for n, p in self.named.items()} | self.buffers

    def logits(self, x: Tensor, *, shared: bool = False) -> Tensor:
        def one(named: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor) -> Tensor:
            return functional_call(self.model, (named, buffers), (x,))

        return vmap(one, in_dims=(0, 0, None if shared else 0))(self.named, self.buffers, x)

    def export(self, state: dict[str, Tensor], index: int) -> nn.Module:
        return _copy_in_state(self.model, {name: values[index] for name, values in state.items()})


def learner_of(models: list[nn.Module]) -> Learner:
    """Stack the models, unless there is only one."""
    return Learner(models[0]) if len(models) == 1 else StackedLearner(models)


@torch.no_grad()
def _copy_in_state(model: nn.Module, state: dict[str, Tensor]) -> nn.Module:
    model = copy.deepcopy(model).cpu().eval()
    # By name, because a state dict repeats tied weights and leaves some buffers out.
    own = dict(model.named_parameters()) | dict(model.named_buffers())
    for name, value in state.items():
        own[name].copy_(value)
    return model


def why_not_stackable(models: list[nn.Module], x: Tensor) -> str | None:
    """Reason why the models must be trained in turn, or None; tested on one batch `x`."""
    for module in models[0].modules():
        if isinstance(module, STATEFUL_LAYERS):
            return f"it holds {type(module).__name__}, which keeps random or running state"
    try:
        learner = StackedLearner([copy.deepcopy(model) for model in models[:2]])
        learner.train(True)
        learner.logits(torch.stack([x[:2]] * learner.n_models))
    except Exception as error:  # whatever a user's module raises under vmap
        return f"torch.func.vmap cannot run it ({type(error).__name__}: {error})"
    return None
