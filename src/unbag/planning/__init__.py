"""Plans: how many bags of which size for which error, with certificates."""

from unbag.planning.certificates import (
    debiased_excess_certificate,
    debiased_risk_certificate,
)
from unbag.planning.guarantee import Guarantee
from unbag.planning.plan import BagPlan, PlanRow, plan_bags
from unbag.planning.realizable import realizable_error_certificate, realizable_vc_error_certificate

__all__ = [
    "BagPlan",
    "Guarantee",
    "PlanRow",
    "debiased_excess_certificate",
    "debiased_risk_certificate",
    "plan_bags",
    "realizable_error_certificate",
    "realizable_vc_error_certificate",
]
