"""`BagClassifier`: a neural net trained on bags, with scikit-learn's interface."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal, Self

from unbag.arguments import check_whole
from unbag.arrays import Array, Arrays
from unbag.bags import Bags
from unbag.errors import BagDataError
from unbag.estimators.base import BagEstimator, RiskRepr
from unbag.estimators.instances import ARRAYS
from unbag.estimators.net_fit import NetFit
from unbag.estimators.net_folder import NetEstimator
from unbag.estimators.saving import ModelFolderError
from unbag.evaluation.results import trivial_baseline
from unbag.models import ModelBuilder
from unbag.randomness import draw_seed
from unbag.rules import RULES, Rule, get_rule
from unbag.training import Settings, Trial
from unbag.training.batches import are_pixels
from unbag.training.scoring import scores_of

# Nets averaged on a table of few rows, and of many: two a fold, or one.
N_NETS, N_NETS_MANY, MANY_ROWS = 10, 5, 5000


@dataclass(eq=False, repr=False)
class BagClassifier(RiskRepr, NetEstimator, BagEstimator):
    r"""Neural classifier for single instances, learned from the average labels of bags.

    Parameters
    ----------
    rule : str or Rule
        Learning rule: a key of `unbag.rules.RULES`, or an object such as
        ``DebiasedSquare(debias="moving")``.
    model : str or function
        Architecture: a key of `unbag.models.MODELS`, such as "mlp" (for tables; standardises its
        inputs), "linear" or "cnn_small", or a function ``(input_shape, n_outputs) -> Module``.
    n_nets : int, optional
        Number of nets that are averaged. By default 10 for a table (5 from 5,000 rows on) and an
        architecture of the library, otherwise 1.
    blend_ridge : bool, optional
        Whether to train nets in five folds of bags and average them with ridges; see Notes. By
        default on tables.
    learning_rate : float
        Step size of Adam.
    max_epochs : int
        Maximum passes over the bags. On tables the cross-fitted risk may choose fewer.
    bags_per_batch : int, optional
        By default about 500 instances' worth, and at least four.
    schedule : {"constant", "cosine"}
        Learning rate: constant, or decreasing to zero along half a cosine.
    validation_share : float or None
        Share of the bags held out to estimate the error; see Notes. Folds hold out a fifth. 0 or
        None trains on all bags, estimates nothing and blends nothing.
    refit : bool
        Whether training ends with the held-out bags included. False returns the evaluated model.
    device : str
        Device of torch, such as "cpu" or "cuda".
    random_state : int, RandomState, Generator or None
        Seed of weights, batches and held-out bags; None draws one.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    classes_ : array
        Class labels.
    result_ : TrialResult
        The trained net and its history.
    risk_ : Estimate or None
        Error of single predictions, with an interval, from held-out bags, if any.
    baseline_ : Baseline
        Majority class and its error.
    risk_is_final_ : bool
        Whether `risk_` is the error of the returned classifier, rather than of nets trained without
        the held-out bags.
    n_features_in_ : int
        Number of features.
    pixels_ : bool
        Whether it was fitted on images of bytes, which are divided by 255; other images are then
        rejected. Bytes in a table are ordinary numbers.

    Notes
    -----
    With the default rule the training loss is an unbiased estimate of the instance square loss, for
    bags that are random groups of i.i.d. instances. Instances are converted to single precision.

    `noise_variance` is removed from `risk_` and from the choice of the epoch. Only
    `count_likelihood` and `count_posterior` also give noisy bags less weight in training. Under the
    default rule independent noise leaves the gradient unbiased, and its variance is a constant of
    the loss; the other rules ignore it. If some bags are much noisier than others,
    `BagRidgeClassifier` and `BagBoostingClassifier` give these less weight.

    On a table, nets are cross-fitted in five folds of whole bags, beside two closed-form models: a
    ridge on the features (`BagRidgeClassifier`) and a ridge on `RadialUnits`, the memberships in
    256 clusters. Cross-fitted scores estimate the risk of every mixture without labels, and so
    choose the epoch of all nets and the convex weights. The starting point gives the two ridges
    equal weights and the nets none. From there weights move towards the best ones by :math:`(1 -
    z^2 s^2 / \delta^2)_+`, with :math:`\delta` the gain in risk, :math:`s` its standard error, and
    :math:`z` 1 between the ridges and 2 for the nets. So few bags give a ridge, and many the nets.
    The final nets are those of the folds, averaged; `risk_` is the cross-fitted error of the
    mixture. It is slightly too low if few bags chose epoch and weights, and slightly too high
    because each model lacked a fifth of the bags.

    Otherwise a fit trains on the kept bags, estimates the error from the
    held-out bags, and continues on all bags for half as many epochs. If fewer than 10 bags would be
    held out, each net leaves out a fifth of the bags instead, and the final nets are trained on all
    bags from the start; below 10 bags nothing is estimated. So `risk_` is the error before the last
    step, on average that of the final classifier or slightly more (``benchmarks/fit_risk.py``).
    With ``refit=False`` the held-out bags are used only for evaluation.

    References
    ----------
    li2024optimistic

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3)); labels = X[:, 0] * X[:, 1] > 0
    >>> bags = np.repeat(np.arange(100), 10)
    >>> y = labels.reshape(100, 10).mean(axis=1)[bags]
    >>> clf = BagClassifier(max_epochs=50, random_state=0).fit(X, y, bags=bags)
    >>> bool((clf.predict(X) == labels).mean() > 0.8)
    True
    >>> clf.risk_.n_bags
    100
    """

    _state = (*NetEstimator._state, "pixels", "risk_is_final", "baseline")
    _checks = ARRAYS

    rule: str | Rule = "debiased_square"
    model: str | ModelBuilder = "mlp"
    _: KW_ONLY
    n_nets: int | None = None
    blend_ridge: bool | None = None
    learning_rate: float = 3e-3
    max_epochs: int = 200
    bags_per_batch: int | None = None
    schedule: Literal["constant", "cosine"] = "constant"
    validation_share: float | None = 0.2
    refit: bool = True
    device: str = "cpu"
    random_state: Any = None
    verbose: bool = False

    def _fit(self, data: Bags) -> Self:
        check_whole("n_nets", self.n_nets, optional=True)
        trial = Trial(get_rule(self.rule), self.learning_rate, draw_seed(self.random_state))
        self.n_outputs_, self.pixels_ = data.n_outputs, are_pixels(data.X)
        self.baseline_ = trivial_baseline(data, self.classes_)
        self.risk_is_final_ = not self.refit
        settings = Settings.from_estimator(
            self,
            batch_seed=trial.seed,
            redraw=True,
            progress=self.verbose,
        )
        on_a_table = isinstance(self.model, str) and data.X.ndim == 2
        blend = on_a_table if self.blend_ridge is None else self.blend_ridge
        default = N_NETS if len(data.X) < MANY_ROWS else N_NETS_MANY
        n_nets = self.n_nets or (default if on_a_table else 1)
        options = self.validation_share or 0.0, blend, self.refit
        self.result_, self.risk_ = NetFit(trial, n_nets, self.model, settings, *options).fit(data)
        return self

    def _scores(self, X: Array) -> Array:
        if X.ndim > 2 and self.pixels_ != are_pixels(X):
            fitted, given = ("", "not ") if self.pixels_ else ("not ", "")
            raise BagDataError(
                f"{type(self).__name__} was fitted on images that were {fitted}bytes, these are "
                f"{given}bytes. Bytes are divided by 255, other numbers are taken as they are: "
                "pass X as for fit."
            )
        return scores_of(self.result_, X, task=self.task_)

    @classmethod
    def load(
        cls, folder: str | Path, *, model: ModelBuilder | None = None, rule: Rule | None = None
    ) -> BagClassifier:
        """Read a folder written by `save`. Nothing in it is executed.

        Parameters
        ----------
        folder : path
        model : function, optional
            Function that built the net, unless it has a name in the library.
        rule : Rule, optional
            Rule of the training, unless it belongs to the library.
        """
        given = {"model": model, "rule": rule}
        return cls._load(folder, **{name: v for name, v in given.items() if v is not None})

    def _restore(self, description: dict[str, Any], tensors: Arrays, folder: Path) -> None:
        if "model" not in description["parameters"]:
            raise ModelFolderError(
                "The folder holds a net of your own: pass `model`, the function that built it."
            )
        if isinstance(self.rule, dict):
            self.rule = _described_rule(**self.rule)
        super()._restore(description, tensors, folder)


def _described_rule(name: str, **options: Any) -> Rule:
    if name not in RULES:
        raise ModelFolderError(
            f"The net was trained with a rule of your own, {name!r}: pass `rule`, that rule."
        )
    return get_rule(name, **options)
