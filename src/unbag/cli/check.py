"""`unbag check`: test whether bags satisfy the assumptions of the estimates."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from unbag.cli import options as opt


def check(
    table: opt.TablePath,
    bag: opt.Bag,
    proportion: opt.Proportion = None,
    count: opt.Count = None,
    average: opt.Average = None,
    total: opt.Sum = None,
    size: opt.Size = None,
    noise: opt.Noise = None,
    bags_table: opt.BagsTable = None,
    key: opt.Key = None,
    ignore: opt.Ignore = None,
    category: opt.Category = None,
    number: opt.Number = None,
    task: opt.Task = None,
    level: Annotated[
        float, typer.Option(min=0.0001, max=0.5, help="Probability of a false alarm.")
    ] = 0.05,
    max_rows: Annotated[
        int, typer.Option(min=1, help="Maximum rows to test; larger tables are sampled by bag.")
    ] = 500_000,
    strict: Annotated[bool, typer.Option(help="Exit with code 3 if a check is raised.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Describe a table of bags, and test whether its bags are random groups of rows.

    Examples:

      unbag check events.parquet --bag group --proportion rate

      unbag check visits.csv --bag clinic --count cases --strict --json

      unbag check flats.csv --bag block --average energy
    """
    from unbag.bags.holdout import take_bags
    from unbag.cli.console_tables import show_data
    from unbag.tables import read_bags, scan_table
    from unbag.tables.fit import check_table
    from unbag.tables.record import checks_record, data_record

    columns: dict[str, Any] = {"size": size, "noise": noise, "task": task}
    columns |= {"keys": key, "ignored": ignore, "categories": category, "numbers": number}
    roles = opt.roles_of(bag, proportion, count, average, total, **columns)
    words = opt.console(as_json)
    found = scan_table(table, roles, bag_table=bags_table)
    data = data_record(found)
    show_data(data, words)
    positions = take_bags(found.index.sizes, max_rows=max_rows)
    report = check_table(found, read_bags(found, positions), level=level)
    words.print(report)
    opt.answer({"data": data, "checks": checks_record(report)}, as_json)
    if strict and not report.plausible:
        raise typer.Exit(3)
