"""How large things may be, and that nothing stands twice: what one can still read, find and change in one place."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.support.sources import Source, all_sources

MOST_LINES_OF_A_FUNCTION = 60
MOST_MODULES_OF_A_PACKAGE = 40
LARGER_PACKAGES = {"core/model"}
"""Records of the objects that the API has; they lie side by side because they have nothing to do with each other."""
MOST_EQUAL_LINES = 8


def test_only_tables_of_data_are_laid_out_by_hand() -> None:
    """`# fmt: skip` ends only a table: a list, set, tuple or dict that a name of the module or of a class is given."""
    elsewhere = []
    for source in all_sources():
        tables = {node.end_lineno for node in _named_tables(source.tree)}
        for number, line in enumerate(source.text.splitlines(), 1):
            if "# fmt: skip" in line and number not in tables:
                elsewhere.append(f"{source.name}:{number}")
    assert not elsewhere


def test_no_function_is_longer_than_a_screen() -> None:
    long = {
        f"{source.name}: {function.name}": count
        for source in all_sources()
        for function in _functions(source)
        if (count := _body_lines(function)) > MOST_LINES_OF_A_FUNCTION
    }
    assert not long


def test_no_package_has_more_modules_than_one_can_look_over() -> None:
    modules = Counter(source.name.rpartition("/")[0] for source in all_sources() if source.path.name != "__init__.py")
    assert not {
        name: count
        for name, count in modules.items()
        if count > MOST_MODULES_OF_A_PACKAGE and name not in LARGER_PACKAGES
    }


def test_a_public_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for source in all_sources():
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(source.name)
    assert not {name: where for name, where in places.items() if len(where) > 1}


def test_no_run_of_lines_stands_twice() -> None:
    """Indentation, comments, docstrings, imports and parameters do not count: two sides of a port declare the same."""
    first: dict[tuple[str, ...], str] = {}
    twice = []
    for source in all_sources():
        lines = list(_lines_of_code(source))
        for index in range(len(lines) - MOST_EQUAL_LINES):
            run = tuple(text for text, _ in lines[index : index + MOST_EQUAL_LINES + 1])
            here = f"{source.name}:{lines[index][1]}"
            there = first.setdefault(run, here)
            if there != here:
                twice.append(f"{there} and {here}: {run[0]} ...")
    assert not twice


def _named_tables(tree: ast.Module) -> Iterator[ast.stmt]:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for statement in [*tree.body, *(each for node in classes for each in node.body)]:
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        held = [value, *value.args] if isinstance(value, ast.Call) else [value]
        if any(isinstance(each, ast.List | ast.Tuple | ast.Set | ast.Dict) for each in held):
            yield statement


def _functions(source: Source) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the first statement to the last; neither the parameters nor the docstring is to be counted."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def _lines_of_code(source: Source) -> Iterator[tuple[str, int]]:
    """The text and the number of each line that says something of its own."""
    left_out: set[int] = set()
    for node in ast.walk(source.tree):
        is_text = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        if isinstance(node, ast.Import | ast.ImportFrom) or is_text:
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            left_out.update(range(node.lineno + 1, node.body[0].lineno))
    for number, line in enumerate(source.text.splitlines(), 1):
        text = line.partition("  #")[0].strip()
        if text and not text.startswith("#") and number not in left_out and text != "if TYPE_CHECKING:":
            yield text, number
