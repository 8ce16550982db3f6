"""Number bag IDs, and group rows by number."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from unbag.arrays import Array


class IdCodes:
    """Number IDs from 0 in order of appearance, starting with the distinct `ids`."""

    def __init__(self, ids: pa.Array) -> None:
        self.ids = ids
        self._table: tuple[int, Array] | None = None
        self._make_table()

    def add(self, ids: pa.Array) -> Array:
        """Codes of IDs; unseen ones get the next codes."""
        codes = self.find(ids)
        if (codes < 0).any():
            unseen = ids.filter(pa.array(codes < 0)).unique()
            self.ids = pa.concat_arrays([self.ids, unseen])
            self._make_table()
            codes = self.find(ids)
        return codes

    def find(self, ids: pa.Array) -> Array:
        """Codes of IDs, -1 for unseen ones."""
        if self._table is not None:
            low, codes = self._table
            # Without a sign, an integer below the range is one far above it.
            places = (ids.to_numpy() - low).view(np.uint64)
            last = np.uint64(len(codes) - 1)
            return codes.take(np.minimum(places, last, out=places).view(np.intp), mode="clip")
        found = pc.index_in(ids, value_set=self.ids)
        return pc.fill_null(found, -1).to_numpy(zero_copy_only=False)

    def _make_table(self) -> None:
        """Codes of all integers in the range, if it is narrow: faster than a hash table."""
        self._table = None
        if not len(self.ids) or not pa.types.is_integer(self.ids.type):
            return
        ids = self.ids.to_numpy()
        low, width = int(ids.min()), int(ids.max()) - int(ids.min()) + 1
        if width <= 16 * len(ids):
            codes = np.full(width + 1, -1, dtype=np.int32)
            codes[ids - low] = np.arange(len(ids))
            self._table = low, codes


def grouped(groups: Array, n_groups: int) -> tuple[Array, Array]:
    """Stable order of rows by group (numbered from 0), and the end of each group.

    Converting a sparse matrix from rows to columns counts, several times faster than sorting.
    """
    n_rows = len(groups)
    entries = np.empty(n_rows, dtype=np.int8), groups, np.arange(n_rows + 1, dtype=np.int32)
    columns = csr_array(entries, shape=(n_rows, n_groups)).tocsc()
    return columns.indices.astype(np.intp), columns.indptr
