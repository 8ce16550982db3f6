"""`unbag-paper images`: methods that learn from bags of images, under one protocol."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbag.cli import options as opt
from unbag.errors import UnbagError

if TYPE_CHECKING:
    from unbag_paper.league.grid import LeagueGrid

__all__ = ["images"]


def images(
    grid: Annotated[
        str, typer.Option(help="Table: peers, goal, strongest, or smoke (a minute on digits).")
    ] = "peers",
    methods: Annotated[str, typer.Option(help="Methods, such as dllp,ours.")] = "",
    bags: Annotated[str, typer.Option(help="Kinds of bags: random,clusters.")] = "",
    bag_sizes: Annotated[str, typer.Option(help="Bag sizes, such as 32,128.")] = "",
    seeds: Annotated[int | None, typer.Option(min=1, help="Number of seeds.")] = None,
    rates: Annotated[int | None, typer.Option(min=1, help="Number of learning rates.")] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    workers: Annotated[int, typer.Option(min=1, help="Parallel runs on the device.")] = 1,
    minutes: Annotated[float | None, typer.Option(min=0, help="Stop cleanly before this.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder with the data files.")] = None,
    store: Annotated[Path, typer.Option(help="Folder of rows.")] = Path("paper/results/images"),
    starts: Annotated[
        Path | None, typer.Option(help="Folder in which runs share contrastive pre-training.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the page; none by default.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only print missing runs.")] = False,
    render: Annotated[bool, typer.Option("--render", help="Only render the page.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Run the missing trainings of a table of methods on bags of images, and show the table.

    Rows are saved as runs end. The same command goes on where it stopped.

    Examples:

      unbag-paper images --grid smoke --store smoke/rows

      unbag-paper images --grid peers --device cuda --workers 4 --minutes 9 --data cifar/

      unbag-paper images --grid goal --render --out paper/results/tables/images_goal.md
    """
    begun = time.monotonic()
    table = _table(grid, methods, bags, bag_sizes, seeds, rates)
    answer: dict[str, Any] = {"grid": grid, "store": str(store)}
    if not render:
        deadline = None if minutes is None else begun + 60 * minutes
        machine: dict[str, Any] = {
            "device": device,
            "deadline": deadline,
            "starts": starts,
        }
        answer |= _train(table, store, data, machine, workers, plan, opt.console(True).print)
    if not plan:
        answer["page"] = _page(table, store, out)
        if not as_json:
            typer.echo(answer["page"])
    opt.answer(answer, as_json)


def _train(
    table: LeagueGrid,
    store: Path,
    folder: Path | None,
    machine: dict[str, Any],
    workers: int,
    plan: bool,
    show: Any,
) -> dict[str, Any]:
    from unbag_paper.league.data import load_images
    from unbag_paper.league.runner import LeagueRunner
    from unbag_paper.league.training import Machine

    loaded = load_images(table.dataset, folder)
    runner = LeagueRunner(table, store, loaded, Machine(**machine), workers)
    planned = runner.plan()
    show(f"{planned['to_run']} runs to do, about {planned['minutes']} minutes", highlight=False)
    if plan:
        return {"plan": planned}
    ended = runner.run(lambda text: show(text, highlight=False))
    return {"plan": planned, "ended": ended}


def _page(table: LeagueGrid, store: Path, out: Path | None) -> str:
    from unbag_paper.league.page import league_page
    from unbag_paper.league.rows import league_rows

    page = league_page(table, league_rows(store))
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(page, encoding="utf-8")
    return page


def _table(
    grid: str, methods: str, bags: str, bag_sizes: str, seeds: int | None, rates: int | None
) -> LeagueGrid:
    from unbag_paper.league.grid import load_grid

    sizes = _words(bag_sizes)
    try:
        table = load_grid(grid)
        return table.restrict(
            methods=_words(methods),
            bags=_words(bags),
            bag_sizes=None if sizes is None else [int(size) for size in sizes],
            seeds=None if seeds is None else table.seeds[:seeds],
            learning_rates=None if rates is None else table.learning_rates[:rates],
        )
    except ValueError as error:
        raise UnbagError(str(error)) from None


def _words(text: str) -> list[str] | None:
    return [word.strip() for word in text.split(",") if word.strip()] or None
