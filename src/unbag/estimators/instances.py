"""Base classes of estimators: validation of `X`, `fit_bags`, tags, saving, loading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from unbag.arrays import Array, Arrays
from unbag.bags import Bags, Task
from unbag.errors import BagDataError
from unbag.estimators.saving import plain_parameters, read_folder, write_folder
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.results import Baseline
from unbag.frames import TableEncoder, frame_encoder

# Options of scikit-learn's validation.
ARRAYS = {"dtype": [np.float32, np.uint8], "allow_nd": True, "ensure_min_samples": 2}
TABLES = {"dtype": [np.float64, np.float32], "ensure_min_samples": 2}
TABLES_WITH_GAPS = TABLES | {"ensure_all_finite": "allow-nan"}


class InstanceEstimator(BaseEstimator):
    """Base of all estimators. With metadata routing on, ``groups=`` is passed to `fit` and `score`.

    A frame with strings, categories, dates or missing values is encoded by `encoder_`, a
    `TableEncoder`; one of plain numbers is used directly.
    """

    _checks: ClassVar[dict[str, Any]] = TABLES
    _unsaved: ClassVar[tuple[str, ...]] = ()  # parameters that hold other estimators
    _state: ClassVar[tuple[str, ...]] = ()  # learned attributes that a model folder holds
    task_: Task
    encoder_: TableEncoder | None
    __metadata_request__fit = {"bags": "groups"}  # noqa: RUF012
    __metadata_request__score = {"bags": "groups"}  # noqa: RUF012

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = "ensure_all_finite" in self._checks
        return tags

    def fit_bags(self, data: Bags) -> Self:
        """Fit to a `Bags`."""
        self._adopt(data.task, data.n_outputs, data.X.shape[1])
        return self._fit(data)

    def _adopt(self, task: Task, n_outputs: int, n_features: int) -> None:
        """Set the attributes that `fit` would set, for validated bags."""
        raise NotImplementedError

    def _fit(self, data: Bags) -> Self:
        """Learn from bags, with `task_` and `classes_` set."""
        raise NotImplementedError

    def _scores(self, X: Array) -> Array:
        """Amounts, or probabilities of shape (n,) or (n, n_outputs)."""
        raise NotImplementedError

    def _refuse_no_target(self, y: Any) -> None:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        if hasattr(y, "keys") and not hasattr(y, "shape"):
            raise BagDataError(
                "y must hold one value per instance, got a mapping. Pass "
                "BagTarget(bags, averages), which takes a mapping from bag to average."
            )

    def _numbers(self, X: Any, *, reset: bool, **options: Any) -> Any:
        """Validate instances; a frame with text, dates or missing values is encoded."""
        if reset:
            self.encoder_ = frame_encoder(X)
        if self.encoder_ is not None:
            X = self.encoder_.transform(X)
        try:
            return validate_data(self, X, reset=reset, **self._checks | options)
        except ValueError as error:
            first, rest, _ = str(error).partition("\n")
            if not (rest and "contains NaN" in first):
                raise
            raise ValueError(
                f"{first} Pass a data frame, whose gaps are encoded, or fill them in. "
                "BagStackingClassifier, BagEMClassifier and boosting learn from gaps as they are."
            ) from None

    def _instances(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.asarray(self._numbers(X, reset=False, ensure_min_samples=1))

    def save(self, folder: str | Path) -> Path:
        """Write `model.safetensors` and `model.json` into a folder."""
        check_is_fitted(self)
        parameters = self.get_params(deep=False)
        names, classes = getattr(self, "feature_names_in_", None), getattr(self, "classes_", None)
        description = {
            "kind": type(self).__name__,
            "task": self.task_,
            "n_features": int(self.n_features_in_),
            "feature_names": None if names is None else names.tolist(),
            "classes": None if classes is None else classes.tolist(),
            "encoder": None if self.encoder_ is None else self.encoder_.to_dict(),
            "parameters": plain_parameters(
                {name: v for name, v in parameters.items() if name not in self._unsaved}
            ),
        }
        about, tensors = self._learned()
        return write_folder(folder, description | about, tensors)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a folder written by `save`. Nothing in it is executed."""
        return cls._load(folder)

    @classmethod
    def _load(cls, folder: str | Path, **parameters: Any) -> Self:
        """Read a folder, with some parameters given instead of saved."""
        description, tensors = read_folder(folder, kind=cls.__name__)
        description["parameters"] |= parameters
        model = cls(**description["parameters"])
        model.task_, model.n_features_in_ = description["task"], description["n_features"]
        encoder = description["encoder"]
        model.encoder_ = None if encoder is None else TableEncoder.from_dict(encoder)
        if description["feature_names"] is not None:
            model.feature_names_in_ = np.asarray(description["feature_names"], dtype=object)
        if description["classes"] is not None:
            model.classes_ = np.asarray(description["classes"])
        model._restore(description, tensors, Path(folder))
        return model

    def _learned(self) -> tuple[dict[str, Any], Arrays]:
        """Fitted state: plain values, and arrays."""
        found = {name: getattr(self, f"{name}_") for name in self._state}
        arrays = {name: value for name, value in found.items() if isinstance(value, np.ndarray)}
        plain = {
            name: vars(value) if isinstance(value, Estimate | Baseline) else value
            for name, value in found.items()
            if name not in arrays
        }
        return plain, arrays

    def _restore(self, description: dict[str, Any], tensors: Arrays, folder: Path) -> None:
        """Set what `_learned` returned."""
        for name in self._state:
            value: Any = tensors[name] if name in tensors else description[name]
            kind = {"risk": Estimate, "baseline": Baseline}.get(name)
            setattr(self, f"{name}_", kind(**value) if kind and value else value)


class LinearEstimator(InstanceEstimator):
    """Weights and intercept of linear scores, flat for a single output."""

    def _set_weights(self, coefficients: Array, intercept: Array) -> None:
        single = self.task_ in ("binary", "amount")
        self.coef_ = coefficients[:, 0] if single else coefficients
        self.intercept_ = float(intercept[0]) if single else intercept


def penalty_grid(penalties: Sequence[float] | None, default: Array) -> Array:
    """The penalties to choose from, or the default."""
    grid = default if penalties is None else np.asarray(penalties)
    if grid.ndim != 1 or len(grid) == 0 or not (np.isfinite(grid) & (grid >= 0)).all():
        raise ValueError(
            f"penalties must be a sequence of non-negative numbers, got {penalties!r}."
        )
    return grid


def bags_around(X: Array, **described: Any) -> Bags:
    """Bags of validated features, which may contain missing values."""
    return replace(Bags.from_arrays(np.zeros(len(X)), **described), X=X)


def check_lengths(X: Array, y: Array) -> None:
    """Raise if instances and targets differ in number."""
    if len(X) != len(y):
        raise BagDataError(
            f"X and y must have the same length: inconsistent numbers of samples, "
            f"{len(X)} and {len(y)}."
        )
