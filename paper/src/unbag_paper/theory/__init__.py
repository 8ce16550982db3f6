"""The paper's constructions, bounds, sample sizes and localized complexities."""

from unbag_paper.theory.constructions import (
    BagCounts,
    CoordinateProblem,
    FiniteProblem,
    SampledBags,
    crossed_problem,
    one_point_problem,
    separated_problem,
    shattered_problem,
)
from unbag_paper.theory.easy_certificate import (
    easy_excess_certificate,
    easy_offset_deviation,
    easy_offset_range,
)
from unbag_paper.theory.excess_bounds import (
    easy_optimistic_bound,
    easy_slow_bound,
    easy_split_bound,
    marginal_bias,
    proportion_square_bound,
)
from unbag_paper.theory.localization import (
    critical_radius,
    critical_radius_vc,
    local_rademacher_bound,
    localized_bound,
    log_covering_number,
    refined_dudley,
    sub_root_vc,
)
from unbag_paper.theory.lower_bounds import (
    coordinate_information,
    coordinate_information_bound,
    coordinate_shape,
    fano_bound,
    fano_sample_size,
    trivial_agnostic_bound,
    trivial_realizable_bound,
)
from unbag_paper.theory.sample_sizes import (
    bag_class_vc_bound,
    eprm_sample_size,
    eprm_sample_size_sharp,
    mismatch_probability,
    realizable_sample_size,
    realizable_vc_sample_size,
)
from unbag_paper.theory.variance import (
    easy_deviation_realizable,
    labelled_relative_error,
    pairwise_relative_error,
    pure_bag_probability,
)

__all__ = [
    "BagCounts",
    "CoordinateProblem",
    "FiniteProblem",
    "SampledBags",
    "bag_class_vc_bound",
    "coordinate_information",
    "coordinate_information_bound",
    "coordinate_shape",
    "critical_radius",
    "critical_radius_vc",
    "crossed_problem",
    "easy_deviation_realizable",
    "easy_excess_certificate",
    "easy_offset_deviation",
    "easy_offset_range",
    "easy_optimistic_bound",
    "easy_slow_bound",
    "easy_split_bound",
    "eprm_sample_size",
    "eprm_sample_size_sharp",
    "fano_bound",
    "fano_sample_size",
    "labelled_relative_error",
    "local_rademacher_bound",
    "localized_bound",
    "log_covering_number",
    "marginal_bias",
    "mismatch_probability",
    "one_point_problem",
    "pairwise_relative_error",
    "proportion_square_bound",
    "pure_bag_probability",
    "realizable_sample_size",
    "realizable_vc_sample_size",
    "refined_dudley",
    "separated_problem",
    "shattered_problem",
    "sub_root_vc",
    "trivial_agnostic_bound",
    "trivial_realizable_bound",
]
