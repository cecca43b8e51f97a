"""One process of `make bench-compare`: names the benches of a tree, measures one row of it, or replays a recording.

The script of the working tree runs in both trees, with the tree as its current directory and on PYTHONPATH: a base may
be older than this file. So it imports the standard library, and `benchmarks` of whichever tree it is in. Module paths
of fairlead may differ between the two trees; none is written here.

Only the region that a row measures counts, in CPU seconds of this process: imports, which may be the greater part of a
short run, and time that others on the machine took would hide a difference.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def benches(*rows: str) -> dict[str, list[str]]:
    """The module and the function that make each of these rows; rows that the tree does not have are left out."""
    known = importlib.import_module("benchmarks.__main__").BENCHES
    return {row: [bench.__module__, bench.__qualname__] for names, bench in known for row in rows if row in names}


def measure(name: str) -> dict[str, Any]:
    """The row of that name. Benches end as soon as they gave it, so that rows after it take no time."""
    # Rows take the time by perf_counter of a module that they import below: this makes it CPU time.
    time.perf_counter = time.process_time
    registry = importlib.import_module("benchmarks.__main__")
    bench = next(bench for names, bench in registry.BENCHES if name in names)
    registry.collect_rarely()
    for row in bench():
        if row.name == name:
            return {"value": row.value, "unit": row.unit}
    raise SystemExit(f"{bench.__qualname__} gave no row {name}")


def replay(few: str, *arguments: str) -> dict[str, Any]:
    """`fairlead replay` of these arguments, after a replay of few scenarios which imports what it needs."""
    _fairlead("replay", few, *arguments[1:])
    began = time.process_time()
    _fairlead("replay", *arguments)
    return {"value": time.process_time() - began, "unit": "s"}


def _fairlead(*arguments: str) -> None:
    """The command `fairlead` with these arguments, as `python -m fairlead` runs it."""
    sys.argv = ["fairlead", *arguments]
    try:
        runpy.run_module("fairlead", run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise SystemExit(f"fairlead {' '.join(arguments)} ended with exit code {end.code}") from end


def main(result: str, task: str, *arguments: str) -> None:
    fairlead = importlib.import_module("fairlead").__file__
    if fairlead is None or not Path(fairlead).is_relative_to(Path.cwd()):
        raise SystemExit(f"{fairlead} would be measured instead of the tree {Path.cwd()}")
    tasks: dict[str, Callable[..., Any]] = {"benches": benches, "measure": measure, "replay": replay}
    with contextlib.redirect_stdout(sys.stderr):
        found = tasks[task](*arguments)
    Path(result).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
