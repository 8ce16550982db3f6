"""plan_bags: three questions, one set of certificates."""

import pytest

import unbag.planning
from unbag.errors import ConditionError
from unbag.planning import plan_bags
from unbag_paper.theory import realizable_sample_size


def test_number_of_bags_is_the_certificates():
    found = plan_bags(0.02, 30, n_hypotheses=500, confidence=0.9)
    assert found.n_bags == realizable_sample_size(0.02, 30, n_hypotheses=500, confidence=0.9)
    assert found.error <= 0.02
    assert found.answer in found.table


@pytest.mark.parametrize(
    "options",
    [
        {"n_hypotheses": 100},
        {"vc_dimension": 3},
        {"n_hypotheses": 100, "best_error": 0.1},
        {"n_hypotheses": 100, "rule": "eprm"},
    ],
)
def test_error_and_number_answer_each_other(options):
    number = plan_bags(0.05, 10, **options)
    assert plan_bags(n_bags=number.n_bags, bag_size=10, **options).error <= 0.05
    assert plan_bags(n_bags=number.n_bags - 1, bag_size=10, **options).error > 0.05


def test_bag_size_is_the_best_or_the_largest_that_reaches_the_error():
    best = plan_bags(n_instances=20_000, n_hypotheses=1000)
    assert best.error == min(row.error for row in best.table)
    largest = plan_bags(0.05, n_instances=20_000, n_hypotheses=1000)
    assert largest.error <= 0.05
    assert all(row.error > 0.05 for row in largest.table if row.bag_size > largest.bag_size)


def test_the_public_name_is_there():
    assert unbag.planning.plan_bags is plan_bags


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"error": 0.1, "bag_size": 5}, "n_hypotheses"),
        ({"error": 0.1, "bag_size": 5, "n_hypotheses": 3, "vc_dimension": 2}, "not both"),
        ({"error": 0.1, "n_hypotheses": 3}, "bag_size"),
        ({"bag_size": 5, "n_hypotheses": 3}, "Give `error` or `n_bags`"),
        ({"error": 0.1, "n_bags": 9, "bag_size": 5, "n_hypotheses": 3}, "Give `error` or"),
        ({"n_instances": 9, "bag_size": 5, "n_hypotheses": 3}, "leaves"),
        ({"error": 0.001, "n_instances": 50, "n_hypotheses": 3}, "at best"),
        ({"n_instances": 5, "n_hypotheses": 3, "bag_sizes": [10]}, "bag_sizes"),
        ({"error": 0.1, "bag_size": 5, "n_hypotheses": 3, "rule": "hope"}, "rule"),
        (
            {"error": 0.1, "bag_size": 5, "n_hypotheses": 3, "rule": "eprm", "best_error": 0.1},
            "1/3 worse",
        ),
        ({"error": 0.1, "bag_size": 5, "n_hypotheses": 3, "rule": "easy_square"}, "rule"),
        ({"error": 0.1, "bag_size": 5, "vc_dimension": 3, "best_error": 0.1}, "`best_error` of 0"),
        ({"error": 0.7, "bag_size": 5, "n_hypotheses": 3}, "1/2"),
        ({"error": 0.1, "bag_size": 0, "n_hypotheses": 3}, "bag_size"),
        ({"error": 0.1, "bag_size": 2.5, "n_hypotheses": 3}, "bag_size"),
        ({"n_bags": 2.5, "bag_size": 3, "n_hypotheses": 3}, "n_bags"),
    ],
)
def test_unanswerable_questions_are_named(options, words):
    with pytest.raises(ConditionError, match=words):
        plan_bags(**options)
