"""Two hundred malformed files: a clear message, a code that is not zero, and nothing left."""

import shutil

import numpy as np
import pytest
from tests.support.calling import call
from tests.support.malformed import N_MODELS, TABLES, damage_model, rows_of, write_csv

CASES = [(name, number) for name, (_, count) in TABLES.items() for number in range(count)]


def assert_refused(result, *, says=()):
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)  # not an error of ours or of a library
    assert result.stderr.startswith("error: ") and "Traceback" not in result.output
    assert len(result.stderr) < 900
    for words in says:
        assert words in result.stderr, f"{words!r} is not in {result.stderr!r}"


def fit(folder, table):
    options = ["--bag", "group", "--proportion", "rate", "--model", "ridge"]
    if (folder / "bags.csv").exists():
        options += ["--bags-table", folder / "bags.csv"]
    return call("fit", table, *options, "-o", folder / "out" / "model")


def test_there_are_two_hundred():
    assert len(CASES) + N_MODELS >= 200


@pytest.mark.parametrize("kind", TABLES)
def test_a_malformed_table_is_refused(kind, seed, tmp_path):
    make, count = TABLES[kind]
    for number in range(count):
        folder = tmp_path / str(number)
        folder.mkdir()
        rng = np.random.default_rng([seed, number, len(kind)])
        name, says = make(rng, folder)
        tables = sorted(p for p in folder.iterdir() if p.name != "bags.csv")
        table = tables[0] if len(tables) == 1 else folder
        assert_refused(fit(folder, table), says=[*says, name])
        assert not (folder / "out").exists()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    write_csv(folder / "t.csv", rows_of(np.random.default_rng(0)))
    result = fit(folder, folder / "t.csv")
    assert result.exit_code == 0, result.output  # so what is refused is refused for its fault
    return folder / "out" / "model"


@pytest.mark.parametrize("number", range(N_MODELS))
def test_a_damaged_model_is_refused(model, number, seed, tmp_path):
    rng = np.random.default_rng([seed, number])
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    damage_model(rng, folder)
    write_csv(tmp_path / "t.csv", rows_of(rng))
    out = tmp_path / "scores.csv"
    assert_refused(call("predict", folder, tmp_path / "t.csv", "-o", out), says=["model"])
    assert sorted(p.name for p in tmp_path.iterdir() if p != folder) == ["t.csv"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_fault_in_a_late_row_leaves_no_output(model, tmp_path, suffix):
    """The first chunks are written when the fault is met; what was there before stays."""
    rows = rows_of(np.random.default_rng(1)) * 2000
    rows[-1] = [*rows[-1][:2], "many", *rows[-1][3:]]
    write_csv(tmp_path / "t.csv", rows)
    out = tmp_path / f"scores.{suffix}"
    out.write_text("what was there before")
    result = call("predict", model, tmp_path / "t.csv", "--overwrite", "-o", out)
    assert_refused(result, says=[f"row {len(rows) + 1}", "'x'", "'many'"])
    assert out.read_text() == "what was there before"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["t.csv", out.name])


def test_an_output_that_cannot_be_written_is_named(model, tmp_path):
    write_csv(tmp_path / "t.csv", rows_of(np.random.default_rng(1)))
    for place in (tmp_path / "nowhere" / "s.csv", tmp_path / "s.xlsx", tmp_path):
        assert_refused(call("predict", model, tmp_path / "t.csv", "-o", place))


def test_a_model_folder_that_cannot_be_written_is_named_before_the_table_is_read(
    tmp_path, monkeypatch
):
    (tmp_path / "file").write_text("a file is no folder")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    for place in (tmp_path / "file" / "model", tmp_path / "file" / "more" / "model", "."):
        options = ["--bag", "group", "--proportion", "rate", "--model", "ridge", "-o", place]
        assert_refused(call("fit", "no_such_table.csv", *options), says=[f"error: {place} "])
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["empty", "file"]


def test_a_folder_in_which_nothing_can_be_made_is_refused(tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryDirectory", refuse)
    result = call("fit", "no_such_table.csv", "--bag", "g", "--count", "n", "-o", tmp_path / "m")
    assert_refused(result, says=["cannot be written", str(tmp_path), "Permission denied"])


def test_predictions_never_replace_the_rows_they_are_of(model, tmp_path):
    """By another name, in a folder, on request: the rows stay."""
    folder = tmp_path / "days"
    folder.mkdir()
    for name in ("a.csv", "b.csv"):
        write_csv(folder / name, rows_of(np.random.default_rng(1)))
    (tmp_path / "link.csv").symlink_to(folder / "b.csv")
    before = [path.read_bytes() for path in sorted(folder.iterdir())]
    for place in (folder / "b.csv", folder / ".." / "days" / "b.csv", tmp_path / "link.csv"):
        result = call("predict", model, folder, "--overwrite", "-o", place)
        assert_refused(result, says=[str(place), "choose another name"])
    assert [path.read_bytes() for path in sorted(folder.iterdir())] == before


@pytest.mark.parametrize(("command", "name"), [("predict", "s.csv"), ("report", "r.html")])
def test_a_file_is_replaced_only_on_request(model, tmp_path, command, name):
    write_csv(tmp_path / "t.csv", rows_of(np.random.default_rng(1)))
    arguments = [command, model, *([tmp_path / "t.csv"] if command == "predict" else [])]
    out = tmp_path / name
    out.write_text("what was there before")
    assert_refused(call(*arguments, "-o", out), says=[str(out), "--overwrite"])
    assert out.read_text() == "what was there before"
    assert call(*arguments, "--overwrite", "-o", out).exit_code == 0
    assert out.read_text() != "what was there before"


def test_a_report_is_a_page(model):
    """So that it replaces neither a model's file nor a store of results."""
    place, before = model / "fit.json", (model / "fit.json").read_bytes()
    assert_refused(call("report", model, "--overwrite", "-o", place), says=[".html"])
    assert place.read_bytes() == before
