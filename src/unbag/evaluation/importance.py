"""Column importance: the rise of a classifier's risk when a column is permuted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from unbag.arguments import check_choice, check_share, check_whole
from unbag.arrays import Array
from unbag.bags import Bags
from unbag.bags.tasks import risk_scale
from unbag.charts import Chart, Series
from unbag.errors import BagDataError
from unbag.evaluation.checks import Grouping, explain_grouping, with_features
from unbag.evaluation.estimate import Estimate, student_estimate
from unbag.evaluation.evaluate import bags_to_score, scores_of
from unbag.evaluation.natural import explained_deviance
from unbag.evaluation.printing import TextTable
from unbag.evaluation.residual_moments import risk_change
from unbag.evaluation.results import EstimateTable
from unbag.evaluation.risk import Loss, checked_scores, decisions
from unbag.frames.chunks import is_frame, require
from unbag.randomness import numpy_generator

SHOWN = 20  # columns of a chart


@dataclass(frozen=True)
class ColumnImportance(EstimateTable):
    """Importance of each column for a classifier.

    Attributes
    ----------
    estimates : dict of Estimate
        Loss when the column is permuted, largest first.
    measure : str
        What is lost.
    grouping : str
        Grouping of the bags, if it was tested.
    n_bags, n_instances : int
    confidence : float
        Confidence of the interval of each column; natural groups have no intervals.
    """

    estimates: dict[str, Estimate]
    measure: str
    n_bags: int
    n_instances: int
    confidence: float
    grouping: str = ""

    def _table(self) -> TextTable:
        title = f"From {self.n_bags} bags with {self.n_instances} instances, without labels"
        rows = [(name, f"{f.value:.4f}", f.interval) for name, f in self.estimates.items()]
        columns = ("column", self.measure, f"{100 * self.confidence:g} % interval")
        return TextTable(title, columns, rows, after=self.grouping)

    def plot(self) -> Chart:
        """The most important columns with their intervals."""
        columns = [{"name": name} | vars(found) for name, found in self.estimates.items()]
        return importance_chart(self.measure, columns)


def importance_chart(measure: str, columns: Sequence[Mapping[str, Any]]) -> Chart:
    """Chart of the first columns, each with its name, value and interval."""
    shown = columns[:SHOWN]
    value, low, high = ([column[end] for column in shown] for end in ("value", "low", "high"))
    series = Series(value, range(len(shown)), low, high, kind="intervals")
    names = [column["name"] for column in shown]
    return Chart("Which columns matter", measure, "", [series], names=names)


def column_importance(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    bags: Any = None,
    noise_variance: Any = None,
    columns: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
    loss: Loss = "square",
    grouping: Grouping = "random",
    n_repeats: int = 5,
    confidence: float = 0.95,
    random_state: int = 0,
) -> ColumnImportance:
    """Estimate permutation importance of columns from bags.

    With scores :math:`f`, and :math:`g` when a column comes from another row,

    .. math:: E(g - y)^2 - E(f - y)^2 = E[g^2 - f^2] - 2 E[(g - f) y],

    whose last term is estimated from the proportions of bags.

    Parameters
    ----------
    model : classifier or callable
        Something with `predict_proba`, or a function from `X` to probabilities.
    X, y, bags, noise_variance
        Bags on which the classifier was not fitted, as for `unbag.evaluate`. Columns of a frame are
        permuted before any encoding.
    columns : sequence, or mapping from name to columns, optional
        Columns to test: names of a frame, numbers of an array. Those of one entry of a mapping are
        permuted together.
    loss : {"square", "zero_one"}
        Brier score, or error of hard predictions, which only changes with decisions.
    grouping : {"random", "natural", "auto"}
        For natural groups, whose risks cannot be estimated, the importance is the drop in explained
        deviance of bag rates, without an interval.
    n_repeats : int
        Permutations of each column, whose scores are averaged.
    confidence : float
    random_state : int
        Seed of the permutations.

    Returns
    -------
    ColumnImportance

    Notes
    -----
    For random bags the estimate is unbiased: a permutation is one random cycle through all rows, so
    no row keeps its value, and any dependence between a row's score and another row's label is the
    same within and between bags, and cancels. The interval is paired, and holds for this classifier
    and one column at a time. Columns with the same information share their importance.

    References
    ----------
    fisher2019all

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)); labels = X[:, 1] > 0
    >>> ids = np.repeat(np.arange(200), 10)
    >>> y = labels.reshape(200, 10).mean(axis=1)[ids]
    >>> found = column_importance(lambda X: (X[:, 1] > 0) * 1.0, X, y, bags=ids)
    >>> [(name, found[name].low > 0.3) for name in found]
    [('x1', True), ('x0', False), ('x2', False)]
    """
    check_choice("loss", loss, get_args(Loss))
    check_choice("grouping", grouping, get_args(Grouping))
    check_whole("n_repeats", n_repeats)
    check_share("confidence", confidence)
    data = bags_to_score(model, X, y, bags=bags, noise_variance=noise_variance)
    values = X.X if isinstance(X, Bags) else X
    sentence = ""
    if grouping == "auto":
        grouping, sentence = explain_grouping(with_features(data, X))
    predict = _scorer(model, data, hard=loss == "zero_one" and grouping == "random")
    scores = predict(values)

    def permuted(places: Sequence[Any]) -> Iterator[Array]:
        for repeat in range(n_repeats):
            donors = donor_rows(data, len(values), seed=random_state, repeat=repeat)
            yield predict(with_permuted(values, places, donors))

    measure = _fall if grouping == "natural" else _rise
    found = {
        name: measure(scores, permuted(places), data, loss, confidence)
        for name, places in column_names(values, columns).items()
    }
    return ColumnImportance(
        dict(sorted(found.items(), key=lambda pair: -pair[1].value)),
        measure=MEASURES["natural" if grouping == "natural" else loss],
        n_bags=data.n_bags,
        n_instances=data.n_instances,
        confidence=confidence,
        grouping=sentence,
    )


MEASURES = {
    "natural": "fall of the explained deviance",
    "square": "rise of the Brier score",
    "zero_one": "rise of the error",
}


def _scorer(model: Any, bags: Bags, *, hard: bool) -> Callable[[Any], Array]:
    if not callable(model) and not hasattr(model, "predict_proba"):
        raise BagDataError(
            f"model must have predict_proba or be a function from X to probabilities, got "
            f"{type(model).__name__}: scores of permuted columns cannot be had from an array."
        )

    def predict(X: Any) -> Array:
        scores = checked_scores(scores_of(model, X), bags)
        return decisions(scores, bags.task) if hard else scores

    return predict


def _rise(
    scores: Array, permuted: Iterator[Array], bags: Bags, loss: Loss, confidence: float
) -> Estimate:
    """Rise of the risk, with its interval."""
    f = scores[bags.rows]
    pairs = [(g - f, g**2 - f**2) for g in (other[bags.rows] for other in permuted)]
    change, squares = (np.mean(part, axis=0) for part in zip(*pairs, strict=True))
    value, variance = risk_change(change, squares, f, bags)
    error, most = np.sqrt(variance), 2.0 * bags.n_outputs
    about = {"lowest": -most, "highest": most, "n_bags": bags.n_bags, "confidence": confidence}
    found = student_estimate(value, error, max(bags.n_bags - 2, 1), **about)
    return found.scaled(risk_scale(bags.task, bags.n_outputs, hard=loss == "zero_one"))


def _fall(
    scores: Array, permuted: Iterator[Array], bags: Bags, loss: Loss, confidence: float
) -> Estimate:
    """Drop in the explained deviance, without an interval."""
    before = explained_deviance(scores, bags).value
    after = np.mean([explained_deviance(other, bags).value for other in permuted])
    about = (-np.inf, np.inf, bags.n_bags, confidence, "natural groups")
    return Estimate(float(before - after), np.nan, np.nan, np.nan, *about)


def column_names(X: Any, columns: Any) -> dict[str, list[Any]]:
    """Columns by name; those of an array are x0, x1 and so on."""
    frame = is_frame(X)
    if not frame and np.ndim(X) < 2:
        raise BagDataError(f"X must have columns to permute, got {type(X).__name__}.")
    names: Any = getattr(X, "column_names", None) or getattr(X, "columns", ())
    known: list[Any] = list(names) if frame else list(range(np.shape(X)[1]))
    if isinstance(columns, Mapping):
        chosen = {str(name): list(places) for name, places in columns.items()}
    else:
        places = known if columns is None else list(columns)
        chosen = {str(place) if frame else f"x{place}": [place] for place in places}
    wanted = [place for places in chosen.values() for place in places]
    if frame:
        require(known, wanted)
    elif outside := [place for place in wanted if place not in known]:
        raise BagDataError(f"columns must be numbers below {len(known)}, got {outside[0]!r}.")
    return chosen


def donor_rows(bags: Bags, n_rows: int, *, seed: int, repeat: int) -> Array:
    """Another row for each row, by one random cycle through all rows of the bags."""
    order = numpy_generator(seed, f"permutation {repeat}").permutation(bags.rows)
    donors = np.arange(n_rows)
    donors[order] = np.roll(order, 1)
    return donors


def with_permuted(X: Any, columns: Sequence[Any], donors: Array) -> Any:
    """Copy of `X` with columns taken from other rows."""
    if hasattr(X, "iloc"):  # pandas
        changed = X.copy()
        for name in columns:
            changed[name] = X[name].iloc[donors].set_axis(X.index)
        return changed
    if hasattr(X, "set_column"):  # Arrow
        for name in columns:
            X = X.set_column(X.column_names.index(name), name, X[name].take(donors))
        return X
    if is_frame(X):  # polars
        return X.with_columns(X[name].gather(donors) for name in columns)
    changed = np.array(X)
    changed[:, columns] = changed[donors][:, columns]
    return changed
