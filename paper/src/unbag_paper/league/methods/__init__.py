"""The methods of the league, one file each. `METHODS` is the registry."""

from __future__ import annotations

from unbag_paper.league.methods.ahil import Ahil
from unbag_paper.league.methods.base import Method, Start
from unbag_paper.league.methods.dllp import Dllp
from unbag_paper.league.methods.dsq import DsqMoving, DsqPairwise
from unbag_paper.league.methods.easyllp import EasyLlp
from unbag_paper.league.methods.llp_dc import LlpDc
from unbag_paper.league.methods.llp_mm import LlpMm
from unbag_paper.league.methods.llp_vat import LlpVat
from unbag_paper.league.methods.mixbag import MixBag
from unbag_paper.league.methods.ours import Ours, OursFromStart
from unbag_paper.league.methods.pvc import Pvc
from unbag_paper.league.methods.rlpl import Rlpl
from unbag_paper.league.methods.rot import Rot
from unbag_paper.league.methods.softmatch import SoftMatch

__all__ = ["METHODS", "Method", "Start"]

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Dllp,
        LlpVat,
        MixBag,
        EasyLlp,
        DsqMoving,
        DsqPairwise,
        LlpMm,
        Pvc,
        Rot,
        SoftMatch,
        Ahil,
        LlpDc,
        Rlpl,
        Ours,
        OursFromStart,
    )
}
