"""The paper's constructions, lower bounds and localized complexities."""

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
    "coordinate_information",
    "coordinate_information_bound",
    "coordinate_shape",
    "critical_radius",
    "critical_radius_vc",
    "crossed_problem",
    "easy_deviation_realizable",
    "fano_bound",
    "fano_sample_size",
    "labelled_relative_error",
    "local_rademacher_bound",
    "localized_bound",
    "log_covering_number",
    "one_point_problem",
    "pairwise_relative_error",
    "pure_bag_probability",
    "refined_dudley",
    "separated_problem",
    "shattered_problem",
    "sub_root_vc",
    "trivial_agnostic_bound",
    "trivial_realizable_bound",
]
