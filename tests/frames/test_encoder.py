"""Columns become numbers as users expect, and the way back is plain JSON."""

import json
from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from unbag.errors import TableError
from unbag.frames import TableEncoder
from unbag.frames.chunks import TableInMemory
from unbag.frames.columns import Moments


def kinds(table, **options):
    return {c.name: c.kind for c in TableEncoder(**options).fit(pa.table(table)).columns_}


def test_types_are_found_in_text_as_in_typed_columns():
    text = {
        "n": ["1", "2.5", "-3e2", None],
        "b": ["true", "no", "Yes", ""],
        "d": ["2026-01-01", "2026-01-02 10:30", None, "2026-02-03T01:02:03Z"],
        "c": ["x", "y", "x", "1"],
    }
    assert kinds(text) == {"n": "number", "b": "boolean", "d": "date", "c": "category"}
    day = np.array(["2026-01-01", "2026-01-02"], "datetime64[D]")
    typed = {
        "n": [1, 2],
        "b": [True, False],
        "d": day,
        "c": pa.array(["x", "y"]).dictionary_encode(),
    }
    assert kinds(typed) == {"n": "number", "b": "boolean", "d": "date", "c": "category"}


def test_text_and_typed_columns_encode_alike():
    typed = pa.table({"n": [1.0, 4.0, None], "b": [True, None, False], "c": ["x", "y", "x"]})
    text = pa.table({"n": ["1", "4", ""], "b": ["true", "", "no"], "c": ["x", " y", "x "]})
    encoder = TableEncoder().fit(typed)
    np.testing.assert_array_equal(encoder.transform(typed), encoder.transform(text))


def test_single_precision_is_read_as_the_doubles_it_stands_for(rng):
    single = pa.array(rng.normal(1e4, 1, size=100).astype(np.float32)).to_pylist()
    tables = [
        pa.table({"n": pa.array([None, *single, np.nan], kind, from_pandas=False)})
        for kind in (pa.float32(), pa.float64())
    ]
    one, other = (TableEncoder().fit(table) for table in tables)
    for found, wanted in zip(one.columns_, other.columns_, strict=True):
        np.testing.assert_allclose(found.mean, wanted.mean, rtol=1e-12)
        np.testing.assert_allclose(found.scale, wanted.scale, rtol=1e-6)
    np.testing.assert_allclose(
        one.transform(tables[0]), other.transform(tables[1]), rtol=1e-6, atol=1e-6
    )
    assert one.transform(tables[0])[[0, -1]].tolist() == [[0, 1], [0, 1]]


def test_numbers_are_standardised_and_missing_ones_marked():
    encoder = TableEncoder().fit(pa.table({"n": [1.0, 3.0, None]}))
    assert encoder.features == ["n", "n missing"]
    np.testing.assert_allclose(encoder.transform(pa.table({"n": [3.0, None]})), [[1, 0], [0, 1]])


def test_truth_values_are_one_or_zero_less_their_mean():
    table = pa.table({"b": [True, False, False, False]})
    found = TableEncoder().fit(table).transform(table)
    np.testing.assert_array_equal(found, [[0.75], [-0.25], [-0.25], [-0.25]])


def test_an_unseen_category_has_no_feature():
    encoder = TableEncoder().fit(pa.table({"c": ["x", "y", None]}))
    expected = [[0, 0, 0], [0, 0, 1], [0, 1, 0]]
    np.testing.assert_array_equal(encoder.transform(pa.table({"c": ["z", None, "y"]})), expected)


def test_many_categories_are_hashed_and_unseen_ones_too():
    values = [f"v{i % 40}" for i in range(200)]
    encoder = TableEncoder(n_buckets=16).fit(pa.table({"c": values}))
    assert encoder.columns_[0].kind == "hash"
    assert (encoder.transform(pa.table({"c": [*values, "unseen"]})).sum(axis=1) == 1).all()


def test_a_constant_is_left_out_however_it_is_written():
    assert TableEncoder().fit(pa.table({"n": ["45%", "45%"]})).columns_[0].kind == "constant"


