"""`BagStackingClassifier`: several learners, weighed without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from unbag.arguments import check_choice
from unbag.arrays import Array, Arrays
from unbag.bags import Bags
from unbag.bags.holdout import block_folds
from unbag.bags.validation import check_proportions_differ
from unbag.errors import BagDataError
from unbag.estimators.base import BlockEstimator, RiskRepr
from unbag.estimators.candidates import (
    Candidates,
    check_candidates,
    default_candidates,
    first_guess,
)
from unbag.estimators.columns import scaled_columns
from unbag.estimators.instances import TABLES_WITH_GAPS
from unbag.estimators.stack_jobs import BagSource, Fit, StackData, fit_all, scaled_features
from unbag.estimators.stack_weights import CrossFit, bagged_weights
from unbag.evaluation.checks import Grouping, find_grouping
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.results import trivial_baseline
from unbag.evaluation.risk import estimate_risk
from unbag.parallel import get_executor
from unbag.randomness import draw_seed

# Models of less weight change no decision, and cost a fit to all bags.
NEGLIGIBLE = 0.01
# Fewer bags cannot be held out from each other.
MIN_BAGS = 4


@dataclass(eq=False, repr=False)
class BagStackingClassifier(RiskRepr, BlockEstimator):
    r"""A convex mixture of learners, weighed by bags that none of them has seen.

    Every candidate is fitted whole inside each of `cv` folds of bags. For weights :math:`w` that
    add up to one the pairwise risk of the mixture of held-out scores is a quadratic form,

    .. math:: \hat R(w) = w^\top Q \, w,

    with :math:`Q` from residuals of bags alone: see `risk_matrix`. Its minimum over the simplex,
    drawn to a first guess :math:`w_0` by the penalty :math:`s |w - w_0|^2` with
    :math:`s = O(1 / n)`, is averaged over draws of the :math:`n` bags. For natural groups, where
    the pairwise risk is biased, the likelihood of held-out counts with an effect of each bag takes
    the place of the risk. Where random bags allow that nothing was learned, the mixture is shrunk
    to the constant prior: see `shrunk_to_constant`.

    Parameters
    ----------
    candidates : sequence of (str, estimator), optional
        Names and estimators that take bags. By default: the constant prior, a Gaussian process,
        EM around boosted trees of several sizes and starts and, from a hundred bags on, logistic
        regression by counts and trees boosted by the likelihood of counts. For natural groups:
        prior, process, linear models, the naive one among them, and EM around trees.
    grouping : {"auto", "random", "natural"}
        Whether bags are random groups of instances. "auto" tests whether proportions and features
        vary between bags as they do for random groups.
    quick : bool
        Fewer candidates, folds and rounds.
    cv : int, optional
        Folds of whole bags; by default 5, or 3 if quick.
    n_jobs : int
        Fits that run side by side.
    ray : str, optional
        Address of a Ray cluster that the fits run on, or "local" for Ray on this machine. The fits
        of a worker that is lost run again, so the model is the same.
    verbose : bool
        Show a progress bar with the candidate at work.
    random_state : int, RandomState, Generator or None
        Seed of folds, draws and candidates.

    Attributes
    ----------
    classes_ : array
        Labels that `predict` gives.
    weights_ : dict of str to float
        Weight of each candidate.
    candidates_ : dict of str to estimator
        Fitted to all bags; those whose weight is negligible are left out.
    candidate_risks_ : dict of str to Estimate
        Cross-fitted square risk of each; empty for natural groups, where it would be biased, and
        after `load`.
    risk_ : Estimate or None
        Cross-fitted error of the mixture, whose weights for each fold come from the others; None
        for natural groups and for too few bags.
    baseline_ : Baseline
        The most frequent label, and how often it is wrong.
    grouping_ : {"random", "natural"}

    Notes
    -----
    The oracle inequality: for random bags, :math:`n` of them, and :math:`M` candidates, the risk
    of the mixture with the least penalised :math:`\hat R` exceeds that of the best convex mixture,
    and so of the best candidate, by at most :math:`2 \max_{m,l} |Q_{ml} - E Q_{ml}| + 2 s =
    O(\sqrt{\log M / n})`, because :math:`w^\top Q w` is within that maximum of its expectation for
    all weights at once, and no two weights are further apart than :math:`\sqrt 2`.
    The averaged weights satisfy it up to the convexity of the risk: a mixture is no worse than the
    average of those it is made of. So is the shrunk one, of which the constant prior is a part: a
    small one, unless that prior is hard to beat with these bags.

    `risk_` is of the mixtures that learned from a share of the bags. The returned one learned from
    all, and is usually a little better.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)); labels = X[:, 0] > 0
    >>> bags = np.repeat(np.arange(100), 20)
    >>> y = labels.reshape(100, 20).mean(axis=1)[bags]
    >>> clf = BagStackingClassifier(quick=True, random_state=0).fit(X, y, bags=bags)
    >>> bool((clf.predict(X) == labels).mean() > 0.95)
    True
    """

    _checks = TABLES_WITH_GAPS
    _unsaved = ("candidates",)
    _state = ("grouping", "weights", "risk", "baseline", "centre", "scale")
    risk_is_final_ = True  # cross-fitted

    candidates: Sequence[tuple[str, Any]] | None = None
    _: KW_ONLY
    grouping: Grouping = "auto"
    quick: bool = False
    cv: int | None = None
    n_jobs: int = 1
    ray: str | None = None
    verbose: bool = False
    random_state: Any = None

    def fit_bags(
        self, data: Bags, *, blocks: Array | None = None, source: BagSource | None = None
    ) -> Self:
        """Fit to a `Bags`, whose blocks are given one a bag.

        Workers take the bags from `source` by position, such as from files; None sends them.
        """
        check_proportions_differ(data.proportions)
        self._adopt(data.task, data.n_outputs, data.X.shape[1])
        return self._fit(data, blocks, source)

    def _fit(
        self, data: Bags, blocks: Array | None = None, source: BagSource | None = None
    ) -> Self:
        check_choice("grouping", self.grouping, get_args(Grouping))
        data, seed = data.gathered(), draw_seed(self.random_state)
        self.baseline_ = trivial_baseline(data, self.classes_)
        self.grouping_ = find_grouping(data) if self.grouping == "auto" else self.grouping
        natural = self.grouping_ == "natural"
        given = self.candidates
        if given is None:
            given = default_candidates(data, natural=natural, quick=self.quick, seed=seed)
        named = check_candidates(given)
        n_folds = (3 if self.quick else 5) if self.cv is None else self.cv
        folds = block_folds(data.n_bags, n_folds, seed=seed, blocks=blocks)
        self.centre_, self.scale_ = scaled_columns(data.X)
        shared = StackData(source or data, self.centre_, self.scale_, blocks)
        scores = self._cross_fitted(named, data, folds, shared)
        self._weigh(list(named), scores, data, folds, seed)
        kept = [name for name, weight in self.weights_.items() if weight > 0]
        everything = np.arange(data.n_bags)
        fitted = self._in_parallel([(name, named[name], everything) for name in kept], shared)
        self.candidates_ = dict(zip(kept, fitted, strict=True))
        return self

    def _cross_fitted(
        self, named: Candidates, data: Bags, folds: Array, shared: StackData
    ) -> Array:
        """Scores of shape (n_candidates, n_instances, n_outputs) by fits without the bag."""
        parts = [np.flatnonzero(folds != fold) for fold in range(folds.max() + 1)]
        if min(map(len, parts)) < 2:
            raise BagDataError(
                f"A stack needs at least two bags beside each held-out fold, got {data.n_bags} "
                "bags. Fit a single learner, such as BagRidgeClassifier, or pass other blocks."
            )
        fits: list[Fit] = [(name, e, part) for name, e in named.items() for part in parts]
        fitted = self._in_parallel(fits, shared)
        row_folds = np.repeat(folds, data.sizes)
        scores = np.empty((len(named), data.n_instances, data.n_outputs))
        for i, model in enumerate(fitted):
            candidate, fold = divmod(i, len(parts))
            own = row_folds == fold
            scores[candidate, own] = self._candidate_scores(model, data.X[own])
        return scores

    def _in_parallel(self, fits: list[Fit], shared: StackData) -> list[Any]:
        executor = get_executor(n_jobs=self.n_jobs, ray=self.ray)
        return fit_all(executor, shared, fits, show=self.verbose)

    def _candidate_scores(self, model: Any, X: Array) -> Array:
        features = scaled_features(model, X, self.centre_, self.scale_)
        scores = np.asarray(model.predict_proba(features))
        return scores[:, 1:] if self.task_ == "binary" else scores

    def _weigh(self, names: list[str], scores: Array, data: Bags, folds: Array, seed: int) -> None:
        """Set the weights and the risks."""
        cross = CrossFit.of(scores, data, folds)
        natural = self.grouping_ == "natural"
        by, guess = "likelihood" if natural else "risk", first_guess(names)
        weights = np.full(len(names), 1 / len(names))
        if data.n_bags >= MIN_BAGS and len(names) > 1:
            weights = bagged_weights(cross, by=by, seed=seed, guess=guess)
        weights = np.where(weights < min(NEGLIGIBLE, weights.max()), 0, weights)
        self.weights_ = dict(zip(names, (weights / weights.sum()).tolist(), strict=True))
        self.candidate_risks_: dict[str, Estimate] = {}
        self.risk_: Estimate | None = None
        parts = [np.flatnonzero(folds == fold) for fold in range(folds.max() + 1)]
        if by == "risk" and min(map(len, parts)) >= 2:
            self.candidate_risks_ = {
                name: estimate_risk(own, data, loss="square", parts=parts)
                for name, own in zip(names, scores, strict=True)
            }
            honest = _honest_scores(cross, scores, folds, data, seed, guess)
            self.risk_ = estimate_risk(honest, data, parts=parts)

    def _scores(self, X: Array) -> Array:
        pairs = [(self.weights_[name], model) for name, model in self.candidates_.items()]
        mixed = sum(weight * self._candidate_scores(model, X) for weight, model in pairs)
        return self._by_task(np.clip(mixed, 0, 1))

    def save(self, folder: str | Path) -> Path:
        """Write `model.safetensors`, `model.json`, and a folder for each candidate."""
        check_is_fitted(self)
        written = super().save(folder)
        for i, model in enumerate(self.candidates_.values()):
            model.save(written / f"candidate{i}")
        return written

    def _learned(self) -> tuple[dict[str, Any], Arrays]:
        plain, arrays = super()._learned()
        kinds = [[name, type(model).__name__] for name, model in self.candidates_.items()]
        return plain | {"candidate_kinds": kinds}, arrays

    def _restore(self, description: dict[str, Any], tensors: Arrays, folder: Path) -> None:
        import unbag.estimators as kinds

        super()._restore(description, tensors, folder)
        self.candidate_risks_ = {}
        self.candidates_ = {
            name: getattr(kinds, kind).load(folder / f"candidate{i}")
            for i, (name, kind) in enumerate(description["candidate_kinds"])
        }


def _honest_scores(
    cross: CrossFit, scores: Array, folds: Array, data: Bags, seed: int, guess: Array
) -> Array:
    """Scores of the mixture whose weights come from the other folds."""
    found, row_folds = np.empty(scores.shape[1:]), np.repeat(folds, data.sizes)
    for fold in range(folds.max() + 1):
        others, own = cross.take(np.flatnonzero(folds != fold)), row_folds == fold
        weights = bagged_weights(others, by="risk", seed=seed, n_draws=10, guess=guess)
        found[own] = np.tensordot(weights, scores[:, own], axes=1)
    return np.clip(found, 0, 1)
