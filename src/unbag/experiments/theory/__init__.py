"""Every claim of the paper as an experiment."""

from unbag.experiments.theory.run import EXPERIMENTS, claims_markdown, reproduce_theory

__all__ = ["EXPERIMENTS", "claims_markdown", "reproduce_theory"]
