"""The estimated error of a fitted classifier, in print and in notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

from sklearn.base import BaseEstimator

from unbag.evaluation.estimate import Estimate
from unbag.evaluation.results import Baseline


class RiskRepr(BaseEstimator):
    """Adds a line about `risk_` to scikit-learn's display of an estimator.

    `repr` is unchanged, because clones and tools read it.
    """

    risk_: Estimate | None
    baseline_: Baseline | None

    def __str__(self) -> str:
        line = self._risk_line()
        return f"{self!r}\n{line}" if line else repr(self)

    def _repr_html_inner(self) -> str:
        return self._with_line(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        bundle["text/plain"] = str(self)
        if "text/html" in bundle:
            bundle["text/html"] = self._with_line(bundle["text/html"])
        return bundle

    def _with_line(self, html: str) -> str:
        line = self._risk_line()
        return f"{html}<p>{escape(line)}</p>" if line else html

    def _risk_line(self) -> str:
        risk = getattr(self, "risk_", None)
        if risk is None:
            return ""
        line = f"estimated error {risk.percent.removesuffix('bags')}held-out bags"
        if not getattr(self, "risk_is_final_", True):
            line += ", by nets that had not seen them"
        baseline = getattr(self, "baseline_", None)
        return line if baseline is None else f"{line}; {baseline}. {baseline.verdict(risk)}".strip()
