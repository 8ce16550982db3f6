"""Fingerprints of the bags a model was fitted on, to recognise them in an evaluation."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from unbag.arrays import Array
from unbag.tables.index import BagIndex

KEPT = 1000


def fingerprints_of(index: BagIndex, positions: Array) -> str:
    """Fingerprints of up to a thousand of the bags at these positions, as hexadecimal text.

    Bags with the smallest hashes are kept, so that two tables keep the same bags.
    """
    ids = _id_hashes(index)
    kept = positions[np.argsort(ids[positions], kind="stable")[:KEPT]]
    marks = np.stack([ids[kept], [_value_hash(index, position) for position in kept]], axis=1)
    return marks.astype(">u4").tobytes().hex()


def training_share(index: BagIndex, marks: str) -> float:
    """Share of the bags of a table that were trained on, by ID, size and proportion.

    Another table may reuse IDs. So known IDs count only if most of them have the known size and
    proportion too.
    """
    known = np.frombuffer(bytes.fromhex(marks), dtype=">u4").reshape(-1, 2).tolist()
    ids, values = _id_hashes(index), dict(known)
    # Nothing is known of hashes beyond the largest one kept.
    near = np.flatnonzero(ids <= known[-1][0]) if len(known) >= KEPT else np.arange(len(ids))
    met = [position for position in near.tolist() if ids[position] in values]
    same = sum(values[ids[position]] == _value_hash(index, position) for position in met)
    return same / len(near) if 2 * same > len(met) else 0.0


def _id_hashes(index: BagIndex) -> Array:
    return np.array([crc32(str(bag).encode()) for bag in index.ids.to_pylist()], dtype=np.int64)


def _value_hash(index: BagIndex, position: int) -> int:
    shares = " ".join(f"{share:.4f}" for share in np.atleast_1d(index.proportions[position]))
    return crc32(f"{index.sizes[position]} {shares}".encode())
