"""`TableModel`: an encoder and a classifier, saved as plain data."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.bags.holdout import take_bags
from unbag.errors import BagDataWarning, TableError
from unbag.estimators import (
    BagBoostingRegressor,
    BagClassifier,
    BagGaussianProcessRegressor,
    BagRegressor,
    BagRidgeClassifier,
    BagRidgeRegressor,
    BagStackingClassifier,
    ModelFolderError,
)
from unbag.estimators.saving import (
    FORMAT,
    check_free,
    check_manifest,
    read_json,
    write_json,
    write_manifest,
)
from unbag.evaluation import AmountEvaluation, Evaluation, NaturalEvaluation
from unbag.evaluation.checks import Grouping
from unbag.evaluation.evaluate import amounts_by, evaluate_grouped
from unbag.frames import TableEncoder
from unbag.frames.chunks import Chunk, prefetch, require
from unbag.tables.fingerprints import training_share
from unbag.tables.reading import TableSource, integer_columns, open_table
from unbag.tables.roles import Roles
from unbag.tables.scan import BagTable, make_bags_of, read_bags, scan_table

KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        BagStackingClassifier,
        BagRidgeClassifier,
        BagClassifier,
        BagRidgeRegressor,
        BagGaussianProcessRegressor,
        BagBoostingRegressor,
        BagRegressor,
    )
}
TESTED_ROWS = 200_000  # to test whether bags are random groups


@dataclass(frozen=True, repr=False)
class TableModel:
    """A model fitted to a table, with its encoder and a record of the fit.

    Attributes
    ----------
    classifier : BagStackingClassifier, BagRidgeClassifier, BagClassifier or a regressor
        A stack, unless the table was larger than memory.
    encoder : TableEncoder
        Encoding of the columns.
    roles : Roles
        Meaning of the columns of the training table.
    record : dict
        Results of the fit as plain values, from which the report is made.
    """

    classifier: Any
    encoder: TableEncoder
    roles: Roles
    record: dict[str, Any]

    def __repr__(self) -> str:
        name, columns = self.record["chosen"], len(self.encoder.names)
        return f"TableModel({name} on {columns} columns, {self.record['headline']})"

    @property
    def outputs(self) -> list[str]:
        """Names of the probabilities; a binary task has one."""
        return ["score"] if len(self.roles.targets) == 1 else list(self.roles.targets)

    def scores(self, X: Array) -> Array:
        """Probabilities, or amounts, of encoded rows, shape (n_rows, n_outputs)."""
        if self.classifier.task_ == "amount":
            return np.asarray(self.classifier.predict(X))[:, None]
        probabilities = self.classifier.predict_proba(X)
        return probabilities[:, 1:] if self.classifier.task_ == "binary" else probabilities

    def predict_chunks(
        self, source: TableSource, *, keep: list[str]
    ) -> Iterator[tuple[Chunk, Array]]:
        """Chunks of a table and their probabilities, computed ahead in a thread."""
        columns = list(dict.fromkeys([*keep, *self.encoder.names]))
        chunks = (chunk for chunk in source.chunks(columns) if chunk.batch.num_rows)
        return prefetch((chunk, self.scores(self.encoder.encode_chunk(chunk))) for chunk in chunks)

    def predict_batches(
        self, source: TableSource, *, keep: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Kept columns, scores and predictions, chunk by chunk."""
        whole = integer_columns(source, keep)
        for chunk, scores in self.predict_chunks(source, keep=list(keep)):
            columns: dict[str, Any] = {name: chunk.batch.column(name) for name in keep}
            columns |= {name: columns[name].cast(pa.int64()) for name in whole}
            made = self._columns(scores)
            for name in made:
                if name in columns:
                    raise TableError(f"Column {name!r} cannot be kept: the output has this column.")
            yield pa.record_batch(columns | made)

    def predict(self, table: Any, *, keep: Sequence[str] | None = None) -> pa.Table:
        """Scores and predictions of a table, beside the kept columns.

        Parameters
        ----------
        table : path or table
            As for `unbag.tables.open_table`.
        keep : sequence of str, optional
            By default the keys, and the bag if present.
        """
        source = open_table(table)
        kept = self.kept(source.names) if keep is None else list(keep)
        require(source.names, [*kept, *self.encoder.names])
        batches = list(self.predict_batches(source, keep=kept))
        if not batches:
            raise TableError("The table has no rows.")
        return pa.Table.from_batches(batches)

    @property
    def grouping(self) -> Grouping:
        """What the groups of the fit were taken for."""
        return self.record.get("settings", {}).get("grouping") or "random"

    def evaluate(
        self,
        table: Any,
        *,
        bag_table: Any = None,
        roles: Roles | None = None,
        confidence: float = 0.95,
        grouping: Grouping | None = None,
        smoothness: float | None = None,
    ) -> Evaluation | NaturalEvaluation | AmountEvaluation:
        """Error, AUC and more on the bags of a table, each with an interval.

        Parameters
        ----------
        table, bag_table : path or table
            As for `unbag.tables.scan_table`. Use new bags: a `BagDataWarning` is raised if the
            model was fitted on some of them.
        roles : Roles, optional
            Columns of the bags. By default those of the fit.
        confidence : float
        grouping : {"random", "natural", "auto"}
            Whether bags are random groups of rows, see `unbag.evaluate`. "auto" tests their
            proportions and features. By default as those of the fit.
        smoothness : float, optional
            As for `unbag.evaluate`.
        """
        given: Any = {"grouping": grouping, "confidence": confidence, "smoothness": smoothness}
        found, share = self.evaluate_with_overlap(table, bag_table=bag_table, roles=roles, **given)
        if share:
            message = f"The model was fitted on {100 * share:.3g} % of these bags; use new ones."
            warnings.warn(message, BagDataWarning, stacklevel=2)
        return found

    def evaluate_with_overlap(
        self,
        table: Any,
        *,
        bag_table: Any,
        roles: Roles | None,
        grouping: Grouping | None = None,
        **settings: Any,
    ) -> tuple[Evaluation | NaturalEvaluation | AmountEvaluation, float]:
        """The evaluation, and the share of bags on which the model was fitted."""
        roles = replace(roles or self.roles, task=self.classifier.task_)
        grouping = grouping or self.grouping
        if grouping == "random":  # without blocks
            roles = replace(roles, block=None)
        if len(roles.targets) != len(self.roles.targets):
            n = len(self.roles.targets)
            raise TableError(f"The model has {n} outputs, got {len(roles.targets)} columns.")
        rows = scan_table(table, roles, bag_table=bag_table, encoder=self.encoder)
        scores, bags = self._scored_bags(rows)
        share = training_share(rows.index, self.record.get("fingerprints", ""))
        tested = None
        if grouping == "auto":
            tested = read_bags(rows, take_bags(rows.index.sizes, max_rows=TESTED_ROWS))
        if bags.task == "amount":
            given = {"confidence": settings["confidence"], "tested": tested}
            return amounts_by(grouping, scores, bags, **given), share
        settings |= {"blocks": rows.index.blocks, "names": self.roles.targets, "tested": tested}
        return evaluate_grouped(scores, bags, grouping=grouping, **settings), share

    def _scored_bags(self, table: BagTable) -> tuple[Array, Bags]:
        """Scores of all rows and their bags; features are in memory chunk by chunk."""
        n_rows, start = table.index.n_rows, 0
        scores = np.empty((n_rows, len(self.outputs)))
        codes = np.empty(n_rows, dtype=np.int32)
        for chunk, part in self.predict_chunks(table.source, keep=[table.roles.bag]):
            stop = start + len(part)
            scores[start:stop] = part
            codes[start:stop] = table.index.codes(chunk, table.roles.bag)
            start = stop
        return scores, make_bags_of(np.empty((n_rows, 0), dtype=np.float32), codes, table.index)

    def kept(self, names: Sequence[str]) -> list[str]:
        """Columns that predictions keep by default: keys and the bag."""
        return [name for name in (*self.roles.keys, self.roles.bag) if name in names]

    def _columns(self, scores: Array) -> dict[str, Any]:
        """Scores and predictions by name; for amounts, predictions alone."""
        if self.classifier.task_ == "amount":
            return {"prediction": scores[:, 0]}
        hard = (scores > 0.5).astype(np.int8)
        if self.classifier.task_ == "binary":
            return {"score": scores[:, 0], "prediction": hard[:, 0]}
        columns: dict[str, Any] = {
            f"score_{n}": s for n, s in zip(self.outputs, scores.T, strict=True)
        }
        if self.classifier.task_ == "multiclass":
            best = pa.array(scores.argmax(axis=1))
            return columns | {"prediction": pa.array(self.outputs).take(best)}
        return columns | {f"prediction_{n}": h for n, h in zip(self.outputs, hard.T, strict=True)}

    def save(
        self, folder: str | Path, *, overwrite: bool = False, pages: Mapping[str, str] | None = None
    ) -> Path:
        """Write a model folder atomically.

        Parameters
        ----------
        folder : path
        overwrite : bool
            Whether an existing model may be replaced.
        pages : mapping from name to text, optional
            Additional files for readers, such as ``report.html``.
        """
        folder = Path(folder)
        check_free(folder, overwrite=overwrite)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as name:
            written = Path(name) / "model"
            self.classifier.save(written)
            table = {"format": FORMAT, "roles": asdict(self.roles), **self.encoder.to_dict()}
            write_json(written / "table.json", table)
            write_json(written / "fit.json", self.record)
            write_manifest(written)
            for page, text in (pages or {}).items():
                (written / page).write_text(text, encoding="utf-8")
            if folder.exists():
                folder.rename(Path(name) / "replaced")
            written.rename(folder)
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> TableModel:
        """Read a folder written by `save`; raise if a file was altered."""
        folder = Path(folder)
        check_manifest(folder)
        table, description = read_json(folder / "table.json"), read_json(folder / "model.json")
        try:
            kind = KINDS[description["kind"]]
            roles = Roles.from_dict(table["roles"])
            encoder, classifier = TableEncoder.from_dict(table), kind.load(folder)
        except (KeyError, TypeError) as error:
            raise ModelFolderError(
                f"{folder} was written by another version: {error} is not as expected. Fit it "
                "again."
            ) from error
        return cls(classifier, encoder, roles, read_json(folder / "fit.json"))
