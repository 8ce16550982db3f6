"""Headlines stand beside the trivial baseline, and results show themselves in a notebook."""

import numpy as np
import pytest

import unbag
from unbag.evaluation import Baseline, Estimate
from unbag.evaluation.printing import TextTable
from unbag.evaluation.random_groups import macro_average

IDS = np.repeat(np.arange(80), 10)


def bagged(labels):
    return labels.reshape(80, 10, *labels.shape[1:]).mean(axis=1)[IDS]


def test_an_evaluation_says_whether_the_model_is_better_than_the_most_frequent_label(rng):
    labels = (rng.random(800) < 0.2).astype(float)
    good = unbag.evaluate(np.clip(labels, 0.1, 0.9), None, bagged(labels), bags=IDS)
    assert good.baseline == Baseline("no", pytest.approx(labels.mean()))
    assert f"always 'no': {100 * labels.mean():.1f} %" in " ".join(str(good).split())
    assert "better" not in str(good)
    bad = unbag.evaluate(rng.random(800), None, bagged(labels), bags=IDS)
    assert bad.headline.endswith("The model is not better than always predicting 'no'.")
    prior = unbag.evaluate(np.full(800, 0.2), None, bagged(labels), bags=IDS)
    assert prior.headline.endswith("These bags do not show that the model is better.")


def test_natural_groups_and_amounts_have_a_baseline_too(rng):
    x = rng.normal(size=(800, 1))
    labels = (rng.random(800) < 0.2).astype(float)
    natural = unbag.evaluate(
        0.55 * rng.random(800), None, bagged(labels), bags=IDS, grouping="natural"
    )
    assert "always 'no'" in natural.headline and "constant rate" in natural.headline
    amounts = 5 + x[:, 0]
    for guess, better in ((amounts + x[:, 0] / 2, True), (rng.normal(size=800), False)):
        found = unbag.evaluate(guess, None, bagged(amounts), bags=IDS, task="amount")
        assert "always the mean" in found.headline
        assert ("do not show" in found.headline) != better


def test_classes_keep_their_names_and_have_macro_averages(rng):
    x = rng.normal(size=(800, 2))
    labels = np.eye(3)[(x @ [[1, 0, -1], [0, 1, -1]]).argmax(axis=1)]
    pd = pytest.importorskip("pandas")
    names = ["north", "a name that is far too long for any column of a table to hold it", "south"]
    y = pd.DataFrame(bagged(labels), columns=names)
    clf = unbag.BagRidgeClassifier().fit(x, y, bags=IDS)
    found = unbag.evaluate(clf, x, y, bags=IDS)
    assert [f"recall[{name}]" in found for name in names] == [True] * 3
    recalls = [found[f"recall[{name}]"].value for name in names]
    assert found["macro_recall"].value == pytest.approx(np.mean(recalls))
    cells = (line.split("│")[1] for line in str(found).splitlines() if "│" in line)
    assert f"recall[{names[1]}]".replace(" ", "") in "".join(cells).replace(" ", "")
    assert "far too long" in "".join(found.plot_roc().svg())


def test_a_macro_average_reaches_as_far_as_classes_that_err_together(rng):
    together = rng.normal(0.5, 0.05, size=4000)
    ends = [Estimate(v, v - 0.1, v + 0.1, 0.05) for v in together]
    held = [abs(macro_average([e, e]).value - 0.5) <= 0.1 for e in ends]
    assert np.mean(held) > 0.94
    assert macro_average([ends[0], Estimate(np.nan, np.nan, np.nan, np.nan)]).headline == (
        "not defined"
    )


def test_results_show_themselves_in_a_notebook(rng):
    x = rng.normal(size=(800, 1))
    y = bagged((x[:, 0] > 0).astype(float))
    scores = 1 / (1 + np.exp(-x[:, 0]))
    shown = [
        unbag.evaluate(scores, None, y, bags=IDS),
        unbag.evaluate(scores, None, y, bags=IDS, grouping="natural"),
        unbag.check_bags(x, y, bags=IDS),
        unbag.compare_models(scores, 1 - scores, None, y, bags=IDS),
    ]
    for found in shown:
        html = found._repr_html_()
        assert html.count("<table>") == html.count("</table>") == 1
        assert html.count("<tr>") >= 2


def test_words_are_escaped_and_folded_but_never_cut():
    table = TextTable("a & b", ("<x>",), [("[/red]" + "y" * 200,)])
    assert "<x>" not in table._repr_html_() and "&lt;x&gt;" in table._repr_html_()
    from io import StringIO

    from rich.console import Console

    stream = StringIO()
    Console(file=stream, width=60).print(table)
    assert stream.getvalue().count("y") == 200 and "[/red]" in stream.getvalue()


def test_a_column_without_words_is_left_out():
    shown = TextTable("", ("name", "nothing", "value"), [("a", "", "1"), ("b", "", "")])
    assert "nothing" not in shown._repr_html_() and "value" in shown._repr_html_()
    assert "nothing" in TextTable("", ("nothing",), [])._repr_html_()


def test_bounds_that_meet_are_one_number():
    """Nobody is predicted positive, so the error is the overall rate."""
    y = bagged((np.arange(800) % 10 == 0).astype(float))
    found = unbag.evaluate(np.full(800, 0.1), None, y, bags=IDS, grouping="natural")
    assert found.headline.startswith("10.0 % error")
