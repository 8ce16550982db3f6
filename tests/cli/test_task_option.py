"""What several columns of proportions are of: found out, or said with `--task`."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from tests.support.calling import call, good


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    """A table of three classes whose proportions were rounded."""
    folder = tmp_path_factory.mktemp("classes")
    rng = np.random.default_rng(0)
    X, bag = rng.normal(size=(1400, 3)), np.repeat(np.arange(200), 7)
    shares = np.eye(3)[X.argmax(axis=1)].reshape(200, 7, 3).mean(axis=1).round(3)[bag]
    columns = {f"x{i}": X[:, i] for i in range(3)} | {f"p{i}": shares[:, i] for i in range(3)}
    pacsv.write_csv(pa.table({"bag": bag} | columns), folder / "t.csv")
    return folder


SHARES = [word for i in range(3) for word in ("--proportion", f"p{i}")]
FIT_CLASSES = ["--bag", "bag", *SHARES, "--model", "ridge"]


def test_rounded_proportions_are_of_classes(classes, tmp_path):
    result = good("fit", classes / "t.csv", *FIT_CLASSES, "-o", tmp_path / "model")
    assert "multiclass labels" in result.output
    out = tmp_path / "scores.csv"
    good("predict", tmp_path / "model", classes / "t.csv", "-o", out)
    assert set(pacsv.read_csv(out)["prediction"].to_pylist()) == {"p0", "p1", "p2"}


def test_the_task_may_be_said(classes, tmp_path):
    model = tmp_path / "model"
    fit = ["fit", classes / "t.csv", *FIT_CLASSES, "--task", "multilabel"]
    good(*fit, "-o", model)
    record = json.loads((model / "fit.json").read_text())
    assert record["data"]["task"] == "multilabel" and "--task multilabel" in record["command"]
    # What was said to the fit holds for its evaluation.
    found = json.loads(good("evaluate", model, classes / "t.csv", "--json").stdout)
    assert found["task"] == "multilabel"
    one = ["--bag", "bag", *SHARES[:2], "--task", "multiclass"]
    refused = call("fit", classes / "t.csv", *one, "-o", tmp_path / "other")
    assert refused.exit_code == 1 and "task must be 'binary'" in refused.stderr


@pytest.mark.filterwarnings("default")
def test_sums_that_are_almost_one_warn(classes, tmp_path):
    table = pacsv.read_csv(classes / "t.csv")
    less = pa.array(0.97 * table["p0"].to_numpy())
    pacsv.write_csv(table.drop_columns("p0").append_column("p0", less), tmp_path / "t.csv")
    result = good("fit", tmp_path / "t.csv", *FIT_CLASSES, "-o", tmp_path / "model")
    [line] = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert "almost to one" in line and ".py" not in line


def test_the_order_of_columns_named_again_does_not_matter(classes, tmp_path):
    good("fit", classes / "t.csv", *FIT_CLASSES, "-o", tmp_path / "model")
    turned = [word for i in (2, 0, 1) for word in ("--proportion", f"p{i}")]
    answers = [
        json.loads(good("evaluate", tmp_path / "model", classes / "t.csv", *again, "--json").stdout)
        for again in ([], turned)
    ]
    assert answers[0] == answers[1]