def test_identifiers_and_constants_are_left_out():
    table = {"id": [f"e{i}" for i in range(60)], "one": [1] * 60, "x": np.arange(60) % 7}
    assert kinds(table) == {"id": "identifier", "one": "constant", "x": "number"}


@pytest.mark.parametrize("as_text", [False, True])
def test_whole_numbers_that_never_repeat_are_ids_and_fractions_are_not(rng, as_text):
    table = {
        "row": rng.permutation(400) + 10**9,
        "key": rng.integers(0, 2**62, 400),
        "income": rng.permutation(10**7)[:400],
        "count": np.arange(400) // 2,
        "score": np.arange(400) / 4,
    }
    if as_text:
        table = {name: [str(v) for v in values.tolist()] for name, values in table.items()}
    whole = {"row": "identifier", "key": "identifier", "income": "number", "count": "number"}
    assert kinds(table) == whole | {"score": "number"}
    assert kinds(table, numbers=["row", "key"]) == dict.fromkeys(table, "number")


def test_whole_numbers_stored_as_fractions_are_never_left_out():
    assert kinds({"x": np.arange(400.0), "y": [f"{i}.0" for i in range(400)]}) == {
        "x": "number",
        "y": "number",
    }


def test_numbers_can_be_declared_categories():
    assert kinds({"zip": [1, 2, 1, 3]}, categories=["zip"]) == {"zip": "category"}


def test_dates_have_season_weekday_and_hour():
    stamps = np.array(["2026-01-05T06:00", "2026-01-12T18:00"], "datetime64[m]")
    encoder = TableEncoder().fit(pa.table({"t": stamps.astype("datetime64[us]")}))
    first, second = encoder.transform(pa.table({"t": stamps.astype("datetime64[us]")}))
    assert len(first) == 7
    np.testing.assert_allclose(first[3:5], second[3:5], atol=0.5)  # a week and half a day apart
    np.testing.assert_allclose(first[5:], -second[5:], atol=1e-5)  # opposite times of the day


def test_times_of_any_offset_are_those_of_a_column_with_a_time_zone():
    """Without an offset, a time is one of UTC; all of these can be in one column."""
    text = [
        *("2026-06-03 04:00:00+02:00", "2026-06-03 02:00:01Z", "2026-06-03T02:00:02"),
        *("2026-06-02 21:30:03.000000-0430", "2026-06-03 04:01+02", "2026-06-03", None),
    ]
    seconds = np.array([0, 1, 2, 3, 60, -7200, 0], "timedelta64[s]")
    moments = pa.array(np.datetime64("2026-06-03T02:00:00") + seconds, mask=np.arange(7) == 6)
    typed = pa.table({"t": moments.cast(pa.timestamp("us", "Europe/Berlin"))})
    encoder = TableEncoder().fit(typed)
    for some in (slice(0, 1), slice(0, 7), slice(5, 7)):
        found = encoder.transform(pa.table({"t": pa.array(text[some], pa.string())}))
        np.testing.assert_array_equal(found, encoder.transform(typed)[some])
    assert TableEncoder().fit(pa.table({"t": text})).columns_ == encoder.columns_


def test_it_survives_json():
    table = pa.table({"n": [1.0, 2.0, None], "c": ["x", "y", "x"]})
    encoder = TableEncoder().fit(table)
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    np.testing.assert_array_equal(again.transform(table), encoder.transform(table))


