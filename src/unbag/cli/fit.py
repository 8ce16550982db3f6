"""`unbag fit`: from a table to a model, its estimated error and a report."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from unbag.cli import options as opt


def fit(
    context: typer.Context,
    table: opt.TablePath,
    bag: opt.Bag,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model folder to write.")],
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
    blocks: opt.Blocks = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Learner of the stack; repeat it for several: ridge, process, logistic, em, "
            "boosting, count_boosting, or the name of a rule for a net."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer learners and folds.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of parallel fits; by default chosen by the size of the table."
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(help="Run fits on a Ray cluster: its address, or 'local'."),
    ] = None,
    grouping: Annotated[
        Literal["auto", "random", "natural"],
        typer.Option(help="Whether bags are random groups of rows; auto tests it."),
    ] = "auto",
    held_out: Annotated[
        float, typer.Option(min=0.05, max=0.4, help="Share of bags held out for evaluation.")
    ] = 0.2,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    memory: Annotated[
        int, typer.Option(min=1, help="Megabytes of features in memory; sample larger tables.")
    ] = 1024,
    learning_curve: Annotated[
        bool, typer.Option("--learning-curve", help="Estimate whether more bags would help; slow.")
    ] = False,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Learn to predict single rows from the proportions of bags of rows.

    Several learners are fitted and averaged with weights chosen without labels. The error is
    estimated on held-out bags. The model folder contains a report.html.

    Examples:

      unbag fit example:conversions --bag report --count conversions --key event_id -o model/

      unbag fit events.parquet --bag group --proportion rate -o model/

      unbag fit visits.csv --bag clinic --count cases --size visits --key visit_id -o model/

      unbag fit visits.csv --bag clinic --count cases --blocks day --jobs 2 -o model/

      unbag fit flats.csv --bag block --average energy -o model/

      unbag fit people.csv --bags-table precincts.csv --bag precinct --proportion share -o model/
    """
    from unbag.cli.console_tables import show_data, show_fit
    from unbag.estimators.saving import check_free
    from unbag.extras import has_module
    from unbag.report import render_report
    from unbag.tables import FitOptions, fit_table, scan_table
    from unbag.tables.record import data_record, model_of

    columns: dict[str, Any] = {"size": size, "noise": noise, "task": task, "block": blocks}
    columns |= {"keys": key, "ignored": ignore, "categories": category, "numbers": number}
    roles = opt.roles_of(bag, proportion, count, average, total, **columns)
    words = opt.console(as_json)
    try:
        options = FitOptions(
            models=tuple(model or ()),
            quick=quick,
            jobs=jobs,
            ray=ray,
            grouping=grouping,
            held_out=held_out,
            seed=seed,
            memory=memory << 20,
            progress=words.is_terminal,
            learning_curve=learning_curve,
        )
    except ValueError as refusal:
        raise typer.BadParameter(str(refusal)) from None
    check_free(output, overwrite=overwrite)
    found = scan_table(table, roles, bag_table=bags_table)
    show_data(data_record(found), words)
    if not model and not has_module("lightgbm"):
        words.print("LightGBM would add boosted trees: pip install 'unbag[gbm]'")
    fitted = fit_table(found, options, say=lambda text: words.print(f"... {text}"))
    made = model_of(found, fitted, options, command=command_of(context))
    record = made.record
    made.save(output, overwrite=overwrite, pages={"report.html": render_report(record)})
    show_fit(fitted, record["caution"], words)
    words.print(f"The model and its report.html are in {output}.")
    opt.answer(record | {"output": str(output)}, as_json)


def command_of(context: typer.Context) -> str:
    """Command that reproduces the model: all values that differ from the defaults."""
    words: list[str] = []
    for param in context.command.params:
        value = context.params.get(param.name or "")
        if value == param.default or param.name in ("as_json", "overwrite") or not value:
            continue
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        for one in values:
            name = [] if param.param_type_name == "argument" else [param.opts[0]]
            words += name if one is True else [*name, str(one)]
    return shlex.join(["unbag", "fit", *words])
