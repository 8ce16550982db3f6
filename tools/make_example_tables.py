"""Write the example tables that ship with the package: ad conversions reported per group."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv

from unbag.datasets import GroupedTable, make_clicks

FOLDER = Path(__file__).parents[1] / "src" / "unbag" / "datasets" / "examples"


def in_one_table(made: GroupedTable) -> pa.Table:
    """Rows that repeat what their bag reveals."""
    return made.rows.append_column("conversions", pa.array(made.of_rows("conversions")))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, n_reports, seed, first in (
        ("conversions", 300, 0, 0),
        ("conversions_next", 120, 1, 9000),
    ):
        table = in_one_table(make_clicks(n_reports, seed=seed, first=first))
        options = pacsv.WriteOptions(quoting_style="none")
        pacsv.write_csv(table, FOLDER / f"{name}.csv", options)