def test_moments_do_not_depend_on_the_chunks(rng):
    table = pa.table({"n": rng.normal(5, 2, size=1000)})
    whole = TableEncoder().fit(table).columns_[0]
    cut = TableEncoder().fit(TableInMemory(table, chunk_rows=7)).columns_[0]
    np.testing.assert_allclose([whole.mean, whole.scale], [cut.mean, cut.scale], rtol=1e-12)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["1", "2", "abc", "4"], "row 3, column 'n': 'abc' is no number, but 3 of 4"),
        (["1", "1e999", "3"], "row 2, column 'n': the value is infinite"),
        ([1.0, float("-inf")], "row 2, column 'n': the value is infinite"),
        (pa.array([1.0, float("inf")], pa.float32()), "row 2, column 'n': the value is infinite"),
        (["2026-01-01", "2026-13-01"], "row 2, column 'n': '2026-13-01' is no date"),
        (["2026-01-01", "2026-01-01 10:00+99:00"], r"row 2, .*10:00\+99:00' is no date"),
        ([[1], [2]], "cannot be learned from"),
    ],
)
def test_a_bad_value_is_named_by_row_and_column(values, message):
    with pytest.raises(TableError, match=message):
        TableEncoder().fit(pa.table({"n": values}))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["many"], "'many' is no number"),
        ([1e300], "too large"),
        ([1e30], "too far"),
        ([1e60], "too far"),
        ([float("inf")], "infinite"),
    ],
)
def test_a_bad_value_at_prediction_is_named(values, message):
    encoder = TableEncoder().fit(pa.table({"n": [1.0, 2.0]}))
    with pytest.raises(TableError, match=f"row 1, column 'n': .*{message}"):
        encoder.transform(pa.table({"n": values}))


@pytest.mark.parametrize("values", [[True, False], [1.5, 2.5], ["2026-01-01", "2026-01-02"]])
def test_a_column_may_be_all_missing_at_prediction(values):
    encoder = TableEncoder().fit(pa.table({"n": values}))
    empty = pa.table({"n": pa.nulls(3, pa.array(values).type)})
    assert (encoder.transform(empty)[:, 0] == 0).all()
    assert (encoder.transform(pa.table({"n": pa.nulls(3)}))[:, 0] == 0).all()  # of no type at all


@pytest.mark.parametrize(
    "values",
    [
        ["31.12.2023", "01.02.2023 10:00", None],
        ["2023/12/31", "2023/02/01 10:00", None],
        ["2023.12.31", "2023.02.01 10:00", None],
    ],
)
def test_dates_whose_order_is_clear_are_read(values):
    iso = ["2023-12-31", "2023-02-01 10:00", None]
    found, wanted = (TableEncoder().fit_transform(pa.table({"n": v})) for v in (values, iso))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("values", "advice"),
    [
        (["8486,46", "34686,15", "7"], "write 1234.5"),
        (["1.234,5", "-12,5", "1 234,25"], "write 1234.5"),
        (["1,234.50", "12,234.00"], "write 1234.5"),
        (["45%", "3.5 %", None, "12,5%"], "write 0.45 for 45%"),
        (["12/31/2023", "1/2/2023"], "write 2026-12-31"),
        (["1/2/23", "11/12/23 10:30 PM"], "write 2026-12-31"),
        (["1.2.2023 10:00", "12.3.2023"], "write 2026-12-31"),
        (["2023/12/31", "2023/1/2"], "write 2026-12-31"),
        ([f"{n},{n % 10}" for n in range(100)], "write 1234.5"),
        ([*(f"{n}.5.2023" for n in range(1, 29)), "unknown"], "write 2026-12-31"),
    ],
)
def test_numbers_and_dates_of_some_places_are_refused_unless_declared_text(values, advice):
    table = pa.table({"n": values})
    with pytest.raises(TableError, match=f"Column 'n': .*{advice}.*--category"):
        TableEncoder().fit(table)
    assert TableEncoder(categories=["n"]).fit(table).columns_[0].kind in ("category", "hash")


@pytest.mark.parametrize(
    "values",
    [
        ["3.11.2", "3.12.11", "10.0.1"],
        ["10.0.0.1", "192.168.0.12"],
        ["0-5%", "5-10%", "over 10%"],
        ["12,5", "a", "b"],
        ["S/M", "1/2", "12/24"],
        ["a, b", "b, c"],
        ["2023-W05", "2023-06"],
    ],
)
def test_text_with_digits_stays_text(values):
    assert TableEncoder().fit(pa.table({"n": values})).columns_[0].kind == "category"


def test_a_missing_column_is_named():
    encoder = TableEncoder().fit(pa.table({"height": [1.0, 2.0]}))
    with pytest.raises(TableError, match=r"no column 'height'.*Did you mean 'heigth'"):
        encoder.transform(pa.table({"heigth": [1.0]}))


