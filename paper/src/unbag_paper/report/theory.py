"""The part of the page of results that is about the paper's claims."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unbag_paper.claims.results import Claim
from unbag_paper.errors import StoreError
from unbag_paper.report.embedded_images import embedded_svg

__all__ = ["theory_section"]


def theory_section(folder: Path) -> dict[str, Any] | None:
    """Claims with verdicts and figures, as `unbag-paper theory` left them; None without."""
    path = folder / "claims.json"
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        experiments = list(dict.fromkeys(entry["experiment"] for entry in found["claims"]))
        claims = [_claim(entry) for entry in found["claims"]]
        head = {"grid": str(found["grid"]), "seed": str(found["seed"])}
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{path} cannot be read as claims ({error!r}). `unbag-paper theory` makes it anew."
        ) from error
    return {
        **head,
        "claims": claims,
        "n_passed": sum(claim.passed for claim in claims),
        "n_refuted": sum(not claim.passed and claim.refuted for claim in claims),
        "figures": list(_figures(folder, experiments)),
    }


def _claim(entry: dict[str, Any]) -> Claim:
    return Claim(**{name: value for name, value in entry.items() if name != "experiment"})


def _figures(folder: Path, experiments: list[str]) -> Iterator[dict[str, str]]:
    for name in experiments:
        path = folder / f"{name}.svg"
        if path.is_file():
            title = name.replace("_", " ")
            yield {"title": title, "image": embedded_svg(path.read_bytes())}
