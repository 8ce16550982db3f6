"""`unbag-paper`: the paper's tables and figures, from declared grids to rendered pages."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from unbag.cli import options as opt

__all__ = ["What", "merge", "reproduce"]


_STORE = "Folder of rows."
_DEFAULT_STORE = Path("paper/results/rows")

_HOW = (
    "Prints the plan first; rows are saved as they are finished. Killed or out of time, the same "
    "command with --resume goes on."
)


class What(StrEnum):
    """What to reproduce; "render" makes tables and figures from rows alone."""

    MNIST = "mnist"
    CIFAR = "cifar"
    FIGURES = "figures"
    ALL = "all"
    RENDER = "render"

    @property
    def summary(self) -> str:
        """One line for the list of commands."""
        return {
            What.MNIST: "Table 1: MNIST, odd against even.",
            What.CIFAR: "Table 2: CIFAR-10, animal against machine.",
            What.FIGURES: "Figures 1 to 3.",
            What.ALL: "All tables and figures.",
            What.RENDER: "Tables and figures from rows alone; trains nothing.",
        }[self]

    @property
    def help(self) -> str:
        """What the command does, with examples."""
        examples = {
            What.MNIST: [
                "--models linear,mlp100 --bag-sizes 100 --seeds 2",
                "--device cuda --resume",
            ],
            What.CIFAR: ["--plan", "--exact --device cuda --minutes 50 --resume --json"],
            What.FIGURES: ["--plan", "--device cuda --resume"],
            What.ALL: ["--plan --json", "--device cuda --protocol paper --resume"],
            What.RENDER: ["--out pages/", "--store more/rows --json"],
        }[self]
        lines = [f"  unbag-paper {self} {options}" for options in examples]
        how = [] if self is What.RENDER else [_HOW]
        return "\n\n".join([self.summary, *how, "Examples:", *lines])


class ProtocolName(StrEnum):
    """How many trials decide a cell."""

    LEAN = "lean"
    PAPER = "paper"


class PrecisionName(StrEnum):
    """What matrix products on a GPU are rounded to."""

    FLOAT32 = "float32"
    TF32 = "tf32"
    BFLOAT16 = "bfloat16"


def _usable(device: str) -> str:
    from unbag.arguments import check_device

    try:
        check_device(device)
    except ValueError as refusal:
        raise typer.BadParameter(str(refusal)) from None
    return device


_GRIDS = {
    What.MNIST: ("mnist",),
    What.CIFAR: ("cifar",),
    What.FIGURES: ("figure1", "figure2", "figure3"),
    What.ALL: (
        "mnist",
        "cifar",
        "mnist_exact",
        "cifar_exact",
        "figure1",
        "figure2",
        "figure3",
    ),
}


def reproduce(
    context: typer.Context,
    *,
    models: Annotated[str, typer.Option(help="Models, such as linear,mlp100.")] = "",
    rules: Annotated[str, typer.Option(help="Rules, by label or name.")] = "",
    bag_sizes: Annotated[str, typer.Option(help="Bag sizes, such as 10,100.")] = "",
    exact: Annotated[
        bool, typer.Option("--exact", help="Use the paper's own images, bags and batches.")
    ] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Number of seeds.")] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Number of epochs, if fewer than declared.")
    ] = None,
    protocol: Annotated[ProtocolName, typer.Option(help="Trials per cell.")] = ProtocolName.LEAN,
    label_free: Annotated[
        bool, typer.Option(help="In lean, also confirm the label-free rate.")
    ] = True,
    device: Annotated[str, typer.Option(callback=_usable, help="cpu or cuda.")] = "cpu",
    precision: Annotated[
        PrecisionName, typer.Option(help="Precision of matrix products on a GPU.")
    ] = PrecisionName.FLOAT32,
    compile_models: Annotated[
        bool, typer.Option("--compile", help="Compile optimizer and CNNs.")
    ] = False,
    stack: Annotated[int | None, typer.Option(min=1, help="Trials trained at once.")] = None,
    side_by_side: Annotated[
        int, typer.Option(min=1, help="Unstacked trials that share a GPU.")
    ] = 8,
    data: Annotated[Path | None, typer.Option(help="Folder with the data files.")] = None,
    store: Annotated[Path, typer.Option(help=_STORE)] = _DEFAULT_STORE,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for pages; by default tables/ beside the rows, if complete."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue with existing rows.")] = False,
    minutes: Annotated[float | None, typer.Option(min=0, help="Stop cleanly before this.")] = None,
    ray: Annotated[
        str | None, typer.Option(help="Train on Ray: local, or a cluster's address.")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only print the plan.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Reproduce the paper's tables and figures."""
    begun = time.monotonic()
    what = What(str(context.info_name))
    from unbag_paper.runs.request import Request, render_request, run_request

    request = Request(
        grids=_grids(what, exact),
        restriction=_restriction(models, rules, bag_sizes, seeds, epochs),
        options={"device": device, "protocol": str(protocol), "label_free": label_free},
        settings={
            "precision": str(precision),
            "compile": compile_models,
            "side_by_side": side_by_side,
        },
        trials_per_stack=stack,
        folder=data,
        store=store,
        resume=resume,
        deadline=None if minutes is None else begun + 60 * minutes,
        plan_only=plan,
        ray=ray,
        out=out,
    )
    work = render_request if what is What.RENDER else run_request
    done = work(request, opt.console(True), (lambda table: None) if as_json else typer.echo)
    opt.answer(done, as_json)


