"""Every claim of the paper as an experiment."""

from unbag_paper.claims.run import EXPERIMENTS, claims_markdown, reproduce_theory

__all__ = ["EXPERIMENTS", "claims_markdown", "reproduce_theory"]
