"""`Column`: the encoding of one column as features."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbag.arrays import Array
from unbag.errors import TableError
from unbag.frames.chunks import Chunk
from unbag.frames.columns import READERS, ColumnScan
from unbag.frames.parsing import as_text, refuse_beyond

CYCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}  # in days
# Standard deviations from the mean beyond which single precision has no digits left.
FARTHEST = 1e9


@dataclass(frozen=True)
class Column:
    """Encoding of one column as features.

    `kind` is number, boolean, date, category, hash, identifier or constant; the last two have no
    features. `values` are categories with one feature each; hashed ones share `n_buckets`.
    """

    name: str
    kind: str
    mean: float = 0.0
    scale: float = 1.0
    missing: bool = False
    values: tuple[str, ...] = ()
    n_buckets: int = 0
    has_time: bool = False

    @classmethod
    def of(cls, scan: ColumnScan, max_categories: int, n_buckets: int) -> Column:
        """Decide the use of a scanned column."""
        kind, moments = scan.decided(), scan.moments
        missing = moments.missing > 0
        if kind == "category":
            if scan.overflown or len(scan.values) > max_categories:
                return cls(scan.name, "hash", missing=missing, n_buckets=n_buckets)
            return cls(scan.name, kind, missing=missing, values=tuple(sorted(scan.values)))
        scale = 1.0 if kind == "boolean" else float(moments.scale)
        mean = float(moments.mean)
        return cls(scan.name, kind, mean, scale, missing, has_time=scan.has_time)

    @property
    def used(self) -> bool:
        """Whether the column has features."""
        return self.kind not in ("identifier", "constant")

    @property
    def features(self) -> list[str]:
        """Names of its features."""
        if not self.used:
            return []
        waves = [f"{wave} of {cycle}" for cycle in self._cycles for wave in ("sin", "cos")]
        names = {
            "category": [f"{self.name}={value}" for value in self.values],
            "hash": [f"{self.name}#{bucket}" for bucket in range(self.n_buckets)],
            "date": [f"{self.name}:{part}" for part in ("trend", *waves)],
        }.get(self.kind, [self.name])
        return [*names, f"{self.name} missing"] if self.missing else names

    @property
    def use(self) -> str:
        """Description of its use."""
        words = {
            "number": "number, standardised",
            "boolean": "yes or no",
            "date": "date: trend, season, weekday" + (", hour" if self.has_time else ""),
            "category": f"category of {len(self.values)} values",
            "hash": f"category of many values, hashed to {self.n_buckets}",
            "identifier": "not used: looks like an id, every value is different",
            "constant": "not used: always the same",
        }
        return words[self.kind] + ("; missing values marked" if self.missing and self.used else "")

    def encode_into(self, features: Array, chunk: Chunk) -> None:
        """Write the features of some rows into an array of shape (n_rows, n_features)."""
        if self.kind in ("category", "hash"):
            self._encode_text(features, as_text(chunk, self.name))
            return
        raw = READERS[self.kind](chunk, self.name)
        self._standardise_into(features[:, 0], raw)
        if self.missing:
            features[:, -1] = np.isnan(raw)
        self._fill_and_check(features[:, 0], raw, chunk)
        if self.kind == "date":
            days = np.where(np.isnan(raw), self.mean, raw)
            for number, cycle in enumerate(self._cycles):
                angle = 2 * np.pi * days / CYCLES[cycle]
                features[:, 2 * number + 1] = np.sin(angle)
                features[:, 2 * number + 2] = np.cos(angle)

    def _standardise_into(self, feature: Array, raw: Array) -> None:
        # Beside a mean far from zero, single precision would have few digits left for the rest.
        near = abs(self.mean) <= 16 * self.scale and 1e-30 < self.scale < 1e30
        with np.errstate(over="ignore"):  # what single precision cannot hold is refused
            if raw.dtype == np.float32 and near:
                np.subtract(raw, np.float32(self.mean), out=feature)
                feature *= np.float32(1 / self.scale)
            else:
                feature[:] = (raw - np.float64(self.mean)) * (1 / self.scale)

    def _fill_and_check(self, feature: Array, raw: Array, chunk: Chunk) -> None:
        """Replace missing values by the mean, and raise for those too far from it."""
        low, high = feature.min(initial=0), feature.max(initial=0)
        if np.isnan(low):
            feature[np.isnan(feature)] = 0
            low, high = feature.min(), feature.max()
        if max(-low, high) > FARTHEST:
            refuse_beyond(raw, chunk, self.name)
            place = chunk.at(int(np.argmax(np.abs(feature) > FARTHEST)), self.name)
            raise TableError(f"{place}: the value is too far from those the model has seen.")

    @property
    def _cycles(self) -> list[str]:
        return list(CYCLES)[: 3 if self.has_time else 2]

    def _encode_text(self, features: Array, text: pa.Array) -> None:
        features[:] = 0
        positions = self._positions(text)
        rows = np.flatnonzero(positions >= 0)
        features[rows, positions[rows]] = 1
        if self.missing:
            features[:, -1] = text.is_null().to_numpy(zero_copy_only=False)

    def _positions(self, text: pa.Array) -> Array:
        """Feature of each value, or -1."""
        if self.kind == "category":
            known = pc.index_in(text, value_set=pa.array(self.values, pa.string()))
            return pc.fill_null(known, -1).to_numpy(zero_copy_only=False)
        encoded = text.dictionary_encode()
        # A hash that is the same on every machine, unlike Python's own.
        buckets = [zlib.crc32(v.encode()) % self.n_buckets for v in encoded.dictionary.to_pylist()]
        codes = pc.fill_null(encoded.indices, len(buckets)).to_numpy(zero_copy_only=False)
        return np.array([*buckets, -1])[codes]
