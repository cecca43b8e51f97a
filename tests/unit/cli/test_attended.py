"""Reload between steps, and the dump that SIGUSR2 asks for."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from fairlead.cli.reloading import LOOK_EVERY, ReloadingScheduler, Told, compare, dump
from fairlead.config.presets import first_profile
from fairlead.config.watcher import ReloadOutcome
from fairlead.engine.scheduler import Scheduler
from fairlead.model import kinds
from fairlead.testing.builders import pod
from fairlead.testing.harness import Harness


class FakeWatcher:
    def __init__(self) -> None:
        self.outcome: ReloadOutcome | Exception = ReloadOutcome.SAME
        self.looks = 0
        self.current: Any = "config"

    def look(self) -> ReloadOutcome:
        self.looks += 1
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Stage:
    def __init__(self) -> None:
        self.watcher = FakeWatcher()
        self.reloaded: list[Any] = []
        self.harness = Harness(nodes=2, schedulers=[self._make])

    def _make(self, view: Any) -> ReloadingScheduler:
        self.view = view
        self.scheduler = Scheduler([first_profile()])
        self.attended = ReloadingScheduler(self.scheduler, view, watcher=self.watcher, reload=self.reloaded.append)
        return self.attended


def test_the_file_is_looked_at_once_a_second_and_scheduling_goes_on() -> None:
    stage = Stage()
    stage.harness.apply(pod("p"))
    stage.harness.run(10 * LOOK_EVERY)
    assert stage.harness.bindings().keys() == {"p"}
    assert 9 <= stage.watcher.looks <= 12
    assert stage.reloaded == []


def test_a_changed_file_is_taken_over_between_steps() -> None:
    stage = Stage()
    stage.watcher.outcome = ReloadOutcome.CHANGED
    stage.harness.run(LOOK_EVERY / 2)
    assert stage.reloaded == ["config"]


def test_trouble_with_the_file_costs_no_step(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.watcher.outcome = ValueError("surprise")
    stage.harness.apply(pod("p"))
    with caplog.at_level(logging.ERROR, logger="fairlead.scheduler"):
        stage.harness.run(1)
    assert "the last good one stays in force" in caplog.text
    assert stage.harness.bindings().keys() == {"p"}


def test_a_dump_tells_nodes_queue_and_the_comparison(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.harness.apply(pod("p"), pod("huge").asks(cpu="99"))
    stage.harness.run(1)
    with caplog.at_level(logging.INFO, logger="fairlead.scheduler"):
        dump(stage.scheduler)
        assert compare(stage.scheduler, Told.by(stage.view))
    told = [record.getMessage() for record in caplog.records]
    assert {"node node-0", "node node-1", "waiting default/huge", "cache comparison: memory and API agree"} <= set(told)
    summary = next(vars(record)["summary"] for record in caplog.records if "summary" in vars(record))
    assert summary == "activeQ:0; backoffQ:0; unschedulablePods:1"


def test_a_difference_between_memory_and_api_is_told(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.harness.apply(pod("p"))
    stage.harness.run(1)
    elsewhere = SimpleNamespace(list=lambda kind: [{"metadata": {"name": "new"}}] if kind is kinds.NODE else [])
    with caplog.at_level(logging.WARNING, logger="fairlead.scheduler"):
        assert not compare(stage.scheduler, Told.by(elsewhere))  # type: ignore[arg-type]
    nodes, pods = caplog.records
    assert (vars(nodes)["missed"], vars(nodes)["redundant"]) == (["new"], ["node-0", "node-1"])
    assert len(vars(pods)["redundant"]) == 1
