"""The shape of the library: sizes, imports between packages, and what users reach.

    python tools/house.py            print the tables
    python tools/house.py --check    exit with 1 if a limit is broken

Lines are all lines of a file. A module is reached if the public API, or a command that a user
calls, imports it directly or through others.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import defaultdict
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "unbag"
GOAL, LEAST_REACHED = 18_000, 0.90
# Held by the tests, so that the library does not grow unnoticed on its way to the goal.
MOST_LINES = 22_300


@dataclass(frozen=True)
class Module:
    """A file of the library."""

    name: str
    lines: int
    public: tuple[str, ...]
    imports: frozenset[str]
    foreign: frozenset[str]

    @property
    def package(self) -> str:
        """First folder or file below the library."""
        return self.name.split(".")[1] if "." in self.name else "(top)"


def read_modules(source: Path = SOURCE) -> dict[str, Module]:
    """Every module of the library by its dotted name."""
    paths = {_name(path, source): path for path in sorted(source.rglob("*.py"))}
    return {name: _read(name, path, set(paths)) for name, path in paths.items()}


def _name(path: Path, source: Path) -> str:
    parts = (source.name, *path.relative_to(source).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def _read(name: str, path: Path, known: set[str]) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    found = set(_imported(tree))
    own = frozenset(n for full in found if (n := _longest(full, known)) and n != name)
    foreign = frozenset(full.split(".")[0] for full in found)
    lines = text.count("\n")
    lazy = _lazy(tree, known) if name in ("unbag", "unbag.cli") else frozenset()
    return Module(name, lines, tuple(_public(tree)), own | lazy, foreign)


def _imported(tree: ast.AST) -> list[str]:
    """Dotted names that a file imports, a name from a package with its package."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def _longest(full: str, known: set[str]) -> str | None:
    while full and full not in known:
        full = full.rpartition(".")[0]
    return full or None


def _lazy(tree: ast.Module, known: set[str]) -> set[str]:
    """Modules that a table of names points to, as the top and the command line have."""
    words = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    commands = {f"unbag.cli.{word}" for word in words if isinstance(word, str)}
    return ({word for word in words if isinstance(word, str)} | commands) & known


def _public(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            if isinstance(node.value, ast.List):
                return [str(word) for word in ast.literal_eval(node.value)]
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES":
            return " ".join(ast.literal_eval(node.value).values()).split()
    kinds = ast.FunctionDef | ast.ClassDef
    return [n.name for n in tree.body if isinstance(n, kinds) and not n.name.startswith("_")]


def reached(modules: dict[str, Module], starts: tuple[str, ...] = ("unbag", "unbag.cli")) -> set:
    """Modules that the public API and the commands import, with the packages they lie in."""
    found: set[str] = set()
    todo = list(starts)
    while todo:
        name = todo.pop()
        if name in found or name not in modules:
            continue
        found.add(name)
        todo += [*modules[name].imports, name.rpartition(".")[0]]
    return found


def package_graph(modules: dict[str, Module]) -> dict[str, set[str]]:
    """Packages that each package imports."""
    graph: dict[str, set[str]] = defaultdict(set)
    for module in modules.values():
        others = {modules[name].package for name in module.imports}
        graph[module.package] |= others - {module.package, "(top)"}
    return dict(graph)


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """A cycle of packages, the top apart, which imports all; empty if there is none."""
    below = {name: others for name, others in graph.items() if name not in ("(top)", "__main__")}
    try:
        list(TopologicalSorter(below).static_order())
    except CycleError as error:
        return list(error.args[1])
    return []


def problems(modules: dict[str, Module]) -> list[str]:
    """Limits that are broken, in words."""
    lines = sum(module.lines for module in modules.values())
    share = sum(modules[name].lines for name in reached(modules)) / lines
    papers = [m.name for m in modules.values() if "unbag_paper" in m.foreign]
    loop = cycle(package_graph(modules))
    found = {
        f"the library has {lines:,} lines, at most {MOST_LINES:,} are allowed": lines > MOST_LINES,
        f"users reach {share:.0%} of the lines": share < LEAST_REACHED,
        f"the paper is imported by {', '.join(papers)}": papers,
        f"packages import in a circle: {' -> '.join(loop)}": loop,
    }
    return [words for words, broken in found.items() if broken]


def table(modules: dict[str, Module]) -> str:
    """Lines, files, public names and imports of every package, then the sums."""
    graph, found = package_graph(modules), reached(modules)
    groups: dict[str, list[Module]] = defaultdict(list)
    for module in modules.values():
        groups[module.package].append(module)
    rows = [f"{'package':<12} {'lines':>6} {'files':>5} {'names':>5} {'reached':>7}  imports"]
    for package, members in sorted(groups.items()):
        rows.append(_row(package, members, found, sorted(graph[package])))
    return "\n".join([*rows, _row("all", list(modules.values()), found, [])])


def _row(package: str, members: list[Module], found: set[str], imports: list[str]) -> str:
    lines = sum(module.lines for module in members)
    share = sum(module.lines for module in members if module.name in found) / max(lines, 1)
    names = len({name for module in members for name in module.public})
    counts = f"{lines:>6,} {len(members):>5} {names:>5} {share:>7.0%}"
    return f"{package:<12} {counts}  {' '.join(imports)}".rstrip()


def main() -> int:
    """Print the tables and what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is broken")
    wanted = parser.parse_args()
    modules = read_modules()
    print(table(modules))
    unreached = sorted(set(modules) - reached(modules))
    print("\nnot reached:", ", ".join(unreached) or "none")
    print(f"lines: {sum(module.lines for module in modules.values()):,}; goal: {GOAL:,}")
    broken = problems(modules)
    print("\n".join(f"broken: {words}" for words in broken) or "all limits hold")
    return int(bool(broken) and wanted.check)


if __name__ == "__main__":
    sys.exit(main())
