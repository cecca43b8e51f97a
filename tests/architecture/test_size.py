"""How large things may be, and that nothing stands twice: what one can still read, find and change in one place."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from tests.support.sources import Source, all_sources

MOST_LINES_OF_A_FUNCTION = 60
MOST_MODULES_OF_A_PACKAGE = 40
LARGER_PACKAGES = {"core/model"}
"""Records of the objects that the API has; they lie side by side because they have nothing to do with each other."""
MOST_EQUAL_LINES = 8
MOST_EXCEPTIONS = 5
"""On each of the lists below, which only shrink: an entry that is not needed any more fails."""
MOST_ATTRIBUTES = 15
MANY_ATTRIBUTES: dict[str, str] = {
    "Job": "Volcano's JobInfo, of which there are thousands in each round: flat slots, as for Task",
    "NodeTable": "the table of the cluster: each column is an attribute, because inner loops read it by name",
    "Round": "Volcano's Session: the one thing that each tier plugin and action is given",
    "SignatureResults": "what is kept for one signature; an attempt reads it as it is, one level deep",
    "Task": "Volcano's TaskInfo, of which there are ten thousands in each round: flat slots are what a round reads",
}
"""Classes with more attributes, each with the reason."""
MOST_PUBLIC_METHODS = 20
MANY_PUBLIC_METHODS: dict[str, str] = {
    "Amounts": "Volcano's Resource, whose operations have these names there",
    "Harness": "what tests of users call",
    "Job": "Volcano's JobInfo, whose questions have these names there",
    "PodBuilder": "one method for each thing that a test may say of a pod",
    "Plugin": "one method for each extension point of kube-scheduler",
}
"""Classes with more public methods."""
MOST_PARAMETERS = 7
MANY_PARAMETERS: dict[str, str] = {
    "Harness.__init__": "named options of what tests of users call, each with a default",
    "agree": "named options of what tests of plugins call",
    "define": "one row of the table of kinds",
    "schedule": "named options of the library's first function, each with a default",
    "simulated_node": "named properties of a node, each with a default",
}
"""Functions with more parameters; methods as `Class.method`."""


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


def test_a_class_has_few_attributes() -> None:
    """An attribute is what an instance holds: a field of its class, or what its methods store in `self`.

    Frozen dataclasses and records, NamedTuples, TypedDicts and Protocols do not count: they are data, such as an object
    of the API or the settings of a plugin, and have as many fields as what they stand for.
    """
    counts = _most([(node.name, len(_attributes(node))) for node in _classes() if not _is_data(node)])
    _expect_exceptions(MANY_ATTRIBUTES, counts, MOST_ATTRIBUTES)


def test_a_class_has_few_public_methods() -> None:
    """Properties count; what a class inherits does not, and neither do names with an underscore."""
    counts = _most([(node.name, len(_public_methods(node))) for node in _classes()])
    _expect_exceptions(MANY_PUBLIC_METHODS, counts, MOST_PUBLIC_METHODS)


def test_a_function_has_few_parameters() -> None:
    """`self` and `cls` do not count. The function of a command does not either: its parameters are the options and
    arguments that are declared above it."""
    counts = [
        (name, _count_parameters(function))
        for name, function in _named_functions()
        if not any(re.search(r"\.(command|group)\(", ast.unparse(one)) for one in function.decorator_list)
    ]
    _expect_exceptions(MANY_PARAMETERS, _most(counts), MOST_PARAMETERS)


def test_attributes_methods_and_parameters_are_counted() -> None:
    tree = ast.parse(
        "@dataclass(slots=True)\n"
        "class A:\n"
        "    x: int\n"
        "    shared: ClassVar[int] = 1\n"
        "    def __init__(self, a, /, b, *args, c=1, **more):\n"
        "        self.y, self._z = self.x, 1\n"
        "        a.w = 1\n"
        "    @property\n"
        "    def p(self): ...\n"
        "    def _private(self): ...\n"
        "@record(frozen=True)\n"
        "class B: ...\n"
        "class C(NamedTuple): ...\n"
    )
    a, b, c = (node for node in tree.body if isinstance(node, ast.ClassDef))
    assert _attributes(a) == {"x", "y", "_z"}
    assert _public_methods(a) == {"p"}
    assert _count_parameters(next(node for node in a.body if isinstance(node, ast.FunctionDef))) == 5
    assert [_is_data(one) for one in (a, b, c)] == [False, True, True]


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


def _most(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """By name, the largest of its counts: private names may stand for several things."""
    found: dict[str, int] = {}
    for name, count in counts:
        found[name] = max(count, found.get(name, 0))
    return found


def _expect_exceptions(exceptions: dict[str, str], counts: dict[str, int], most: int) -> None:
    assert len(exceptions) <= MOST_EXCEPTIONS
    above = {name: count for name, count in counts.items() if count > most}
    assert not {name: count for name, count in above.items() if name not in exceptions}
    assert not exceptions.keys() - above.keys(), "within the limit by now: take it out of the list"


def _classes() -> Iterator[ast.ClassDef]:
    for source in all_sources():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef):
                yield node


def _is_data(node: ast.ClassDef) -> bool:
    bases = {ast.unparse(base).partition("[")[0] for base in node.bases}
    return bool(bases & {"NamedTuple", "TypedDict", "Protocol"}) or any(
        "frozen=True" in ast.unparse(one) for one in node.decorator_list
    )


def _attributes(node: ast.ClassDef) -> set[str]:
    fields = [one for one in node.body if isinstance(one, ast.AnnAssign) and "ClassVar" not in ast.unparse(one)]
    stored = [one for one in ast.walk(node) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)]
    return {one.target.id for one in fields if isinstance(one.target, ast.Name)} | {
        one.attr for one in stored if isinstance(one.value, ast.Name) and one.value.id == "self"
    }


def _public_methods(node: ast.ClassDef) -> set[str]:
    methods = [one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {name for name in methods if not name.startswith("_")}


def _named_functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All functions, methods with the name of their class before them."""
    methods = {
        id(one): f"{node.name}.{one.name}"
        for node in _classes()
        for one in node.body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for source in all_sources():
        for function in _functions(source):
            yield methods.get(id(function), function.name), function


def _count_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    arguments = function.args
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return sum(one is not None and one.arg not in ("self", "cls") for one in listed)


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
