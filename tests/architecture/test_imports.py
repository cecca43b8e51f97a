"""Who may import whom: the contracts of pyproject.toml, and what the core may use of the standard library."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.support.sources import all_sources, at_least, deciding_sources, imported

REPOSITORY = Path(__file__).parents[2]
TESTS = REPOSITORY / "tests"
FORBIDDEN_IN_CORE = {
    "asyncio", "concurrent", "http", "logging", "multiprocessing", "os", "pathlib", "secrets", "selectors",
    "shutil", "signal", "socket", "socketserver", "sqlite3", "ssl", "subprocess", "sys", "tempfile", "threading",
    "time", "urllib", "uuid",
}  # fmt: skip
ALLOWED_SYS = {"float_info", "intern", "maxsize"}
"""Of `sys`, what says nothing about the machine it runs on."""
FROM_A_TEST = re.compile(r"^[ \t]*(?:from|import)[ \t]+(?:\.|tests\b(?!\.support\b)).*", re.MULTILINE)
"""An import by a relative name, or from `tests` but not from tests/support."""


def test_layers_import_only_from_below() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    looked_at = re.search(r"Analyzed (\d+) files", done.stdout)
    assert looked_at is not None
    assert int(looked_at[1]) >= 1000


def test_no_contract_has_an_exception() -> None:
    contracts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert len(contracts) >= 10
    assert not [one["name"] for one in contracts if one.get("ignore_imports")]


def test_the_core_knows_only_the_standard_library_and_numpy() -> None:
    strangers = {
        f"{source.name}: {module}"
        for source in deciding_sources()
        for module, _ in imported(source)
        if module.partition(".")[0] not in {*sys.stdlib_module_names, "numpy", "fairlead"}
    }
    assert not strangers


def test_the_core_neither_waits_nor_looks_at_a_clock_nor_touches_the_machine() -> None:
    found = {
        f"{source.name}: {module}.{name}"
        for source in deciding_sources()
        for module, name in imported(source)
        if module.partition(".")[0] in FORBIDDEN_IN_CORE and not (module == "sys" and name in ALLOWED_SYS)
    }
    assert not found


def test_randomness_always_comes_from_a_generator_that_was_handed_in() -> None:
    """`random.choice` and friends share one hidden state; `random.Random` does not."""
    found = {
        f"{source.name}: random.{name or '*'}"
        for source in deciding_sources()
        for module, name in imported(source)
        if module == "random" and name != "Random"
    }
    assert not found


def test_the_engine_meets_plugins_only_inside_a_profile() -> None:
    engine = at_least(120, [source for source in all_sources() if source.name.startswith("core/")])
    found = {
        f"{source.name}: {module}"
        for source in engine
        for module, _ in imported(source)
        if module.startswith("fairlead.kube")
    }
    assert not found


def test_imports_from_other_tests_are_recognised() -> None:
    wrong = (
        "from tests.unit.core.test_queue import pending", "    from tests.contract.conftest import ApiUnderTest",
        "from tests.unit.assembly import test_lacks as short", "from tests import conftest", "import tests.conftest",
        "from .test_queue import pending", "from . import test_queue", "from tests.supporting import pending",
    )  # fmt: skip
    right = (
        "from tests.support.real.roles import ours",
        "from tests.support import claims",
        "import tests.support.lab",
    )
    assert [FROM_A_TEST.search(f"import json\n{line}\n") is not None for line in (*wrong, *right)] == [
        *[True] * len(wrong),
        *[False] * len(right),
    ]


def test_no_test_imports_from_another_test_or_from_a_conftest() -> None:
    """What tests share is in tests/support: a test file may then be changed, moved or deleted without a look at others,
    and pytest imports each once, by the name that it gives it."""
    files = at_least(500, list(TESTS.rglob("*.py")))
    texts = {path.relative_to(TESTS): path.read_text(encoding="utf-8") for path in files}
    found = [f"{path}: {line[0].strip()}" for path, text in texts.items() for line in FROM_A_TEST.finditer(text)]
    assert not found


def test_what_tests_share_is_in_support_and_pytest_collects_nothing_there() -> None:
    files = at_least(500, [path for path in TESTS.rglob("*.py") if path.name != "conftest.py"])
    wrong = [path for path in files if path.name.startswith("test_") == path.is_relative_to(TESTS / "support")]
    assert not wrong
