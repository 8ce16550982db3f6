"""Turn the files of a package into one frame with raw columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

Reader = Callable[[Sequence[Path]], pd.DataFrame]


def comma_separated(columns: str = "", *, folded: str = "") -> Reader:
    """Read a CSV file; `columns` names them, apart by blanks, where it does not.

    `folded` are prefixes of 0/1 columns, such as ``sex_Male`` and ``sex_Female``, that become one
    column of strings again.
    """
    return partial(_comma_separated, columns=columns, folded=folded)


def _comma_separated(paths: Sequence[Path], *, columns: str, folded: str) -> pd.DataFrame:
    names = columns.split() or None
    header = None if names else "infer"
    frame = pd.read_csv(
        paths[0], names=names, header=header, skipinitialspace=True, na_values="?", low_memory=False
    )
    return _fold(frame, folded.split())


def _fold(frame: pd.DataFrame, words: Sequence[str]) -> pd.DataFrame:
    members = {word: [c for c in frame if c.startswith(f"{word}_")] for word in words}
    values = {
        word: frame[columns].idxmax(axis=1).str.removeprefix(f"{word}_")
        for word, columns in members.items()
    }
    gone = [column for columns in members.values() for column in columns]
    return pd.concat([frame.drop(columns=gone), pd.DataFrame(values, frame.index)], axis=1)


def pickled_frame(paths: Sequence[Path]) -> pd.DataFrame:
    """Read a frame that its package ships as a pickle. `fetch.py` has checked its hash before."""
    return pd.read_pickle(paths[0], compression="xz").drop(columns="rownames")  # noqa: S301


def r_frame(paths: Sequence[Path]) -> pd.DataFrame:
    """Read the only object of an R file; needs `pyreadr`."""
    import pyreadr

    [frame] = pyreadr.read_r(paths[0]).values()
    levels = frame.select_dtypes("category").columns
    return frame.astype(dict.fromkeys(levels, object))


def movielens(paths: Sequence[Path]) -> pd.DataFrame:
    """Ratings with what is known of the user and the film; one 0/1 column per genre."""
    ratings, films, users = (_typed_header(path) for path in paths)
    genres = films["class"].str.get_dummies(" ").add_prefix("genre ")
    films = pd.concat([films.drop(columns=["class", "movie_title"]), genres], axis=1)
    films["release_year"] = pd.to_numeric(films["release_year"], errors="coerce")
    return ratings.merge(users, on="user_id").merge(films, on="item_id")


def _typed_header(path: Path) -> pd.DataFrame:
    frame = pd.read_csv(path, sep="\t", dtype={"zip_code:token": str})
    return frame.rename(columns=lambda column: column.split(":")[0])
