"""Dropout whose mask is a function of a key, so that a trial drops the same units everywhere."""

from __future__ import annotations

import torch
from torch import Tensor, nn

KEY_SUFFIX = "dropout_key"
# Odd 32-bit constants of the murmur3 finaliser, as signed numbers.
_MIX_1 = -2048144789
_MIX_2 = -1028477387
_N_HASHES = 2**32


class KeyedDropout(nn.Module):
    """Zero a share `rate` of the inputs while training, and scale up the rest.

    `torch.nn.Dropout` draws from a global generator. This one hashes a key and each element's
    position: the mask is the same alone, in a stack of trials under ``vmap``, on CPU and on GPU.
    The training loop advances the key after every step.
    """

    dropout_key: Tensor

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        # A compiler takes an integer of a module for a constant; a fraction may become a variable
        # of its code, and the threshold that follows from it is then another layer's (torch 2.13).
        self.n_dropped = int((rate - 0.5) * _N_HASHES) + _N_HASHES // 2
        # Where the instances stand in the whole batch, if these are not all of it.
        self.slots: Tensor | None = None
        self.register_buffer(KEY_SUFFIX, torch.randint(2**31 - 1, (), dtype=torch.int32))

    def forward(self, x: Tensor) -> Tensor:
        """Apply the mask of the current key."""
        if not self.training or self.n_dropped == 0:
            return x
        position = _positions(x, self.slots)
        # hashes are uniform on all signed numbers
        keep = _hash(position, self.dropout_key) >= self.n_dropped - _N_HASHES // 2
        return x * keep * (_N_HASHES / (_N_HASHES - self.n_dropped))


def _positions(x: Tensor, slots: Tensor | None) -> Tensor:
    """Number of each element in the whole batch."""
    if slots is None:
        return torch.arange(x.numel(), device=x.device, dtype=torch.int32).view(x.shape)
    width = x.shape[1:].numel()
    within = torch.arange(width, device=x.device, dtype=torch.int32)
    return (slots.to(torch.int32).unsqueeze(1) * width + within).view(x.shape)


def _hash(position: Tensor, key: Tensor) -> Tensor:
    mixed = (_wide(position) + key).int()
    mixed = (_wide(mixed ^ (mixed >> 16)) * _MIX_1).int()
    return (_wide(mixed ^ (mixed >> 13)) * _MIX_2).int()


def _wide(numbers: Tensor) -> Tensor:
    """64 bits in compiled code, cut back later, because C++ assumes that 32 bits never overflow."""
    return numbers.long() if torch.compiler.is_compiling() else numbers


def advance_key(key: Tensor) -> None:
    """Move to the next step's mask, in place: a full-period linear congruential generator."""
    key.mul_(1664525).add_(1013904223)
