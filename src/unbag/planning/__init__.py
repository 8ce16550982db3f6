"""How many bags, of which size, for which error: plans, certificates and the bounds they need."""

from unbag.planning.bounds import (
    bag_class_vc_bound,
    debiased_excess_bound,
    easy_optimistic_bound,
    easy_slow_bound,
    easy_split_bound,
    eprm_sample_size,
    eprm_sample_size_sharp,
    marginal_bias,
    proportion_square_bound,
)
from unbag.planning.certificates import (
    debiased_excess_certificate,
    debiased_risk_certificate,
    easy_excess_certificate,
    easy_offset_deviation,
    easy_offset_range,
    pairwise_kernel_deviation,
    pairwise_kernel_range,
)
from unbag.planning.guarantee import Guarantee
from unbag.planning.mismatch import mismatch_bound, mismatch_inverse, mismatch_probability
from unbag.planning.plan import BagPlan, PlanRow, plan_bags
from unbag.planning.realizable import (
    log_growth_function,
    realizable_error_certificate,
    realizable_sample_size,
    realizable_vc_error_certificate,
    realizable_vc_sample_size,
)

__all__ = [
    "BagPlan",
    "Guarantee",
    "PlanRow",
    "bag_class_vc_bound",
    "debiased_excess_bound",
    "debiased_excess_certificate",
    "debiased_risk_certificate",
    "easy_excess_certificate",
    "easy_offset_deviation",
    "easy_offset_range",
    "easy_optimistic_bound",
    "easy_slow_bound",
    "easy_split_bound",
    "eprm_sample_size",
    "eprm_sample_size_sharp",
    "log_growth_function",
    "marginal_bias",
    "mismatch_bound",
    "mismatch_inverse",
    "mismatch_probability",
    "pairwise_kernel_deviation",
    "pairwise_kernel_range",
    "plan_bags",
    "proportion_square_bound",
    "realizable_error_certificate",
    "realizable_sample_size",
    "realizable_vc_error_certificate",
    "realizable_vc_sample_size",
]