@pytest.mark.parametrize("size", [1e-30, 1e-12, 1.0, 1e12, 1e30])
@pytest.mark.parametrize("mean", [0.0, 5.0, 1e4])
def test_moments_of_single_precision_are_those_of_doubles_at_any_size(rng, size, mean):
    values = (size * rng.normal(mean, 1, size=(3, 500))).astype(np.float32)
    single, double = Moments(), Moments()
    for some in values:
        single.add(some)
        double.add(some.astype(np.float64))
    np.testing.assert_allclose(single.mean, values.astype(np.float64).mean(), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(single.scale, values.astype(np.float64).std(), rtol=1e-6)
    np.testing.assert_allclose(double.scale, values.astype(np.float64).std(), rtol=1e-12)
    assert (single.low, single.high, single.count) == (values.min(), values.max(), 1500)


@pytest.mark.parametrize("mean", [0.0, 5.0, 1e4])
def test_single_precision_is_standardised_to_its_last_digits(rng, mean):
    values = rng.normal(mean, 1, size=2000).astype(np.float32)
    table = pa.table({"n": values})
    encoder = TableEncoder().fit(table)
    [column] = encoder.columns_
    exact = (values.astype(np.float64) - column.mean) / column.scale
    np.testing.assert_allclose(encoder.transform(table)[:, 0], exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_what_is_refused_is_named_when_scanned_and_when_encoded(kind):
    def table(*values):
        return pa.table({"n": pa.array([1.0, None, 2.0, *values], kind)})

    encoder = TableEncoder().fit(table())
    for work in (TableEncoder().fit, encoder.transform):
        with pytest.raises(TableError, match="table, row 5, column 'n': the value is infinite"):
            work(table(1.0, -np.inf))
    with pytest.raises(TableError, match="row 4, column 'n': the value is too far"):
        encoder.transform(table(1e30, 1.0))


def test_a_value_too_large_for_its_square_is_named_when_scanned_and_when_encoded():
    table = pa.table({"n": [1.0, 2.0, 1e200]})
    encoder = TableEncoder().fit(table[:2])
    for work in (TableEncoder().fit, encoder.transform):
        with pytest.raises(TableError, match="row 3, column 'n': the value is 1e"):
            work(table)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (["3", "Köln"], "row 2, column 'x': 'Köln' is none"),
        ([True, False], "it is a boolean"),
        ([date(2024, 1, 1), date(2024, 2, 1)], "it is a date"),
    ],
)
def test_what_is_declared_a_number_is_one(values, says):
    with pytest.raises(TableError, match=f"Column 'x' is declared a number, but .*{says}"):
        TableEncoder(numbers=["x"]).fit(pa.table({"x": values, "y": [1, 2]}))


@pytest.mark.parametrize("values", [[None, None], [3, 3], [None, 3], ["3", "4"]])
def test_a_declared_number_may_be_missing_or_constant_or_written_as_text(values):
    TableEncoder(numbers=["x"]).fit(pa.table({"x": values}))


def test_it_is_a_transformer_in_pipelines_and_frames_out():
    frame = pd.DataFrame({"c": ["a", "b", "a", "b"] * 5, "x": [1.0, None, 3.0, 4.0] * 5})
    labels = frame["c"] == "a"
    model = make_pipeline(TableEncoder(), LogisticRegression()).fit(frame, labels)
    assert model.score(frame, labels) == 1
    assert model[:-1].get_feature_names_out().tolist() == ["c=a", "c=b", "x", "x missing"]
    framed = TableEncoder().set_output(transform="pandas").fit_transform(frame)
    assert framed.columns.tolist() == ["c=a", "c=b", "x", "x missing"]
    assert clone(TableEncoder(categories=("x",))).fit(frame).columns_[1].kind == "category"


def test_a_column_of_values_that_do_not_mix_is_named():
    frame = pytest.importorskip("pandas").DataFrame({"x": [1.0, 2.0], "age": [31, "n/a"]})
    with pytest.raises(TableError, match=r"'age' holds .* mix: int, str\. Make .*astype\(str\)"):
        TableEncoder().fit(frame)
