"""The shape of residuals, against the moments of labels drawn from the scores themselves."""

import numpy as np
import pytest

from unbag.evaluation.residual_moments import score_moments


def residuals_of(scores, task):
    """Every residual that a label can have, and its chance."""
    n_outputs = scores.shape[1]
    if task == "multiclass":
        labels = np.eye(n_outputs)
        return scores[:, None, :] - labels[None], scores / len(scores)
    residuals = np.stack([scores, scores - 1], axis=1).swapaxes(1, 2)[..., None]
    chances = np.stack([1 - scores, scores], axis=2)
    return residuals.reshape(-1, 2, 1), chances.reshape(-1, 2) / len(scores)


@pytest.mark.parametrize(
    ("task", "n_outputs"), [("binary", 1), ("multilabel", 3), ("multiclass", 4)]
)
def test_moments_are_those_of_labels_that_scores_predict(rng, task, n_outputs):
    scores = rng.dirichlet(np.ones(n_outputs + 1), size=50)[:, :n_outputs]
    if task == "multiclass":
        scores = scores / scores.sum(axis=1, keepdims=True)
    residuals, chances = residuals_of(scores, task)
    squares = (residuals**2).sum(axis=-1)
    second, fourth, sixth = ((chances * squares**m).sum() for m in (1, 2, 3))
    law = score_moments(scores, task)
    assert law.fourth == pytest.approx(fourth / second)
    assert law.sixth == pytest.approx(sixth / second)


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_shares_stand_for_instances_alike(rng, task):
    scores = rng.dirichlet(np.ones(3), size=4)
    scores = scores if task == "multiclass" else scores[:, :1]
    times = np.array([1, 2, 3, 4])
    law = score_moments(np.repeat(scores, times, axis=0), task)
    shared = score_moments(scores, task, shares=times / times.sum())
    assert (shared.fourth, shared.sixth) == pytest.approx((law.fourth, law.sixth))
    alike = score_moments(scores, task)
    assert alike.fourth != pytest.approx(law.fourth)
