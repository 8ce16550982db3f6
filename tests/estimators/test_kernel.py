"""`BagKernelClassifier`: its columns, its equations, and what few bags teach it."""

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from unbag import BagKernelClassifier, BagRidgeClassifier, Bags
from unbag.estimators.kernel import column_statistics
from unbag.estimators.smooth_features import SmoothFeatures


def between(bags):
    """Covariance of bag means, each times the root of its size."""
    share = bags.sizes / bags.sizes.sum()
    centred = bags.means - share @ bags.means
    return (bags.sizes[:, None] * centred).T @ centred / (len(bags.sizes) - 1)


def mean_over_deals(X, sizes, deals):
    """Mean of `between` over orders of the rows, and the covariance of all rows."""
    ids = np.repeat(np.arange(len(sizes)), sizes)
    features = SmoothFeatures.of(X, n_waves=2, seed=0)
    y = np.arange(len(ids)) % 2
    found = []
    for order in deals:
        data = Bags.from_arrays(X[list(order)], bags=ids, y=np.bincount(ids, y)[ids] / sizes[ids])
        bags, covariance = column_statistics(features, data.gathered())
        found.append(between(bags))
    return np.mean(found, axis=0), covariance * len(X) / (len(X) - 1)


def test_bag_means_of_random_bags_vary_as_instances_do(rng):
    """Over every deal of six rows to bags of one, two and three: exactly."""
    X = rng.normal(size=(6, 2))
    mean, covariance = mean_over_deals(X, np.array([1, 2, 3]), permutations(range(6)))
    np.testing.assert_allclose(mean, covariance, atol=1e-12)


def test_bag_means_of_sorted_bags_do_not(rng):
    X = np.sort(rng.normal(size=(6, 2)), axis=0)
    mean, covariance = mean_over_deals(X, np.array([1, 2, 3]), [range(6)])
    assert not np.allclose(mean, covariance, rtol=0.1)


def test_without_the_covariance_it_is_ridge_regression(rng):
    """Against the normal equations with an explicit intercept."""
    sizes = rng.integers(1, 9, size=12)
    ids = np.repeat(np.arange(12), sizes)
    X = rng.normal(size=(len(ids), 3))
    y = (np.bincount(ids, X[:, 0] > 0) / sizes)[ids]
    options = {"penalties": [0.2], "covariance_share": 0.0, "n_waves": 5, "random_state": 0}
    clf = BagKernelClassifier(**options).fit(X, y, bags=ids)
    columns = clf.features_(X)
    means = np.stack([columns[ids == i].mean(axis=0) for i in range(12)])
    design = np.column_stack([means, np.ones(12)])
    penalty = np.diag([*np.full(means.shape[1], 0.2 * 11), 0.0])
    proportions = np.array([y[ids == i][0] for i in range(12)])
    left = design.T @ (sizes[:, None] * design) + penalty
    solution = np.linalg.solve(left, design.T @ (sizes * proportions))
    np.testing.assert_allclose(clf.coef_[:, 0], solution[:-1], atol=1e-10)
    np.testing.assert_allclose(clf.intercept_, solution[-1], atol=1e-10)


def test_blocks_of_columns_have_unit_variance(rng):
    X = np.column_stack([1000 * rng.normal(size=500), rng.integers(0, 2, 500), np.zeros(500)])
    features = SmoothFeatures.of(X, n_waves=40, seed=0)
    columns = features(X)
    np.testing.assert_allclose(columns.mean(axis=0), 0, atol=1e-10)
    blocks = np.split(columns, [3, 3 + len(features.columns)], axis=1)
    assert [block.shape[1] for block in blocks] == [3, 7, 40]
    np.testing.assert_allclose([block.var(axis=0).sum() for block in blocks], 1)


def auc_on_few_bags(classifier, seed):
    """AUC after 30 bags of 200, where the label hangs on a curve of one of ten features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8000, 10))
    labels = rng.random(8000) < 1 / (1 + np.exp(2 - 2 * X[:, 0] ** 2 - X[:, 1]))
    ids = np.repeat(np.arange(30), 200)
    y = labels[:6000].reshape(30, 200).mean(axis=1)[ids]
    scores = classifier.fit(X[:6000], y, bags=ids).predict_proba(X[6000:])[:, 1]
    return roc_auc_score(labels[6000:], scores)


def test_few_bags_teach_it_a_curve_that_ridge_misses():
    draws = range(6)
    curve = [auc_on_few_bags(BagKernelClassifier(random_state=0), seed) for seed in draws]
    line = [auc_on_few_bags(BagRidgeClassifier(), seed) for seed in draws]
    gain = np.subtract(curve, line)
    assert gain.mean() > 4 * gain.std(ddof=1) / len(gain) ** 0.5


@pytest.mark.parametrize("options", [{"covariance_share": 1.5}, {"n_waves": 0}, {"penalties": []}])
def test_bad_options_are_refused(rng, options):
    X = rng.normal(size=(20, 2))
    with pytest.raises(ValueError, match=next(iter(options))):
        BagKernelClassifier(**options).fit(X, X[:, 0] > 0)


def test_several_classes_and_labels(rng):
    X = rng.normal(size=(1200, 2))
    classes = np.eye(3)[np.digitize(X[:, 0], [-0.5, 0.5])]
    ids = np.repeat(np.arange(120), 10)
    for labels, task in ((classes, "multiclass"), (classes[:, :2], "multilabel")):
        y = labels.reshape(120, 10, -1).mean(axis=1)[ids]
        clf = BagKernelClassifier(random_state=0).fit(X, y, bags=ids, task=task)
        found = clf.predict(X) if task == "multilabel" else np.eye(3)[clf.predict(X)]
        assert (found == labels).mean() > 0.85
