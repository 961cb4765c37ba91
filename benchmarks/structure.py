"""What the inside looks like: ``python -m benchmarks.structure [--tree DIR]``. Figures are printed, never asserted.

``--tree`` names another checkout, so that one version can be held beside another. The functions that a
query visits are counted in this checkout alone, in a process that has answered nothing before.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
PACKAGE = "dpsql"
QUERY = "SELECT channel, AVG(amount) FROM orders GROUP BY channel"
_SQL = re.compile(r"\b(SELECT|FROM|WHERE|GROUP BY|ORDER BY|LEFT JOIN|TRY_CAST|CASE WHEN|HAVING)\b")
WRITERS = ("engines/", "release/postprocess_sql.py")
_PARTICIPLE = re.compile(r"[a-z]{3,}(ed|en|ing|ly)$")
_IRREGULAR = frozenset(("held", "kept", "known", "led", "left", "said", "shown", "told"))
_NO_PARTICIPLES = frozenset(("bed", "open", "string", "token", "when"))


def modules(tree: Path) -> dict[str, ast.Module]:
    """The package's modules by their path in it, parsed."""
    package = tree / PACKAGE
    found = sorted(package.rglob("*.py"))
    return {p.relative_to(package).as_posix(): ast.parse(p.read_text("utf-8")) for p in found}


def dotted(path: str) -> str:
    """The name that a module is imported by.

    >>> dotted("sql/bind/__init__.py")
    'dpsql.sql.bind'
    """
    parts = path.removesuffix(".py").split("/")
    return ".".join([PACKAGE, *(parts[:-1] if parts[-1] == "__init__" else parts)])


def imports(parsed: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Which modules each imports, with imports for types and those inside functions."""
    names = {dotted(path) for path in parsed}
    edges: dict[str, set[str]] = {name: set() for name in names}
    for path, module in parsed.items():
        targets = set(_targets(module, names)) & names
        edges[dotted(path)] = targets - {dotted(path)}
    return edges


def _targets(module: ast.Module, names: set[str]) -> Iterator[str]:
    """What is imported: a module of a package is, where one is named, and else what names come from."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in names else node.module


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that all import one another, by way of others or not (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in sorted(edges[name]):
            if other not in order:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == order[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            found.append(sorted(group))

    for name in sorted(edges):
        if name not in order:
            visit(name)
    return [group for group in found if len(group) > 1]


def longest_chain(edges: dict[str, set[str]]) -> int:
    """How many modules the longest line of imports has; a cycle counts as one."""
    group = {name: name for name in edges}
    for members in cycles(edges):
        group.update(dict.fromkeys(members, members[0]))
    below: dict[str, set[str]] = defaultdict(set)
    for name, targets in edges.items():
        below[group[name]] |= {group[t] for t in targets} - {group[name]}

    @cache
    def depth(name: str) -> int:
        return 1 + max(map(depth, below[name]), default=0)

    return max(depth(group[name]) for name in edges)


def sql_strings(parsed: dict[str, ast.Module]) -> Counter[str]:
    """Strings with words of SQL outside the writers of engines, by module; docstrings are none."""
    found: Counter[str] = Counter()
    for path, module in parsed.items():
        if not path.startswith(WRITERS):
            found[path] = sum(1 for text in _strings(module) if _SQL.search(text))
    return +found


def _strings(module: ast.Module) -> Iterator[str]:
    """Constant strings, and f-strings as one; whatever stands alone says something and is left out."""
    parts: set[int] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            inner = [v for v in node.values if isinstance(v, ast.Constant)]
            parts.update(map(id, inner))
            yield "".join(str(v.value) for v in inner)
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def participles(parsed: dict[str, ast.Module]) -> list[str]:
    """Public functions whose name is one word that is no verb and no noun."""
    return [
        f"{path}: {node.name}"
        for path, module in parsed.items()
        for node in module.body
        if isinstance(node, ast.FunctionDef) and _is_participle(node.name)
    ]


def _is_participle(name: str) -> bool:
    """Whether a name is a bare participle or adverb.

    >>> [_is_participle(name) for name in ("written", "kept", "write", "parse_text", "_held")]
    [True, True, False, False, False]
    """
    if name in _NO_PARTICIPLES:
        return False
    return name in _IRREGULAR or _PARTICIPLE.fullmatch(name) is not None


def visited(sql: str) -> tuple[int, int]:
    """How many functions, in how many modules of the package, a query's first answer runs through."""
    import dpsql
    from dpsql.cli import main as run_command

    seen: set[tuple[str, str, int]] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and f"/{PACKAGE}/" in code.co_filename:
            seen.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    with tempfile.TemporaryDirectory() as folder:
        with redirect_stdout(StringIO()):
            run_command(["demo", folder])
        policy = Path(folder) / "policy.yaml"
        connection = dpsql.connect(str(policy), role="analyst")
        cursor = connection.cursor()
        sys.setprofile(watch)
        try:
            cursor.execute(sql)
        finally:
            sys.setprofile(None)
        connection.close()
    return len(seen), len({file for file, *_ in seen})


def packages(parsed: dict[str, ast.Module], tree: Path) -> Iterator[tuple[str, int, int]]:
    """Each folder of the package: its modules and their lines."""
    count, lines = Counter[str](), Counter[str]()
    for path in parsed:
        name = path.split("/")[0] if "/" in path else "(top)"
        count[name] += 1
        lines[name] += (tree / PACKAGE / path).read_text("utf-8").count("\n")
    for name in sorted(count):
        yield name, count[name], lines[name]


def main() -> None:
    """Print what there is to know."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.structure")
    parser.add_argument("--tree", type=Path, default=ROOT, help="another checkout")
    parser.add_argument("--names", action="store_true", help="names and places too")
    options = parser.parse_args()
    parsed = modules(options.tree)
    print(f"{'package':14} modules   lines")
    rows = list(packages(parsed, options.tree))
    for name, count, lines in [*rows, ("all", sum(r[1] for r in rows), sum(r[2] for r in rows))]:
        print(f"{name:14} {count:7} {lines:7}")
    edges, strings, words = imports(parsed), sql_strings(parsed), participles(parsed)
    print(f"imports {sum(map(len, edges.values()))}, longest chain {longest_chain(edges)}")
    print(f"cycles {len(cycles(edges))}: {', '.join(f'{len(c)} modules' for c in cycles(edges))}")
    print(f"strings with SQL outside engines {sum(strings.values())} in {len(strings)} modules")
    print(f"public bare participles {len(words)}")
    if options.names:
        for path, number in strings.most_common():
            print(f"  {number:3} {path}")
        print(*(f"  {word}" for word in words), sep="\n")
    if options.tree == ROOT:
        functions, files = visited(QUERY)
        print(f"{QUERY}: {functions} functions in {files} modules")


if __name__ == "__main__":
    main()
