"""One call of `unbag-paper`: what was asked for, and carrying it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unbag.errors import UnbagError
from unbag_paper.data import Labelled, load_problem
from unbag_paper.errors import StoreError
from unbag_paper.runs.grid import Grid, Part, check_known, load_grids
from unbag_paper.runs.rows import Store, read_rows

if TYPE_CHECKING:
    from rich.console import Console

    from unbag.parallel import Executor
    from unbag_paper.runs.runner import Runner, RunPlan

Show = Callable[[str], None]

_OPTIONS: dict[Part, str] = {"models": "models", "rules": "rules", "bag_sizes": "bag-sizes"}

__all__ = ["Request", "chosen_grids", "render_request", "run_request"]


@dataclass(frozen=True)
class Request:
    """What to run.

    Attributes
    ----------
    grids : tuple of str
        Names of declared grids.
    restriction : mapping
        Arguments of `Grid.restrict`.
    options, settings : mapping
        Further arguments of the runner, and of the engine.
    trials_per_stack : int, optional
        Overrides what the grids declare.
    folder : path, optional
        Where the data files are.
    store : path
        Folder of rows.
    resume : bool
        Whether the folder may hold rows of these trials already.
    deadline : float, optional
        Value of `time.monotonic()` to end before.
    plan_only : bool
    ray : str, optional
        "local", or the address of a Ray cluster that trains the stacks.
    out : path, optional
        Folder for tables and figures. None prints the tables, and writes pages into ``tables``
        beside the rows only if nothing was restricted.
    """

    grids: tuple[str, ...]
    store: Path
    restriction: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    trials_per_stack: int | None = None
    folder: Path | None = None
    resume: bool = False
    deadline: float | None = None
    plan_only: bool = False
    ray: str | None = None
    out: Path | None = None

    @property
    def is_restricted(self) -> bool:
        """Whether only a part of the grids is asked for."""
        return any(value is not None for value in self.restriction.values())


def chosen_grids(names: tuple[str, ...], restriction: Mapping[str, Any]) -> list[Grid]:
    """Grids with these names, cut down to what each has of it; those without any are skipped.

    Raises
    ------
    UnbagError
        If a name is in no grid, or no grid has a cell of all that was asked for.
    """
    grids = [grid for name in names for grid in load_grids(name)]
    try:
        _check_names(grids, restriction)
    except ValueError as error:
        raise UnbagError(str(error)) from error
    kept = [cut for grid in grids if (cut := _cut_down(grid, restriction)) is not None]
    if not kept:
        asked = [f"--{option} {_listed(restriction[part])}" for part, option in _asked(restriction)]
        raise UnbagError(f"No table or figure has all of this: {' '.join(asked)}.")
    return kept


def _asked(restriction: Mapping[str, Any]) -> list[tuple[Part, str]]:
    """Parts that were named, each with its option."""
    return [(part, option) for part, option in _OPTIONS.items() if restriction.get(part)]


def _check_names(grids: list[Grid], restriction: Mapping[str, Any]) -> None:
    """Every name is that of something, and there are as many seeds."""
    for part, option in _asked(restriction):
        known = dict.fromkeys(name for grid in grids for name in grid.names(part))
        check_known(option, map(_as_named, restriction[part]), known)
    n_seeds, most = restriction.get("n_seeds"), max(len(grid.seeds) for grid in grids)
    if n_seeds is not None and n_seeds > most:
        raise ValueError(f"seeds must be at most {most}, as many as are declared, got {n_seeds}.")


def _cut_down(grid: Grid, restriction: Mapping[str, Any]) -> Grid | None:
    """What a grid has of it, if anything."""
    own = dict(restriction)
    for part, _ in _asked(restriction):
        names = map(_as_named, restriction[part])
        own[part] = [name for name in names if name in grid.names(part)]
        if not own[part]:
            return None
    found = grid.restrict(**own)
    return found if any(True for _ in found.cells()) else None


def _as_named(name: Any) -> Any:
    return name.lower() if isinstance(name, str) else name


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names))


def run_request(request: Request, console: Console, show: Show) -> dict[str, Any]:
    """Print the plan, run it with a progress bar, show what came out, and answer with figures."""
    from unbag_paper.runs.progress import work_bar
    from unbag_paper.runs.runner import Runner

    grids = [_with_stacks(g, request.trials_per_stack) for g in _grids(request)]
    names = {name for grid in grids for name in grid.datasets}
    data: dict[str, Labelled] = {n: load_problem(n, folder=request.folder) for n in sorted(names)}
    store = Store(request.store)
    runner = Runner(
        grids,
        store,
        data,
        deadline=request.deadline,
        settings=request.settings,
        executor=_executor(request),
        **request.options,
    )
    plan = runner.plan()
    _print_plan(plan, runner, console)
    planned = {"done": plan.n_done, "to_run": len(plan.trials), "seconds": plan.seconds}
    if request.plan_only:
        return {"plan": planned}
    if plan.n_done and not request.resume:
        raise StoreError(
            f"{request.store} already holds {plan.n_done} of these trials. Add --resume to go "
            "on with the others, or name another folder with --store."
        )
    request.store.mkdir(parents=True, exist_ok=True)  # to render from, even if time ends at once
    with work_bar(plan.seconds, console=console) as tick:
        ended = runner.run(tick)
    console.print(f"{ended}: {len(store.rows())} rows in {request.store}", highlight=False)
    return {"plan": planned, "ended": str(ended)} | render_request(request, console, show)


def render_request(request: Request, console: Console, show: Show) -> dict[str, Any]:
    """Show tables and write pages, from the rows that are there."""
    from unbag_paper.tables.figures import FIGURES
    from unbag_paper.tables.pages import short_table, write_pages

    grids = _grids(request)
    rows = read_rows(request.store)
    tables = {grid.name: short_table(grid, rows) for grid in grids if grid.name not in FIGURES}
    for table in tables.values():
        show(table)
    written: list[str] = []
    if request.out is not None or not request.is_restricted:
        for path in write_pages(grids, rows, request.out or request.store.parent / "tables"):
            console.print(f"wrote {path}", highlight=False)
            written.append(str(path))
    store_record = {"store": str(request.store), "rows": len(rows)}
    return {**store_record, "tables": tables, "written": written}


def _executor(request: Request) -> Executor | None:
    """Where to train, if not here; a plan starts nothing."""
    from unbag.parallel import get_executor

    if request.ray is None or request.plan_only:
        return None
    on_gpu = str(request.options.get("device", "cpu")).startswith("cuda")
    return get_executor(ray=request.ray, gpus_per_job=int(on_gpu))


def _grids(request: Request) -> list[Grid]:
    return chosen_grids(request.grids, request.restriction)


def _with_stacks(grid: Grid, trials_per_stack: int | None) -> Grid:
    if trials_per_stack is None:
        return grid
    sizes = dict.fromkeys(grid.models, trials_per_stack)
    return replace(grid, stacks={"cpu": sizes, "cuda": sizes})


def _print_plan(plan: RunPlan, runner: Runner, console: Console) -> None:
    from unbag_paper.runs.protocol import count_planned

    for grid in runner.grids:
        n_cells = sum(1 for _ in grid.cells())
        n_trials = count_planned(grid, protocol=runner.protocol)
        console.print(
            f"{grid.name}: {n_cells} cells, {n_trials} trainings by the {runner.protocol} protocol",
            highlight=False,
        )
    console.print(
        f"done {plan.n_done}, to run now {len(plan.trials)}, about {_duration(plan.seconds)} on "
        f"{runner.costs.device_name}",
        highlight=False,
    )


def _duration(seconds: float) -> str:
    """A number of seconds in words.

    Examples
    --------
    >>> _duration(50), _duration(1800), _duration(9000)
    ('50 s', '30 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
