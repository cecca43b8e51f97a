"""What is done in one place: pods come to rows and leave them, and schedulers are made.

Which pods the table shows is changed by statements, a round's overlay, reservations, and put right by a repair.
"""

from __future__ import annotations

import ast

from tests.support.sources import all_sources

CHANGES = {"occupy", "vacate", "undo_occupy", "undo_vacate"}
ALLOWED = {
    "core/state/cluster.py",
    "core/state/statement.py",
    "volcano/rounds/trial_overlay.py",
    "core/state/audit.py",
    "koordinator/reservations/holdings.py",
}


def test_only_statements_reservations_and_the_overlay_of_a_round_change_placements() -> None:
    callers = {
        source.name
        for source in all_sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES
    }
    assert callers == ALLOWED


def test_a_scheduler_is_made_in_one_place() -> None:
    makers = {
        source.name
        for source in all_sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Scheduler"
    }
    assert makers == {"assembly/schedulers.py"}
