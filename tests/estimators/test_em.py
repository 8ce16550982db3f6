"""EM around any classifier: learns from bags of every kind, and equals the classifier on labels."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from unbag import BagEMClassifier, BagTarget
from unbag.errors import BagDataError
from unbag.estimators import ModelFolderError
from unbag.estimators.soft_labels import ClassifierLearner, TreeLearner, weight_argument

LEARNERS = [
    LogisticRegression(),
    RandomForestClassifier(20, min_samples_leaf=5, random_state=0),
    HistGradientBoostingClassifier(max_iter=15, max_leaf_nodes=6),
    make_pipeline(StandardScaler(), GaussianNB()),
    KNeighborsClassifier(25),
    CalibratedClassifierCV(KNeighborsClassifier(25), cv=2),
    CalibratedClassifierCV(make_pipeline(StandardScaler(), GaussianNB()), cv=2),
    None,
]
every_learner = pytest.mark.parametrize("learner", LEARNERS, ids=lambda e: type(e).__name__)


@parametrize_with_checks([BagEMClassifier(LogisticRegression(), random_state=0)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def bagged(rng, n_bags=100, bag_size=10, n_classes=2):
    """Labels that no single feature tells, in random bags and random order."""
    X = rng.normal(size=(n_bags * bag_size, 4))
    scores = np.column_stack([X[:, 0] + 0.3 * X[:, 1] ** 2 - 0.3, 0 * X[:, 0], -X[:, 1]])
    labels = (scores[:, 0] > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    bags = rng.permutation(np.repeat(np.arange(n_bags), bag_size))
    one_hot = np.eye(n_classes)[labels]
    means = np.stack([np.bincount(bags, column) for column in one_hot.T], axis=1) / bag_size
    return X, (means[:, 1] if n_classes == 2 else means)[bags], bags, labels


@every_learner
def test_any_classifier_learns_from_bags(learner, rng):
    if learner is None:
        pytest.importorskip("lightgbm", reason="the extra unbag[gbm] is not installed")
    X, y, bags, labels = bagged(rng)
    clf = BagEMClassifier(learner, n_rounds=3, random_state=0).fit(X, y, bags=bags)
    assert clf.score(X, labels) > 0.83
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("start", ["rate", "linear", "ridge"])
def test_every_start_learns(start, rng):
    X, y, bags, labels = bagged(rng)
    clf = BagEMClassifier(LogisticRegression(), start=start, random_state=0).fit(X, y, bags=bags)
    assert clf.start_ == start
    assert clf.score(X, labels) > 0.85


def test_bags_of_one_are_the_classifier_itself(rng):
    X, _, _, labels = bagged(rng)
    clf = BagEMClassifier(LogisticRegression()).fit(X, labels)
    wanted = LogisticRegression().fit(X, labels).predict_proba(X)
    np.testing.assert_allclose(clf.predict_proba(X), wanted, atol=1e-4)


@pytest.mark.parametrize("learner", [LogisticRegression(), KNeighborsClassifier(25), None])
def test_classes(learner, rng):
    if learner is None:
        pytest.importorskip("lightgbm", reason="the extra unbag[gbm] is not installed")
    X, y, bags, labels = bagged(rng, n_bags=120, bag_size=6, n_classes=3)
    clf = BagEMClassifier(learner, n_rounds=2, random_state=0).fit(X, y, bags=bags)
    assert clf.task_ == "multiclass" and clf.score(X, labels) > 0.75


def test_labels_side_by_side(rng):
    X, y, bags, labels = bagged(rng)
    columns = np.column_stack([y, 1 - y])
    clf = BagEMClassifier(LogisticRegression(), random_state=0)
    clf.fit(X, columns, bags=bags, task="multilabel")
    assert clf.predict(X).shape == (1000, 2)
    assert (clf.predict(X)[:, 0] == labels).mean() > 0.85


def test_unequal_and_noisy_bags(rng):
    X, _, _, labels = bagged(rng)
    bags = np.sort(rng.integers(0, 120, 1000))
    _, bags = np.unique(bags, return_inverse=True)
    means = np.bincount(bags, labels) / np.bincount(bags)
    noisy = means + 0.05 * rng.normal(size=len(means))
    clf = BagEMClassifier(LogisticRegression(), random_state=0)
    clf.fit(X, noisy[bags], bags=bags, noise_variance=0.05**2)
    assert clf.score(X, labels) > 0.85


def test_the_folds_keep_blocks_whole(rng, monkeypatch):
    X, y, bags, _ = bagged(rng)
    seen = []
    fit = ClassifierLearner.fit

    def watched(self, rows, targets, *, seed):
        seen.append(rows)
        return fit(self, rows, targets, seed=seed)

    monkeypatch.setattr(ClassifierLearner, "fit", watched)
    order = np.argsort(bags, kind="stable")
    X, y, bags = X[order], y[order], bags[order]
    blocks = bags // 10
    clf = BagEMClassifier(LogisticRegression(), n_rounds=1, start="rate", random_state=0)
    clf.fit(X, y, bags=bags, blocks=blocks)
    for rows in seen[:-1]:
        assert not set(blocks[rows]) & set(np.delete(blocks, rows))
    by_bag = {bag: bag // 10 for bag in np.unique(bags).tolist()}
    same = clone(clf).fit(X, y, bags=bags, blocks=by_bag)
    np.testing.assert_array_equal(same.predict_proba(X), clf.predict_proba(X))
    with pytest.raises(BagDataError, match="blocks must repeat one value"):
        clf.fit(X, y, bags=bags, blocks=np.arange(1000))
    with pytest.raises(BagDataError, match="blocks must have one value per bag"):
        clf.fit(X, y, bags=bags, blocks=[1, 2])


def test_scores_fitted_to_rates_are_made_steeper(rng):
    """Rates of bags of k are flatter than labels by about k; the slope undoes it."""
    X, y, bags, _ = bagged(rng, n_bags=200, bag_size=20)
    learner = LogisticRegression()
    flat = BagEMClassifier(learner, n_rounds=0, start="rate", calibrate=False, random_state=0)
    steep = BagEMClassifier(learner, n_rounds=0, start="rate", random_state=0)
    spread = [np.ptp(clf.fit(X, y, bags=bags).predict_proba(X)[:, 1]) for clf in (flat, steep)]
    assert spread[0] < 0.6 < 0.9 < spread[1]
    assert 5 < steep.runs_[0].calibration.slopes[0] < 200


def test_the_same_seed_gives_the_same_model(rng):
    X, y, bags, _ = bagged(rng, n_bags=40)
    clf = BagEMClassifier(KNeighborsClassifier(), n_rounds=1, random_state=3)
    again = [clone(clf).fit(X, y, bags=bags).predict_proba(X) for _ in range(2)]
    np.testing.assert_array_equal(*again)
    other = BagEMClassifier(KNeighborsClassifier(), n_rounds=1, random_state=4)
    assert (other.fit(X, y, bags=bags).predict_proba(X) != again[0]).any()


def test_a_target_carries_its_bags(rng):
    X, y, bags, _ = bagged(rng, n_bags=40)
    clf = BagEMClassifier(LogisticRegression(), n_rounds=1, random_state=0)
    wanted = clone(clf).fit(X, y, bags=bags).predict_proba(X)
    np.testing.assert_array_equal(clf.fit(X, BagTarget(bags, y)).predict_proba(X), wanted)


@pytest.mark.parametrize("learner", [None, LogisticRegression()], ids=["trees", "logistic"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_save_and_load(learner, n_classes, rng, tmp_path):
    if learner is None:
        pytest.importorskip("lightgbm", reason="the extra unbag[gbm] is not installed")
    X, y, bags, _ = bagged(rng, n_bags=40, n_classes=n_classes)
    clf = BagEMClassifier(learner, n_rounds=1, n_runs=2, random_state=0).fit(X, y, bags=bags)
    again = BagEMClassifier.load(clf.save(tmp_path / "m"))
    np.testing.assert_allclose(again.predict_proba(X), clf.predict_proba(X), atol=1e-9)
    assert BagEMClassifier.load(again.save(tmp_path / "n")).start_ == clf.start_


@pytest.mark.parametrize("shares", [[[0.2, 0.8]], [[0.2, 0, 0.8]], [[0.2, 0.3, 0.5]]])
def test_columns_of_classes_are_read_back(shares, rng, tmp_path):
    """Two classes have one column of weights, and a class that never occurs has none."""
    X, bags = rng.normal(size=(800, 2)), np.repeat(np.arange(80), 10)
    y = np.array([rng.multinomial(10, np.ravel(shares)) / 10 for _ in range(80)])[bags]
    clf = BagEMClassifier(LogisticRegression(), n_rounds=1, random_state=0).fit(X, y, bags=bags)
    again = BagEMClassifier.load(clf.save(tmp_path / "m"))
    np.testing.assert_allclose(again.predict_proba(X), clf.predict_proba(X), atol=1e-9)


def test_what_takes_no_gaps_takes_none_when_read_back(rng, tmp_path):
    X, y, bags, _ = bagged(rng, n_bags=40)
    clf = BagEMClassifier(LogisticRegression(), n_rounds=0, start="rate").fit(X, y, bags=bags)
    again = BagEMClassifier.load(clf.save(tmp_path / "m"))
    assert not get_tags(clf).input_tags.allow_nan and not get_tags(again).input_tags.allow_nan


def test_what_has_no_plain_form_is_not_saved(rng, tmp_path):
    X, y, bags, _ = bagged(rng, n_bags=40)
    clf = BagEMClassifier(GaussianNB(), n_rounds=1).fit(X, y, bags=bags)
    with pytest.raises(ModelFolderError, match="GaussianNB has no form"):
        clf.save(tmp_path / "m")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": "guess"}, "start must be"),
        ({"cv": 1}, "cv must be a whole number of at least 2"),
        ({"n_rounds": -1}, "n_r"),
        ({"estimator": LinearSVC()}, "predict_proba, got LinearSVC.* Wrap"),
        ({"estimator": make_pipeline(StandardScaler(), LinearSVC())}, "predict_proba, got Pip"),
        ({"estimator": "logistic"}, "predict_proba, got 'logistic'"),
        ({"estimator": LogisticRegression}, "predict_proba, got <class"),
    ],
)
def test_bad_options_are_named(options, words, rng):
    X, y, bags, _ = bagged(rng, n_bags=10)
    with pytest.raises(ValueError, match=words):
        BagEMClassifier(**{"estimator": LogisticRegression()} | options).fit(X, y, bags=bags)


# LightGBM 4.6 names columns that have no names.
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_weights_and_soft_labels_are_the_same_fit(rng):
    """Cross entropy of soft labels is that of duplicated rows with weights."""
    lightgbm = pytest.importorskip("lightgbm", reason="the extra unbag[gbm] is not installed")
    X, targets = rng.normal(size=(400, 3)), rng.uniform(size=(400, 1))
    soft = TreeLearner(X, "binary").fit(np.arange(400), targets, seed=0).scores(X)
    doubled = lightgbm.LGBMClassifier(
        num_leaves=15,
        learning_rate=0.07,
        min_child_samples=20,
        reg_lambda=1.0,
        max_bin=31,  # as few as so few rows get
        n_jobs=1,
        verbose=-1,
    )
    weighted = ClassifierLearner(doubled, X, "binary").fit(np.arange(400), targets, seed=0)
    assert np.corrcoef(soft[:, 0], weighted.scores(X)[:, 0])[0, 1] > 0.95


def test_weights_reach_the_last_step_of_a_pipeline(rng):
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    assert weight_argument(pipeline) == "logisticregression__sample_weight"
    assert weight_argument(make_pipeline(KNeighborsClassifier())) is None
    X, targets = rng.normal(size=(300, 2)), rng.uniform(size=(300, 1))
    drawn = ClassifierLearner(KNeighborsClassifier(50), X, "binary")
    scores = drawn.fit(np.arange(300), targets, seed=0).scores(X)
    assert abs(scores.mean() - targets.mean()) < 4 * 0.5 / np.sqrt(300)


def test_one_block_is_no_reason_to_fail(rng):
    X = rng.normal(size=(200, 2))
    bags = np.arange(200) // 10
    y = (X[:, 0] > 0).reshape(20, 10).mean(axis=1)[bags]
    clf = BagEMClassifier(LogisticRegression(), random_state=0)
    fitted = clf.fit(X, y, bags=bags, blocks=np.zeros(200))
    assert np.mean(fitted.predict(X) == (X[:, 0] > 0)) > 0.8
