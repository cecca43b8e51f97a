"""Which nodes an embedded cluster waits for before it says that it is ready."""

from __future__ import annotations

from fairlead.cli.embedded import is_as_configured
from fairlead.testing.builders import node


def test_a_simulated_node_has_to_be_ready() -> None:
    doc = node("n").doc()
    assert is_as_configured(doc)
    doc["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    assert not is_as_configured(doc)
    doc["status"].pop("conditions")
    assert not is_as_configured(doc)


def test_a_node_that_was_set_to_fail_holds_nobody_up() -> None:
    doc = node("n").failing().doc()
    doc["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    assert is_as_configured(doc)


def test_somebody_elses_node_holds_nobody_up() -> None:
    doc = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "theirs"}, "status": {}}
    assert is_as_configured(doc)
