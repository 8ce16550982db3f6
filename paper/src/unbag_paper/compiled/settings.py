"""`EngineSettings`: how fast and how precisely a GPU trains, beside the library's `Settings`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch

from unbag.arguments import check_choice, check_whole
from unbag.training import Settings

__all__ = ["EngineSettings", "Precision", "autocast", "torch_switches"]

Precision = Literal["float32", "tf32", "bfloat16"]
_MOST_FORMS = 200  # of one function that are compiled


@dataclass(frozen=True)
class EngineSettings(Settings):
    """`Settings`, and what only the reproduction needs.

    Parameters
    ----------
    precision : {"float32", "tf32", "bfloat16"}
        Of the matrix products on a GPU; weights are always single precision.
    compile : bool
        Compile the optimizer, and nets and rules that are not stacked and see bags of one size.
        What torch compiles wrongly, or not at all, runs uncompiled, with a `CompilationWarning`.
    side_by_side : int
        On a GPU, nets that share it, each on a stream of its own.
    """

    precision: Precision = "float32"
    compile: bool = False
    side_by_side: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("precision", self.precision, get_args(Precision))
        check_whole("side_by_side", self.side_by_side)

    @classmethod
    def of(cls, settings: Settings | None) -> EngineSettings:
        """The same settings; those of the library run as precisely as can be, uncompiled."""
        if isinstance(settings, cls):
            return settings
        return cls(**({} if settings is None else vars(settings)))


def autocast(device: torch.device, precision: Precision) -> AbstractContextManager[Any]:
    """Where matrix products are rounded to bfloat16, if that is the precision."""
    if precision != "bfloat16":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)


@contextmanager
def torch_switches(settings: EngineSettings) -> Iterator[None]:
    """Torch's own settings as a training needs them, put back afterwards."""
    matmul, convolution = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, convolution.allow_tf32
    matmul.allow_tf32 = convolution.allow_tf32 = settings.precision != "float32"
    try:
        with _room_to_compile() if settings.compile else nullcontext():
            yield
    finally:
        matmul.allow_tf32, convolution.allow_tf32 = before


def _room_to_compile() -> AbstractContextManager[Any]:
    """Nets and batches come in many forms; after eight, torch would go on uncompiled."""
    from torch._dynamo import config

    return config.patch(cache_size_limit=_MOST_FORMS)  # its name in every version
