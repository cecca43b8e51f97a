"""The dump that SIGUSR2 asks for."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from fairlead.assembly.schedulers import default_scheduler
from fairlead.cli.dumping import ApiState, compare, dump
from fairlead.core.model import kinds
from fairlead.testing.builders import pod
from fairlead.testing.harness import Harness


def test_a_dump_shows_nodes_queue_and_the_comparison(caplog: pytest.LogCaptureFixture) -> None:
    scheduler = default_scheduler()
    cluster = Harness(nodes=2, schedulers=[lambda _: scheduler])
    cluster.apply(pod("p"), pod("huge").asks(cpu="99"))
    cluster.run(1)
    with caplog.at_level(logging.INFO, logger="fairlead.scheduler"):
        dump(scheduler)
        assert compare(scheduler, ApiState.by(cluster.store))
    told = [record.getMessage() for record in caplog.records]
    assert {"node node-0", "node node-1", "waiting default/huge", "cache comparison: memory and API agree"} <= set(told)
    summary = next(vars(record)["summary"] for record in caplog.records if "summary" in vars(record))
    assert summary == "activeQ:0; backoffQ:0; unschedulablePods:1"


def test_a_difference_between_memory_and_api_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    scheduler = default_scheduler()
    cluster = Harness(nodes=2, schedulers=[lambda _: scheduler])
    cluster.apply(pod("p"))
    cluster.run(1)
    elsewhere = SimpleNamespace(list=lambda kind: [{"metadata": {"name": "new"}}] if kind is kinds.NODE else [])
    with caplog.at_level(logging.WARNING, logger="fairlead.scheduler"):
        assert not compare(scheduler, ApiState.by(elsewhere))  # type: ignore[arg-type]
    nodes, pods = caplog.records
    assert (vars(nodes)["missed"], vars(nodes)["redundant"]) == (["new"], ["node-0", "node-1"])
    assert len(vars(pods)["redundant"]) == 1
