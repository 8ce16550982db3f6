"""Compiled steps and nets side by side on a GPU: the reproduction's `Accelerator`."""

from unbag_paper.compiled.accelerator import CompiledAccelerator, engine_settings

__all__ = ["CompiledAccelerator", "engine_settings"]
