"""Compiled functions, believed where they do what the plain ones do.

A compiler can be wrong without a word, and a training then goes on with wrong gradients. So the
first time that inputs of some form come, both functions run, and what they did is compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from unbag_paper.errors import CompilationWarning

__all__ = ["Checked", "changes", "values_and_gradients"]

Observe = Callable[[Callable[..., Any], tuple[Any, ...]], list[Tensor]]
"""What a function does to some inputs."""

# Rounding to bfloat16 in another order is a tenth of this; what compilers get wrong is far more.
_TOLERANCE = 0.1
# Of all that was observed: a gradient that is zero but for rounding is no disagreement.
_NOISE = 1e-3


class Checked:
    """A compiled function that steps aside for the plain one where they disagree.

    Parameters
    ----------
    name : str
        What a warning calls it.
    plain : function or module
    compiled : function
    observe : function
        What is compared: `changes`, or `values_and_gradients` with respect to some parameters.

    Examples
    --------
    >>> double = Checked("double", lambda x: 2 * x, lambda x: x + x, values_and_gradients())
    >>> double(torch.tensor([1.0]))
    tensor([2.])
    """

    def __init__(
        self,
        name: str,
        plain: Callable[..., Any],
        compiled: Callable[..., Any],
        observe: Observe,
    ) -> None:
        self.name, self.plain, self.compiled, self.observe = name, plain, compiled, observe
        self._agrees: dict[object, bool] = {}  # by form of the inputs

    def __call__(self, *inputs: Any) -> Any:
        """What the compiled function says, if it has agreed on inputs of this form."""
        form = self._form(inputs)
        if form not in self._agrees:
            self._agrees[form] = self._compare(inputs)
        return (self.compiled if self._agrees[form] else self.plain)(*inputs)

    def _form(self, inputs: tuple[Any, ...]) -> object:
        mode = torch.is_grad_enabled(), getattr(self.plain, "training", None)
        return *mode, *((t.shape, t.dtype, t.device, t.requires_grad) for t in _tensors(inputs))

    def _compare(self, inputs: tuple[Any, ...]) -> bool:
        wanted = self.observe(self.plain, inputs)
        try:
            found = self.observe(self.compiled, inputs)
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception as error:  # whatever a compiler fails with
            self._warn(f"cannot compile the {self.name} ({type(error).__name__})")
            return False
        agrees = _agree(found, wanted)
        if not agrees:
            self._warn(f"compiles the {self.name} to something else than it is")
        return agrees

    def _warn(self, what: str) -> None:
        if all(self._agrees.values()):  # said once
            warnings.warn(
                f"torch {torch.__version__} {what}. It runs uncompiled, which is right but slower; "
                "compile=False asks for that, and another version of torch may be able to.",
                CompilationWarning,
                stacklevel=4,
            )


def values_and_gradients(parameters: Sequence[Tensor] = ()) -> Observe:
    """Compare what is returned, and its gradients by parameters and inputs that have them."""

    def observe(function: Callable[..., Any], inputs: tuple[Any, ...]) -> list[Tensor]:
        values = list(_tensors(function(*inputs)))
        wrt = [t for t in (*parameters, *_tensors(inputs)) if t.requires_grad]
        if not wrt or not torch.is_grad_enabled():
            return values
        sums = [_uneven_sum(value) for value in values if value.requires_grad]
        found = torch.autograd.grad(sums, wrt, allow_unused=True) if sums else [None] * len(wrt)
        zeros = map(torch.zeros_like, wrt)
        return values + [z if g is None else g for g, z in zip(found, zeros, strict=True)]

    return observe


def changes(function: Callable[..., Any], inputs: tuple[Any, ...]) -> list[Tensor]:
    """Compare how the inputs are changed in place, by a second call too: moments begin at zero."""
    copies = _copy(inputs)
    for _ in range(2):
        function(*copies)
    return [c - t for c, t in zip(_tensors(copies), _tensors(inputs), strict=True)]


def _uneven_sum(value: Tensor) -> Tensor:
    """A sum with weights, since that of a normalised output would be constant."""
    weights = torch.linspace(1, 2, value.numel(), device=value.device)
    return (value.float() * weights.view(value.shape)).sum()


def _tensors(nest: Any) -> Iterator[Tensor]:
    if isinstance(nest, Tensor):
        yield nest
    elif isinstance(nest, (list, tuple)):
        for part in nest:
            yield from _tensors(part)


def _copy(nest: Any) -> Any:
    if isinstance(nest, Tensor):
        return nest.detach().clone().requires_grad_(nest.requires_grad)
    return type(nest)(map(_copy, nest)) if isinstance(nest, (list, tuple)) else nest


def _agree(found: list[Tensor], wanted: list[Tensor]) -> bool:
    if len(found) != len(wanted):
        return False
    sizes = torch.stack([one.detach().float().nan_to_num().norm() for one in wanted])
    gaps = torch.stack(list(map(_gap, found, wanted)))
    return bool((gaps <= _TOLERANCE * sizes + _NOISE * sizes.norm()).all())


def _gap(found: Tensor, wanted: Tensor) -> Tensor:
    found, wanted = found.detach().float(), wanted.detach().float()
    alike = (found == wanted) | (found.isnan() & wanted.isnan())
    return torch.where(alike, 0.0, found - wanted).norm()
