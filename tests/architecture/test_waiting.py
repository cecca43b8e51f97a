"""Tests wait for conditions, not for time: what sleeps and why is listed here, and the list only shrinks.

A test that sleeps is slow on a fast machine and fails on a busy one. Free to sleep are loops that look at a condition
between two sleeps, tests on virtual time, where a sleep takes none, and `sleep(0)`, which lets other tasks run.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.support.sources import at_least

TESTS = Path(__file__).parents[1]
ON_VIRTUAL_TIME = ("faults/test_connections.py", "faults/test_writes.py", "unit/client/test_deadlines.py")
"""All that sleeps in these runs in tests.support.virtual_loop."""

REASONS = {
    "contract/test_apply.py": (1, "the real server writes times of owners in whole seconds"),
    "hostile/test_connections.py": (2, "a request that hangs; the listener counts requests in time"),
    "kube/test_extra_roles.py": (1, "the audit log has watches when they end, after the lists"),
    "kube/test_live_on_a_real_cluster.py": (1, "a second candidate tries for a while and must not lead"),
    "kube/test_roles.py": (1, "the audit log has watches when they end, after the lists"),
    "kube/test_scheduler_on_kube.py": (1, "events that must not come would come now"),
    "kube/volcano/test_jobs.py": (1, "the original's controllers write counts a moment after phases"),
    "kube/volcano/test_roles.py": (2, "the original counts what it repeats by its own clock"),
    "support/extender_server.py": (1, "an extender that thinks"),
    "support/fuzz/claim_recorder.py": (1, "nothing shows that the real scheduler's cache is settled"),
    "support/fuzz/job_recorder.py": (1, "the kubelet that it plays takes a moment to remove a pod"),
    "support/fuzz/koordinator_recorder.py": (1, "koord-scheduler counts quotas in a thread of its own, unseen"),
    "support/fuzz/recorder.py": (3, "nothing shows that the real scheduler's cache is settled"),
    "support/history/lives.py": (1, "a life of the server of random length, that a kill ends"),
    "support/real/koordinator_stories.py": (3, "koord-scheduler counts quotas each second, unseen"),
    "support/real/roles.py": (2, "the original counts what it repeats by its own clock; policies take effect unseen"),
    "unit/client/test_exchanges.py": (1, "a message from the server that nothing answers has to arrive"),
    "unit/runtime/test_copies.py": (1, "work that hangs and is killed"),
    "unit/runtime/test_questions.py": (2, "a question that takes long; pods that come while others are placed"),
}  # fmt: skip
"""By file, how many other sleeps it has and what they are for."""


def sleeps(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls of `sleep` that do not stand in a loop with a condition, and do not merely let others run."""
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "sleep"):
            continue
        if call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0:
            continue
        node: ast.AST = call
        while node in above and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            node = above[node]
            if isinstance(node, ast.While) or (isinstance(node, ast.For) and _ends_early(node)):
                break
        else:
            yield call


def _ends_early(loop: ast.For) -> bool:
    return any(isinstance(node, ast.Return | ast.Break) for node in ast.walk(loop))


def test_waiting_for_a_condition_is_distinguished_from_waiting() -> None:
    waiting = (
        "while not ready():\n    time.sleep(1)\nfor _ in range(9):\n    if ready():\n        break\n    time.sleep(1)"
    )
    assert not [*sleeps(ast.parse(f"{waiting}\nasyncio.sleep(0)"))]
    assert len([*sleeps(ast.parse("time.sleep(1)\nfor _ in range(9):\n    time.sleep(1)"))]) == 2
    assert len([*sleeps(ast.parse("while True:\n    def work():\n        time.sleep(60)"))]) == 1


def test_every_sleep_of_a_test_has_a_reason() -> None:
    found: Counter[str] = Counter()
    for file in at_least(430, sorted(TESTS.rglob("*.py"))):
        name = file.relative_to(TESTS).as_posix()
        if name not in ON_VIRTUAL_TIME and "sleep(" in (text := file.read_text(encoding="utf-8")):
            found[name] += len([*sleeps(ast.parse(text))])
    assert +found == Counter({name: count for name, (count, _) in REASONS.items()})


CLOCKS = re.compile(r"\bassert\b[^\n]*(?:perf_counter|process_time|monotonic)\(\)[^\n]*[<>]")
"""An assertion that compares a clock of this machine."""
ENDS = re.compile(r"\bassert time\.monotonic\(\) < (?:ends?|deadline)\b")
"""The limit of a wait for a condition, which is no statement about speed."""


def test_no_test_asserts_how_long_something_takes() -> None:
    found = []
    for file in at_least(430, sorted(TESTS.rglob("*.py"))):
        for line in file.read_text(encoding="utf-8").splitlines():
            if CLOCKS.search(line) and not ENDS.search(line) and file != Path(__file__):
                found.append(f"{file.name}: {line.strip()}")
    assert not found
