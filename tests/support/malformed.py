"""Two hundred ways to hand over a broken file, each a function of a seed."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HEADER = ["group", "rate", "x", "colour", "day"]


def rows_of(rng, n_bags=12):
    """Good rows: bags of five to eight, shuffled."""
    group = rng.permutation(np.repeat(np.arange(n_bags), rng.integers(5, 9, n_bags)))
    positive = np.bincount(group, rng.random(len(group)) < 0.5) / np.bincount(group)
    return [
        [
            f"g{g}",
            f"{positive[g]:.9f}",
            f"{rng.normal():.4f}",
            str(rng.choice(["red", "blue"])),
            f"2026-03-{rng.integers(1, 29):02d}",
        ]
        for g in group
    ]


def write_csv(path, rows, header=HEADER, *, encoding="utf-8"):
    text = "\n".join(",".join(row) for row in [header, *rows]) + "\n"
    path.write_bytes(text.encode(encoding))


def csv_with(column, value):
    """One value of a good table replaced; the message must name its row and column."""

    def make(rng, folder):
        rows = rows_of(rng)
        row = int(rng.integers(len(rows)))
        rows[row][HEADER.index(column)] = value
        write_csv(folder / "t.csv", rows)
        return "t.csv", [f"row {row + 2}", repr(column)]

    return make


def ragged(rng, folder):
    rows = rows_of(rng)
    row = int(rng.integers(len(rows)))
    rows[row] = rows[row][:-1] if rng.random() < 0.5 else [*rows[row], "more"]
    write_csv(folder / "t.csv", rows)
    return "t.csv", [f"Row #{row + 2}"]


def unclosed_quote(rng, folder):
    rows = rows_of(rng)
    rows[int(rng.integers(len(rows)))][0] = '"g1'
    write_csv(folder / "t.csv", rows)
    return "t.csv", []


def inconsistent(rng, folder):
    rows = rows_of(rng)
    row = int(rng.integers(len(rows)))
    rows[row][1] = "0.123456" if rows[row][1] != "0.123456" else "0.2"
    write_csv(folder / "t.csv", rows)
    return "t.csv", [repr(rows[row][0]), "'rate'"]


def outside(rng, folder):
    rows = rows_of(rng)
    bag = rows[int(rng.integers(len(rows)))][0]
    value = str(rng.choice(["1.5", "-0.2", "37", "1e30"]))
    write_csv(folder / "t.csv", [[*r[:1], value, *r[2:]] if r[0] == bag else r for r in rows])
    return "t.csv", [repr(bag), "'rate'"]


def other_encoding(rng, folder):
    rows = rows_of(rng)
    rows[int(rng.integers(len(rows)))][3] = "grün"
    write_csv(folder / "t.csv", rows, encoding=str(rng.choice(["latin-1", "utf-16"])))
    return "t.csv", []


def empty(rng, folder):
    header = (",".join(HEADER) + "\n").encode()
    (folder / "t.csv").write_bytes([b"", b"\n", header, b"   \n"][rng.integers(4)])
    return "", []


def noise(rng, folder):
    name = str(rng.choice(["t.csv", "t.parquet"]))
    (folder / name).write_bytes(rng.bytes(int(rng.integers(1, 4000))))
    return name, []


def one_bag(rng, folder):
    write_csv(folder / "t.csv", [["g0", "0.5", *row[2:]] for row in rows_of(rng)])
    return "t.csv", ["one bag"]


def few_bags(rng, folder):
    write_csv(folder / "t.csv", rows_of(rng, n_bags=int(rng.integers(2, 10))))
    return "", ["bags"]


def lost_column(rng, folder):
    column = int(rng.integers(2))
    keep = [i for i in range(len(HEADER)) if i != column]
    rows = [[row[i] for i in keep] for row in rows_of(rng)]
    write_csv(folder / "t.csv", rows, [HEADER[i] for i in keep])
    return "", [repr(HEADER[column])]


def doubled_column(rng, folder):
    header = [*HEADER]
    header[int(rng.integers(1, 5))] = "group"
    write_csv(folder / "t.csv", rows_of(rng), header)
    return "t.csv", ["'group' comes more than once"]


def bag_table(change):
    def make(rng, folder):
        rows = rows_of(rng)
        bags = [list(pair) for pair in sorted({(row[0], row[1]) for row in rows})]
        bag = bags[int(rng.integers(len(bags)))]
        write_csv(folder / "bags.csv", change(bags, bag), ["group", "rate"])
        write_csv(folder / "t.csv", [[r[0], *r[2:]] for r in rows], ["group", *HEADER[2:]])
        return "", []

    return make


def parquet_of(rng, **changes):
    names = {
        name: list(column)
        for name, column in zip(HEADER, zip(*rows_of(rng), strict=True), strict=True)
    }
    columns = names | {"rate": list(map(float, names["rate"])), "x": list(map(float, names["x"]))}
    return pa.table(columns | {k: v(columns) for k, v in changes.items()})


def truncated(rng, folder):
    pq.write_table(parquet_of(rng), folder / "t.parquet")
    content = (folder / "t.parquet").read_bytes()
    (folder / "t.parquet").write_bytes(content[: int(rng.integers(len(content)))])
    return "t.parquet", []


def broken_footer(rng, folder):
    pq.write_table(parquet_of(rng), folder / "t.parquet")
    content = bytearray((folder / "t.parquet").read_bytes())
    content[-12:] = rng.bytes(12)
    (folder / "t.parquet").write_bytes(bytes(content))
    return "t.parquet", []


def parquet_with(column, value):
    def make(rng, folder):
        row = int(rng.integers(50))

        def put(columns):
            values = list(columns[column])
            values[row] = value
            return values

        pq.write_table(parquet_of(rng, **{column: put}), folder / "t.parquet")
        return "t.parquet", [f"row {row + 1}", repr(column)]

    return make


def nested(rng, folder):
    table = parquet_of(rng, x=lambda columns: [[v] for v in columns["x"]])
    pq.write_table(table, folder / "t.parquet")
    return "t.parquet", ["'x'"]


def mixed_folder(rng, folder):
    write_csv(folder / "t.csv", rows_of(rng))
    pq.write_table(parquet_of(rng), folder / "t.parquet")
    return "", ["both CSV and Parquet"]


TABLES = {
    "word in a number": (csv_with("x", "many"), 12),
    "infinite feature": (csv_with("x", "inf"), 8),
    "huge feature": (csv_with("x", "9" * 320), 8),
    "very large feature": (csv_with("x", "1" + "0" * 150), 4),
    "impossible date": (csv_with("day", "2026-02-31"), 8),
    "word in a date": (csv_with("day", "yesterday"), 4),
    "missing proportion": (csv_with("rate", ""), 8),
    "nan proportion": (csv_with("rate", "nan"), 6),
    "infinite proportion": (csv_with("rate", "-inf"), 6),
    "word for a proportion": (csv_with("rate", "half"), 6),
    "missing bag": (csv_with("group", ""), 8),
    "ragged": (ragged, 12),
    "unclosed quote": (unclosed_quote, 6),
    "two proportions in a bag": (inconsistent, 8),
    "proportion outside": (outside, 8),
    "other encoding": (other_encoding, 8),
    "empty": (empty, 4),
    "noise": (noise, 10),
    "one bag": (one_bag, 2),
    "few bags": (few_bags, 4),
    "lost column": (lost_column, 4),
    "doubled column": (doubled_column, 4),
    "bag missing in the bag table": (bag_table(lambda bags, b: [x for x in bags if x != b]), 4),
    "bag twice in the bag table": (bag_table(lambda bags, b: [*bags, b]), 4),
    "bag without instances": (bag_table(lambda bags, b: [*bags, ["other", "0.5"]]), 2),
    "truncated parquet": (truncated, 14),
    "broken footer": (broken_footer, 6),
    "infinite in parquet": (parquet_with("x", float("inf")), 4),
    "bag missing in parquet": (parquet_with("group", None), 4),
    "nan proportion in parquet": (parquet_with("rate", float("nan")), 4),
    "nested column": (nested, 2),
    "two kinds of file": (mixed_folder, 2),
}


def damage_model(rng, folder):
    """Remove, empty or alter one file of a model folder; or leave none."""
    names = ["manifest.json", "model.json", "model.safetensors", "table.json", "fit.json"]
    path = folder / names[int(rng.integers(len(names)))]
    kind = int(rng.integers(5))
    if kind == 0:
        path.unlink()
    elif kind == 1:
        path.write_bytes(b"")
    elif kind == 2:
        content = bytearray(path.read_bytes())
        place = int(rng.integers(len(content)))
        content[place] ^= 0xFF
        path.write_bytes(bytes(content))
    elif kind == 3:
        path.write_text(json.dumps({"format": 99}))
    else:
        shutil.rmtree(folder)


N_MODELS = 14
