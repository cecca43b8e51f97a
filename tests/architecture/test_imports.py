"""Who may import whom: the contracts of pyproject.toml, and what the core may use of the standard library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.architecture.sources import all_sources, imported

REPOSITORY = Path(__file__).parents[2]
FORBIDDEN_IN_CORE = {
    "asyncio", "concurrent", "http", "logging", "multiprocessing", "os", "pathlib", "secrets", "selectors",
    "shutil", "signal", "socket", "socketserver", "sqlite3", "ssl", "subprocess", "sys", "tempfile", "threading",
    "time", "urllib", "uuid",
}  # fmt: skip
ALLOWED_SYS = {"float_info", "intern", "maxsize"}
"""Of `sys`, what says nothing about the machine it runs on."""


def test_layers_import_only_from_below() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_core_knows_only_the_standard_library_and_numpy() -> None:
    strangers = {
        f"{source.name}: {module}"
        for source in all_sources()
        if source.in_core
        for module, _ in imported(source)
        if module.partition(".")[0] not in {*sys.stdlib_module_names, "numpy", "fairlead"}
    }
    assert not strangers


def test_the_core_neither_waits_nor_looks_at_a_clock_nor_touches_the_machine() -> None:
    found = {
        f"{source.name}: {module}.{name}"
        for source in all_sources()
        if source.in_core
        for module, name in imported(source)
        if module.partition(".")[0] in FORBIDDEN_IN_CORE and not (module == "sys" and name in ALLOWED_SYS)
    }
    assert not found


def test_randomness_always_comes_from_a_generator_that_was_handed_in() -> None:
    """`random.choice` and friends share one hidden state; `random.Random` does not."""
    found = {
        f"{source.name}: random.{name or '*'}"
        for source in all_sources()
        if source.in_core
        for module, name in imported(source)
        if module == "random" and name != "Random"
    }
    assert not found


def test_the_engine_meets_plugins_only_inside_a_profile() -> None:
    found = {
        f"{source.name}: {module}"
        for source in all_sources()
        if source.name.startswith(("engine/", "framework/", "state/"))
        for module, _ in imported(source)
        if module.startswith("fairlead.plugins")
    }
    assert not found
