"""Result of `check_bags`: one finding per check, and a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from unbag.evaluation.printing import Printed, TextTable
from unbag.extras import import_extra

Bias = Literal["upper", "lower", "unreliable", "none"]


@dataclass(frozen=True)
class Finding:
    """Result of one check of the bags.

    Attributes
    ----------
    check : str
    p_value : float
        Corrected for the number of checks (Holm); NaN if the check does not apply.
    effect : float
        Size of the effect, described in `detail`.
    detail : str
    raised : bool
        Whether the assumption is rejected.
    bias : {"upper", "lower", "unreliable", "none"}
        Consequence for the estimated risk, if raised.
    advice : str
        What to do about it.
    """

    check: str
    p_value: float
    effect: float
    detail: str
    raised: bool
    bias: Bias
    advice: str


@dataclass(frozen=True)
class BagReport(Printed):
    """All findings about some bags.

    Attributes
    ----------
    findings : list of Finding
    n_bags : int
    level : float
    """

    _width = 110
    findings: list[Finding]
    n_bags: int
    level: float

    @property
    def raised(self) -> list[Finding]:
        """Findings that reject an assumption."""
        return [finding for finding in self.findings if finding.raised]

    @property
    def plausible(self) -> bool:
        """Whether random draws with exact proportions are not rejected."""
        return not self.raised

    @property
    def bias(self) -> Bias:
        """Consequence of the findings for the estimated risk."""
        kinds = {finding.bias for finding in self.raised} - {"none"}
        if not kinds:
            return "none"
        return kinds.pop() if len(kinds) == 1 else "unreliable"

    @property
    def verdict(self) -> str:
        """One sentence."""
        return VERDICTS[self.bias] if self.raised else VERDICTS["plausible"]

    def __getitem__(self, check: str) -> Finding:
        return next(finding for finding in self.findings if finding.check == check)

    def _table(self) -> TextTable:
        rows = []
        for f in self.findings:
            p_value = "" if np.isnan(f.p_value) else f"{f.p_value:.2g}"
            advice = f.advice if f.raised else ""
            rows.append((f"{'! ' * f.raised}{f.check}", p_value, f.detail, advice))
        columns = ("check", "p", "finding", "what to do")
        return TextTable(f"{self.n_bags} bags", columns, rows, after=self.verdict)

    def to_frame(self) -> Any:
        """All findings as a pandas DataFrame, one row per check."""
        pd = import_extra("pandas", extra="pandas", purpose="A frame of findings")
        return pd.DataFrame([vars(finding) for finding in self.findings]).set_index("check")


VERDICTS = {
    "plausible": "No evidence against random bags with exact proportions.",
    "none": "No evidence against random bags, but the features do not predict the proportions.",
    "upper": "These bags are not random: risks estimated from them are upper limits.",
    "lower": "These bags are not random: risks estimated from them are lower limits.",
    "unreliable": "These bags violate the assumptions: risks estimated from them are unreliable.",
}
