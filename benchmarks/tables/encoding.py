"""One plain encoding for all methods, so that the suite compares methods and not encodings."""

from __future__ import annotations

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

MAX_CATEGORIES = 50
ISO_DATE = r"\d{4}-\d\d-\d\d"


def make_encoder(frame: pd.DataFrame) -> Pipeline:
    """Numbers and dates with medians for gaps and unit variance, words one-hot."""
    numbers = [column for column in frame if pd.api.types.is_numeric_dtype(frame[column])]
    dates = [column for column in frame if column not in numbers and is_date(frame[column])]
    words = [column for column in frame if column not in {*numbers, *dates}]
    one_hot = OneHotEncoder(
        max_categories=MAX_CATEGORIES, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    scale = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    columns = make_column_transformer(
        (scale, numbers),
        (make_pipeline(FunctionTransformer(date_parts), scale), dates),
        (make_pipeline(FunctionTransformer(as_words), one_hot), words),
        sparse_threshold=0,
    )
    return make_pipeline(columns, VarianceThreshold())


def is_date(column: pd.Series) -> bool:
    """Whether all values look like 2016-07-02."""
    return bool(column.dropna().astype(str).str.match(ISO_DATE).all()) and column.notna().any()


def date_parts(frame: pd.DataFrame) -> pd.DataFrame:
    """Day, weekday and hour of every date."""
    parts = {}
    for column in frame:
        date = pd.to_datetime(frame[column], format="ISO8601", utc=True)
        parts[f"{column} day"] = date.dt.year * 366 + date.dt.day_of_year
        parts[f"{column} weekday"], parts[f"{column} hour"] = date.dt.day_of_week, date.dt.hour
    return pd.DataFrame(parts)


def as_words(frame: pd.DataFrame) -> pd.DataFrame:
    """Everything as strings; a gap is a word too."""
    return frame.astype(object).where(frame.notna(), "missing").astype(str)