def merge(
    folders: Annotated[list[Path], typer.Argument(help="Folders of rows to add.")],
    store: Annotated[Path, typer.Option(help=_STORE)] = _DEFAULT_STORE,
    commit: Annotated[str | None, typer.Option(help="Commit of rows without one.")] = None,
    as_json: opt.Json = False,
) -> None:
    """Add the rows of other folders, such as one from another machine.

    Examples:

      unbag-paper merge gpu/rows

      unbag-paper merge a/rows b/rows --store paper/results/rows --json
    """
    from unbag_paper.runs.rows import Store

    rows = Store(store, read_spec=_any_spec)
    new = {str(folder): rows.merge(folder, commit=commit) for folder in folders}
    for folder, n_rows in new.items():
        opt.console(as_json).print(f"{folder}: {n_rows} new rows", soft_wrap=True)
    opt.answer({"store": str(store), "new_rows": new}, as_json)


def _any_spec(text: str) -> Any:
    """A trial of the paper's tables, or a run on bags of images, which has a method."""
    from unbag_paper.league.spec import RunSpec
    from unbag_paper.runs.trial_spec import TrialSpec

    return (RunSpec if '"method"' in text else TrialSpec).from_json(text)


def _grids(what: What, exact: bool) -> tuple[str, ...]:
    if not exact:
        return _GRIDS.get(what, _GRIDS[What.ALL])
    if what not in (What.MNIST, What.CIFAR):
        raise typer.BadParameter("--exact is for mnist and cifar; all and render have both.")
    return (f"{what}_exact",)


def _words(text: str) -> list[str] | None:
    return [word.strip() for word in text.split(",") if word.strip()] or None


def _restriction(
    models: str, rules: str, bag_sizes: str, seeds: int | None, epochs: int | None
) -> dict[str, Any]:
    sizes = _words(bag_sizes)
    if sizes is not None and not all(size.isdigit() for size in sizes):
        message = f"bag sizes must be whole numbers, got {bag_sizes!r}"
        raise typer.BadParameter(message, param_hint="--bag-sizes")
    return {
        "models": _words(models),
        "rules": _words(rules),
        "bag_sizes": None if sizes is None else [int(size) for size in sizes],
        "n_seeds": seeds,
        "epochs": epochs,
    }
