"""`BagRegressor`: a neural net for single amounts, trained on averages of bags."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from unbag.arguments import check_choice, check_whole
from unbag.arrays import Array
from unbag.bags import Bags
from unbag.estimators.instances import TABLES
from unbag.estimators.net_fit import NetFit
from unbag.estimators.net_folder import NetEstimator
from unbag.estimators.regressor_base import BagRegressorBase
from unbag.evaluation.risk import pairwise_value
from unbag.models import MODELS
from unbag.randomness import draw_seed
from unbag.rules import DebiasedSquare
from unbag.training import Settings, Trial
from unbag.training.scoring import scores_of


@dataclass(eq=False, repr=False)
class BagRegressor(NetEstimator, BagRegressorBase):
    """Neural regression of single amounts, learned from averages of bags.

    Parameters
    ----------
    model : str
        Architecture: a key of `unbag.models.MODELS`.
    n_nets : int
        Number of nets that are averaged.
    blend_ridge : bool
        Whether the nets are averaged with ridges, weighted by their errors on held-out bags.
    learning_rate, max_epochs, bags_per_batch, validation_share, device, random_state
        As for `BagClassifier`.

    Attributes
    ----------
    result_ : TrialResult
        The trained net, for amounts minus `centre_` divided by `scale_`.
    risk_ : Estimate or None
        Mean squared error of single amounts, from held-out bags.
    centre_, scale_ : float
        Mean and deviation of single amounts, estimated from the bags.

    Notes
    -----
    The loss is that of `unbag.rules.DebiasedSquare` on amounts. For random bags it is an unbiased
    estimate of the squared error of single amounts. Instances are converted to single precision.
    Noise of known variance leaves the gradient unbiased.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)); amounts = 10 * np.abs(X[:, 0])
    >>> bags = np.repeat(np.arange(200), 10)
    >>> y = amounts.reshape(200, 10).mean(axis=1)[bags]
    >>> model = BagRegressor(max_epochs=50, random_state=0).fit(X, y, bags=bags)
    >>> bool(model.score(X, amounts) > 0.7)
    True
    """

    _state = (*NetEstimator._state, "centre", "scale")
    _checks = TABLES | {"dtype": np.float32}
    rule, n_outputs_ = DebiasedSquare(), 1

    model: str = "mlp"
    _: KW_ONLY
    n_nets: int = 3
    blend_ridge: bool = True
    learning_rate: float = 3e-3
    max_epochs: int = 200
    bags_per_batch: int | None = None
    validation_share: float | None = 0.2
    device: str = "cpu"
    random_state: Any = None

    def _fit_amounts(self, data: Bags) -> None:
        check_choice("model", self.model, tuple(MODELS))
        check_whole("n_nets", self.n_nets)
        self.centre_ = float(data.prior)
        variance = pairwise_value(data.proportions - self.centre_, data.sizes)
        self.scale_ = float(np.sqrt(variance)) or 1.0
        trial = Trial(self.rule, self.learning_rate, draw_seed(self.random_state))
        settings = Settings.from_estimator(self, batch_seed=trial.seed, redraw=True)
        options = self.validation_share or 0.0, self.blend_ridge
        nets = NetFit(trial, self.n_nets, self.model, settings, *options)
        noise = None if data.noise_variance is None else data.noise_variance / self.scale_**2
        values = (data.proportions - self.centre_) / self.scale_
        self.result_, risk = nets.fit(replace(data, proportions=values, noise_variance=noise))
        # In the units of the amounts.
        self.risk_ = None if risk is None else risk.scaled(self.scale_**2)

    def _scores(self, X: Array) -> Array:
        return self.centre_ + self.scale_ * scores_of(self.result_, X, task="amount")
