"""Compiled steps and nets side by side on a GPU: the reproduction's way of training."""

from unbag_paper.compiled.settings import EngineSettings
from unbag_paper.compiled.training import CompiledTraining, train

__all__ = ["CompiledTraining", "EngineSettings", "train"]
