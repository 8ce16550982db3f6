"""`unbag fit`: from a table to a model, its estimated error and a report."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbag.cli import options as opt

if TYPE_CHECKING:
    from unbag.tables import FitOptions, Roles

__all__ = ["fit"]


def fit(
    table: opt.TablePath,
    bag: opt.Bag,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model folder to write.")],
    proportion: opt.Proportion = None,
    count: opt.Count = None,
    size: opt.Size = None,
    noise: opt.Noise = None,
    bags_table: opt.BagsTable = None,
    key: opt.Key = None,
    ignore: opt.Ignore = None,
    category: opt.Category = None,
    number: opt.Number = None,
    task: opt.Task = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Model to try, repeat for several: ridge, boosting, count_boosting, nets, or one "
            "rule for a net."
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Most epochs of a net; by default 1 to 100, fewer for more rows."),
    ] = None,
    learning_rate: Annotated[float, typer.Option(help="Of the nets.")] = 3e-3,
    held_out: Annotated[
        float,
        typer.Option(
            min=0.05, max=0.4, help="Share of bags held out to select, and share to evaluate."
        ),
    ] = 0.2,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    memory: Annotated[
        int, typer.Option(min=1, help="Megabytes of features above which bags stay on disk.")
    ] = 1024,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Learn to predict single rows from the proportions of bags of rows.

    Several models are trained; held-out bags choose one, and others say how good it is. No label
    of a single row is needed. Writes a model folder with a report.html in it.

    Examples:

      unbag fit example:conversions --bag report --count conversions --key event_id -o model/

      unbag fit events.parquet --bag group --proportion rate -o model/

      unbag fit visits.csv --bag clinic --count cases --size visits --key visit_id -o model/

      unbag fit visits.csv --bag clinic --count cases --model boosting --model nets -o model/

      unbag fit people.csv --bags-table precincts.csv --bag precinct --proportion share -o model/
    """
    from unbag.cli.console_tables import show_candidates, show_checks, show_data, show_metrics
    from unbag.report import render_report
    from unbag.tables import fit_table, scan_table
    from unbag.tables.model import check_free
    from unbag.tables.options import BOOSTING, default_models
    from unbag.tables.record import data_record, fit_record

    roles = opt.roles_of(bag, proportion, count, size, noise, key, ignore, category, number, task)
    options = options_of(
        models=tuple(model) if model else default_models(),
        epochs=epochs,
        learning_rate=learning_rate,
        held_out=held_out,
        seed=seed,
        memory=memory << 20,
    )
    check_free(output, overwrite=overwrite)
    words = opt.console(as_json)
    found = scan_table(table, roles, bag_table=bags_table)
    show_data(data_record(found), words)
    if not model and BOOSTING not in options.models:
        words.print("LightGBM would add boosted trees: pip install 'unbag[gbm]'")
    fitted = fit_table(found, options, say=lambda text: words.print(f"... {text}"))
    command = command_of(table, roles, options, output, bags_table)
    record = fit_record(found, fitted, options, command=command)
    fitted.model(found, record).save(
        output, overwrite=overwrite, pages={"report.html": render_report(record)}
    )
    show_checks(record["checks"], words)
    show_candidates(record["candidates"], words)
    show_metrics(record["evaluation"], words)
    words.print(error_sentence(record))
    if record["caution"]:
        words.print(f"! {record['caution']}")
    words.print(f"The model and its report.html are in {output}.")
    opt.answer(record | {"output": str(output)}, as_json)


def options_of(**values: Any) -> FitOptions:
    """Options of the fit; an invalid one is an error of the command line."""
    from unbag.tables import FitOptions

    try:
        return FitOptions(**values)
    except ValueError as refusal:
        raise typer.BadParameter(str(refusal)) from None


def command_of(
    table: str, roles: Roles, options: FitOptions, output: Path, bags_table: str | None
) -> str:
    """The command that makes the same model again."""
    pairs: list[tuple[str, Any]] = [("--bags-table", bags_table), ("--bag", roles.bag)]
    pairs += [("--proportion", name) for name in roles.proportions]
    pairs += [("--count", name) for name in roles.counts]
    pairs += [("--size", roles.size), ("--noise", roles.noise)]
    pairs += [("--key", name) for name in roles.keys]
    pairs += [("--ignore", name) for name in roles.ignored]
    pairs += [("--category", name) for name in roles.categories]
    pairs += [("--number", name) for name in roles.numbers]
    pairs += [("--task", roles.task)]
    pairs += [("--model", name) for name in options.models]
    pairs += [("--epochs", options.epochs), ("--learning-rate", options.learning_rate)]
    pairs += [("--held-out", options.held_out), ("--seed", options.seed)]
    pairs += [("--memory", options.memory >> 20), ("--output", output)]
    words = [str(word) for name, value in pairs if value is not None for word in (name, value)]
    return shlex.join(["unbag", "fit", table, *words])


def error_sentence(record: dict[str, Any]) -> str:
    """The estimated error in one line."""
    from unbag.tables.model import stated_error

    return (
        f"{record['chosen']} is chosen. Error on single rows, by bags that neither trained nor "
        f"chose it: {stated_error(record)}."
    )
