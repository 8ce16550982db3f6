"""What classifiers and regressors share: reading instances from arrays and frames, describing."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from unbag.bags import Task
from unbag.estimators.saving import plain_parameters
from unbag.frames import TableEncoder, frame_encoder

__all__ = ["InstanceEstimator"]

Array = NDArray[Any]


class InstanceEstimator(BaseEstimator):
    """Base of all estimators. With metadata routing on, ``groups=`` feeds `fit` and `score`.

    A frame with strings, categories, dates or missing values is encoded by `encoder_`, a
    `TableEncoder`; one of plain numbers is used as it is.
    """

    task_: Task
    encoder_: TableEncoder | None
    __metadata_request__fit = {"bags": "groups"}  # noqa: RUF012
    __metadata_request__score = {"bags": "groups"}  # noqa: RUF012
    __metadata_request__partial_fit = {"bags": "groups"}  # noqa: RUF012

    def _numbers(self, X: Any, *, reset: bool, **checks: Any) -> Any:
        """Validate instances; a frame with text, dates or gaps is encoded by a `TableEncoder`."""
        if reset:
            self.encoder_ = frame_encoder(X)
        if self.encoder_ is not None:
            X = self.encoder_.transform(X)
        return validate_data(self, X, reset=reset, **checks)

    @staticmethod
    def _input_checks() -> dict[str, Any]:
        return {"dtype": [np.float32, np.uint8], "allow_nd": True, "ensure_min_samples": 2}

    def _instances(self, X: Any) -> Array:
        check_is_fitted(self)
        checks = self._input_checks() | {"ensure_min_samples": 1}
        return np.asarray(self._numbers(X, reset=False, **checks))

    def _description(self) -> dict[str, Any]:
        """What a model folder says of any estimator."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return {
            "kind": type(self).__name__,
            "task": self.task_,
            "n_features": int(self.n_features_in_),
            "feature_names": None if names is None else names.tolist(),
            "encoder": None if self.encoder_ is None else self.encoder_.to_dict(),
            "parameters": plain_parameters(self.get_params(deep=False)),
        }

    @classmethod
    def _described(cls, description: dict[str, Any]) -> Self:
        """Read what `_description` wrote."""
        model = cls(**description["parameters"])
        model.task_ = description["task"]
        model.n_features_in_ = description["n_features"]
        encoder = description["encoder"]
        model.encoder_ = None if encoder is None else TableEncoder.from_dict(encoder)
        if description["feature_names"] is not None:
            model.feature_names_in_ = np.asarray(description["feature_names"], dtype=object)
        return model
