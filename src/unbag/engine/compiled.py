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

from unbag.errors import CompilationWarning

__all__ = ["Checked", "changes", "values_and_gradients"]

Observe = Callable[[Callable[..., Any], tuple[Any, ...]], list[Tensor]]
"""What a function does to some inputs."""

# Rounding to bfloat16 in another order is a tenth of this; what compilers get wrong is far more.
_TOLERANCE = 0.1


class Checked:
    """A compiled function that steps aside for the plain one if they disagree.

    Parameters
    ----------
    plain : function or module
    compiled : function
    observe : function
        What is compared: `changes`, or `values_and_gradients` with respect to some parameters.

    Examples
    --------
    >>> double = Checked(lambda x: 2 * x, lambda x: x + x, values_and_gradients())
    >>> double(torch.tensor([1.0]))
    tensor([2.])
    """

    def __init__(
        self, plain: Callable[..., Any], compiled: Callable[..., Any], observe: Observe
    ) -> None:
        self.plain, self.compiled, self.observe = plain, compiled, observe
        self.agrees = True
        self._seen: set[object] = set()

    def __call__(self, *inputs: Any) -> Any:
        """What the compiled function says, once it has agreed on inputs of this form."""
        if self.agrees:
            self._check_once(inputs)
        return (self.compiled if self.agrees else self.plain)(*inputs)

    def _check_once(self, inputs: tuple[Any, ...]) -> None:
        mode = torch.is_grad_enabled(), getattr(self.plain, "training", None)
        form = (*mode, *(tensor.shape for tensor in _tensors(inputs)))
        if form in self._seen:
            return
        self._seen.add(form)
        found, wanted = (self.observe(f, inputs) for f in (self.compiled, self.plain))
        self.agrees = all(map(_close, found, wanted))
        if not self.agrees:
            warnings.warn(
                f"torch {torch.__version__} compiles a part of this training to something else "
                "than it is: that part runs uncompiled, which is slower.",
                CompilationWarning,
                stacklevel=3,
            )


def values_and_gradients(parameters: Sequence[Tensor] = ()) -> Observe:
    """Compare what is returned, and its gradients by parameters and inputs that have them."""

    def observe(function: Callable[..., Any], inputs: tuple[Any, ...]) -> list[Tensor]:
        values = list(_tensors(function(*inputs)))
        wrt = [t for t in (*parameters, *_tensors(inputs)) if t.requires_grad]
        differentiable = [value.float().sum() for value in values if value.requires_grad]
        if not differentiable:
            return values
        gradients = torch.autograd.grad(differentiable, wrt, allow_unused=True)
        return values + [gradient for gradient in gradients if gradient is not None]

    return observe


def changes(function: Callable[..., Any], inputs: tuple[Any, ...]) -> list[Tensor]:
    """Compare how the inputs are changed in place."""
    copies = _copy(inputs)
    function(*copies)
    return [c - t.detach() for c, t in zip(_tensors(copies), _tensors(inputs), strict=True)]


def _tensors(nest: Any) -> Iterator[Tensor]:
    if isinstance(nest, Tensor):
        yield nest
    elif isinstance(nest, (list, tuple)):
        for part in nest:
            yield from _tensors(part)


def _copy(nest: Any) -> Any:
    if isinstance(nest, Tensor):
        return nest.detach().clone()
    return type(nest)(map(_copy, nest)) if isinstance(nest, (list, tuple)) else nest


def _close(found: Tensor, wanted: Tensor) -> bool:
    found, wanted = found.detach().float(), wanted.detach().float()
    alike = (found == wanted) | (found.isnan() & wanted.isnan())
    gap = torch.where(alike, 0.0, found - wanted).norm()
    return bool(gap <= _TOLERANCE * wanted.nan_to_num().norm())
