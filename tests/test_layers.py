"""Data flows downwards: a folder imports only from itself and from groups above its own."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "unbag"

# Top to bottom. A folder may import from every group above, and not from the others of its group.
LAYERS = [
    {"arguments", "arrays", "errors", "randomness"},
    {"extras"},
    {"charts", "frames"},
    {"bags", "datasets", "models", "planning"},
    {"posterior"},
    {"rules"},
    {"training"},
    {"images", "parallel"},
    {"evaluation"},
    {"estimators"},
    {"tables"},
    {"report"},
    {"cli"},
    {"__init__", "__main__"},
]


def layer_of(name: str) -> int:
    for depth, group in enumerate(LAYERS):
        if name in group:
            return depth
    raise AssertionError(f"unbag.{name} is in no layer: add it to LAYERS")


def imported_folders(text: str, path: Path) -> set[str]:
    """First component below `unbag` of every import in a module."""
    found = set()
    package = ("unbag", *path.relative_to(SOURCE).parts[:-1])
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            names = [module] if module != "unbag" else [f"unbag.{a.name}" for a in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("unbag.")}
    return found


def violations(text: str, path: Path) -> list[str]:
    relative = path.relative_to(SOURCE)
    own = relative.parts[0].removesuffix(".py")
    return [
        f"{relative} imports unbag.{other}"
        for other in sorted(imported_folders(text, path) - {own})
        if layer_of(other) >= layer_of(own)
    ]


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.name))
def test_imports_point_upwards(path):
    assert violations(path.read_text(), path) == []


def test_the_layer_check_rejects_a_downward_import():
    path = SOURCE / "rules" / "broken.py"
    assert violations("from unbag.training import train", path)
    assert violations("from ..estimators import BagClassifier", path)
    assert violations("from unbag.tables import Roles", path)
    assert not violations("from unbag.rules import Rule", path)
    assert not violations("from unbag.bags import Bags", path)
