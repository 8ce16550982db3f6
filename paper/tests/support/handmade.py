"""Rows made up by hand; imports nothing heavy, since child processes import it."""

from dataclasses import replace

import numpy as np

from unbag_paper.runs.rows import Row
from unbag_paper.runs.trial_spec import TrialSpec


def spec(**changes):
    made = TrialSpec("digits", "0f", "linear", "easy_log", 10, 10, 0.01, seed=0, epochs=3)
    return replace(made, **changes)


def row(made=None, *, errors=(0.3, 0.2, 0.1), risks=None, **changes):
    """A row whose label-free risk is its error unless told otherwise."""
    errors = np.array(errors, dtype=float)
    risks = errors if risks is None else np.array(risks, dtype=float)
    arrays = {
        "loss": errors,
        "test_error": errors,
        "second_half_error": errors + 0.01,
        "held_out_error": risks,
        "held_out_square": risks,
    }
    return Row(replace(made or spec(), **changes), {"seconds": 1.0, "device": "none"}, arrays)


def rows_of(cell, curves, *, data="0f", risks=None):
    """Rows of a cell from ``{(rate, seed): errors}``."""
    risks = risks or {}
    return [
        row(cell.trial(rate, seed, data), errors=errors, risks=risks.get((rate, seed)))
        for (rate, seed), errors in curves.items()
    ]
