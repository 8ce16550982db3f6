"""`BagClassifier`: a neural net trained on bags, behind scikit-learn's interface."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from unbag.arguments import check_choice
from unbag.bags import Bags, Task
from unbag.engine import Criterion, Settings, Trial, TrialResult
from unbag.engine.evaluate import scores_of
from unbag.estimators.base import BagEstimator
from unbag.estimators.measuring import FitPlan, train_and_measure, train_with_patience
from unbag.estimators.saving import ModelFolderError, read_folder, write_folder
from unbag.estimators.telling import TellsItsRisk
from unbag.evaluation.risk import RiskEstimate
from unbag.models import ModelBuilder, get_model
from unbag.randomness import draw_seed
from unbag.rules import Rule, get_rule

__all__ = ["BagClassifier"]

Array = NDArray[Any]


class BagClassifier(TellsItsRisk, BagEstimator):
    """Neural classifier for single instances, learned from the average labels of bags.

    Parameters
    ----------
    rule : str or Rule
        Learning rule: a key of `unbag.rules.RULES`, or an object such as
        ``DebiasedSquare(debias="moving")``.
    model : str or function
        Architecture: "mlp" (for tables; standardises its inputs), "linear", "mlp100", "mlp1000",
        "cnn_small", "cnn_large", "cnn_padded" (the large one with padding), "cnn_small_plain",
        "cnn_large_plain" (without dropout), or a function
        ``(input_shape, n_outputs) -> torch.nn.Module``.
    learning_rate : float
        Step size of Adam.
    max_epochs : int
        Passes over the bags; fewer if `patience` stops them.
    bags_per_batch : int, optional
        None finds a number between four and what makes 500 instances.
    redraw : bool
        Whether each epoch cuts the bags into batches anew.
    schedule : {"constant", "cosine"}
        Whether the learning rate stays, or falls to zero along half a cosine.
    validation_share : float or None
        Share of the bags that are set aside, whole, until the error has been estimated from them;
        see Notes. 0 or None trains on all bags from the start and estimates nothing.
    patience : int, optional
        Epochs without a better held-out risk before training stops. Then one half of the bags set
        aside chooses the epoch, the other estimates the error, and neither is trained on.
    criterion : {"zero_one", "square"}
        Which risk chooses the epoch, if there is `patience`; that of the scores varies less from
        bag to bag than the error of hard predictions.
    device : str
        Where torch trains, such as "cpu" or "cuda".
    random_state : int, RandomState, Generator or None
        Seed of weights, batches and bags set aside; None draws one.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    classes_ : array
        Labels that `predict` gives.
    result_ : TrialResult
        The trained net and its history.
    risk_ : RiskEstimate or None
        Error of single predictions, with an interval, from bags set aside; None without any.
        ``print(clf)`` and notebooks show it in a line.
    n_features_in_ : int
        Features of an instance.

    Notes
    -----
    With the default rule the training loss is an unbiased estimate of the instance square loss, for
    bags that are random groups of i.i.d. instances.

    `noise_variance` takes the noise out of `risk_` and of the choice of the epoch. The net itself
    depends on it with `count_likelihood` and `count_posterior` only, which weigh noisy bags less.
    Noise that is independent of the instances leaves the gradient of the default rule unbiased, and
    its variance is subtracted from the loss as a constant; the other rules disregard it. If some
    bags are much noisier than others, `BagRidgeClassifier` and `BagBoostingClassifier` weigh these
    less in any case.

    Without `patience` a fit has three steps: the net is trained on the bags that are kept; its
    error is estimated on those set aside; they join the others, and the net is trained on all bags
    for half as many epochs again. So no bag is lost, and a fit takes 1.3 to 1.5 times as long. If
    fewer than 10 bags would be set aside, four nets leave out a quarter of them each, which takes
    3.5 times as long; below 10 bags nothing is estimated. `risk_` is the error of the nets before
    the last step, which on average is that of the final net or a little more:
    ``benchmarks/fit_risk.py`` measures how much.

    References
    ----------
    li2024optimistic

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3)); labels = X[:, 0] * X[:, 1] > 0
    >>> bags = np.repeat(np.arange(100), 10)
    >>> y = labels.reshape(100, 10).mean(axis=1)[bags]
    >>> clf = BagClassifier(max_epochs=50, random_state=0).fit(X, y, bags=bags)
    >>> bool((clf.predict(X) == labels).mean() > 0.8)
    True
    >>> clf.risk_.n_bags
    20
    """

    def __init__(
        self,
        rule: str | Rule = "debiased_square",
        model: str | ModelBuilder = "mlp",
        *,
        learning_rate: float = 3e-3,
        max_epochs: int = 200,
        bags_per_batch: int | None = None,
        redraw: bool = True,
        schedule: Literal["constant", "cosine"] = "constant",
        validation_share: float | None = 0.2,
        patience: int | None = None,
        criterion: Criterion = "square",
        device: str = "cpu",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.rule = rule
        self.model = model
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.bags_per_batch = bags_per_batch
        self.redraw = redraw
        self.schedule = schedule
        self.validation_share = validation_share
        self.patience = patience
        self.criterion = criterion
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        bags: Any = None,
        noise_variance: Any = None,
        task: Task | None = None,
    ) -> BagClassifier:
        """Train on bags.

        Parameters
        ----------
        X : array of shape (n_instances, ...)
        y : array of shape (n_instances,) or (n_instances, n_classes)
            Proportion of the instance's bag; without `bags`, the instance's own label.
        bags : array of shape (n_instances,), optional
            Bag of each instance. None means bags of one, which is supervised learning.
        noise_variance : float, mapping from bag, or array like `y`, optional
            Known variance of zero-mean noise in the proportions, which `risk_` is corrected for;
            only the rules of counts weigh noisy bags less, see Notes.
        task : {"binary", "multiclass", "multilabel"}, optional
            None reads it off the proportions: several that add up to one are of classes.
        """
        return self._train(self._read(X, y, bags, noise_variance, task))

    def fit_bags(self, data: Bags) -> BagClassifier:
        """Train on a `Bags`."""
        self._adopt(data.task, data.n_outputs, data.X.shape[1])
        return self._train(data)

    def adopt(
        self, result: TrialResult, *, task: Task, n_outputs: int, n_features: int
    ) -> BagClassifier:
        """Take over a net that was trained elsewhere, such as on bags larger than memory."""
        self._adopt(task, n_outputs, n_features)
        self.result_, self.n_outputs_, self.risk_ = result, n_outputs, None
        return self

    def _train(self, data: Bags) -> BagClassifier:
        check_choice("criterion", self.criterion, get_args(Criterion))
        trial = Trial(get_rule(self.rule), self.learning_rate, draw_seed(self.random_state))
        self.n_outputs_ = data.n_outputs
        plan = FitPlan(self.model, self._settings(), self.validation_share)
        if self.patience is None:
            self.result_, self.risk_ = train_and_measure(trial, data, plan)
        else:
            self.result_, self.risk_ = train_with_patience(trial, data, plan, self.criterion)
        return self

    def _settings(self) -> Settings:
        return Settings(
            max_epochs=self.max_epochs,
            bags_per_batch=self.bags_per_batch,
            patience=self.patience,
            criterion=None if self.patience is None else "held_out_risk",
            redraw=self.redraw,
            schedule=self.schedule,
            device=self.device,
            progress=self.verbose,
        )

    def decision_function(self, X: Any) -> Array:
        """Logit of the positive class, or of every class."""
        probabilities = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            logs = np.log(probabilities)
        return logs[:, 1] - logs[:, 0] if self.task_ == "binary" else logs

    def _scores(self, X: Array) -> Array:
        return scores_of(self.result_, X, task=self.task_)

    def save(self, folder: str | Path) -> Path:
        """Write `model.safetensors` and `model.json` into a folder.

        A net from a function of your own is saved too, but `load` must be given that function.
        """
        description = {
            "kind": type(self).__name__,
            "task": self.task_,
            "classes": self.classes_.tolist(),
            "n_features": int(self.n_features_in_),
            "n_outputs": self.n_outputs_,
            "input_shape": list(self._input_shape),
            "model": self.model if isinstance(self.model, str) else None,
            "rule": {"name": get_rule(self.rule).name, **asdict(get_rule(self.rule))},  # type: ignore[call-overload]
            "best_epoch": self.result_.best_epoch,
            "risk": None if self.risk_ is None else asdict(self.risk_),
            "stopped": self.result_.stopped,
            "trial": {"learning_rate": self.learning_rate, "seed": self.result_.trial.seed},
        }
        tensors = {f"net.{n}": t.numpy() for n, t in self.result_.model.state_dict().items()}
        tensors |= {f"history.{n}": np.asarray(v) for n, v in self.result_.history.items()}
        return write_folder(folder, description, tensors)

    @classmethod
    def load(cls, folder: str | Path, *, model: ModelBuilder | None = None) -> BagClassifier:
        """Read a folder written by `save`. Nothing in it is executed.

        Parameters
        ----------
        folder : path
        model : function, optional
            The function the net was built with, if it was not one of the library's names.
        """
        description, tensors = read_folder(folder, kind=cls.__name__)
        builder = description["model"] or model
        if builder is None:
            raise ModelFolderError(
                f"{folder} holds a net of your own: pass `model`, the function that built it."
            )
        options = dict(description["rule"])
        rule = get_rule(options.pop("name"), **options)
        clf = cls(rule, builder, learning_rate=description["trial"]["learning_rate"])
        clf.task_, clf.n_outputs_ = description["task"], description["n_outputs"]
        clf.classes_ = np.asarray(description["classes"])
        clf.n_features_in_ = description["n_features"]
        clf.risk_ = None if description["risk"] is None else RiskEstimate(**description["risk"])
        clf.result_ = _read_result(clf, description, tensors)
        return clf

    @property
    def _input_shape(self) -> tuple[int, ...]:
        return self.result_.input_shape


def _read_result(
    clf: BagClassifier, description: dict[str, Any], tensors: dict[str, Array]
) -> TrialResult:
    shape = tuple(description["input_shape"])
    net = get_model(clf.model)(shape, clf.n_outputs_).eval()
    state = {n.removeprefix("net."): torch.tensor(t) for n, t in tensors.items() if n[:4] == "net."}
    try:
        net.load_state_dict(state)
    except RuntimeError as error:
        raise ModelFolderError(f"The saved weights do not fit the net: {error}") from error
    history = {n.removeprefix("history."): t for n, t in tensors.items() if n[:8] == "history."}
    trial = Trial(get_rule(clf.rule), clf.learning_rate, description["trial"]["seed"])
    return TrialResult(
        trial, net, history, description["best_epoch"], description["stopped"], False, shape
    )
