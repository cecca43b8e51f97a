"""Profiles that come and go while a scheduler runs: pods wait while nobody serves their name, and no longer."""

from __future__ import annotations

from fairlead.core.framework.profile import profile_of
from fairlead.core.model.flow import Doc, Happened
from fairlead.errors import InternalError
from tests.support.documents import node, pod
from tests.support.scheduling import SchedulerScenario, default_plugins

ORDINARY = profile_of("default-scheduler", default_plugins())
PACKER = profile_of("packer", default_plugins())


def packed(name: str, **more: str) -> Doc:
    return pod(name, **more, schedulerName="packer")


def test_a_pod_that_came_before_its_profile_is_placed() -> None:
    stage = SchedulerScenario(nodes=1, profiles=[ORDINARY])
    stage.tell(packed("early"))
    assert not stage.binds()
    stage.scheduler.reconfigure([ORDINARY, PACKER])
    stage.run()
    assert stage.binds() == {"early": "n0"}


def test_a_pod_that_came_after_its_profile_is_placed() -> None:
    stage = SchedulerScenario(nodes=1, profiles=[ORDINARY])
    stage.scheduler.reconfigure([ORDINARY, PACKER])
    stage.tell(packed("late"))
    assert stage.binds() == {"late": "n0"}


def test_a_refused_pod_is_tried_again_when_its_profile_comes_back() -> None:
    stage = SchedulerScenario(nodes=1, profiles=[ORDINARY, PACKER])
    stage.tell(packed("huge", cpu="8"))
    stage.scheduler.reconfigure([ORDINARY])
    assert sum(stage.backlog.counts().values()) == 0, "pods of nobody do not count as waiting here"
    stage.tell(node("n0", cpu="16"), happened=Happened.MODIFIED)
    stage.run()
    assert not stage.binds()
    stage.scheduler.reconfigure([ORDINARY, PACKER])
    stage.run()
    assert stage.binds() == {"huge": "n0"}
    stage.backlog.check()


def test_a_pod_that_went_meanwhile_is_not_placed() -> None:
    stage = SchedulerScenario(nodes=1, profiles=[ORDINARY, PACKER])
    huge = packed("huge", cpu="8")
    stage.tell(huge)
    stage.scheduler.reconfigure([ORDINARY])
    stage.gone(huge)
    stage.tell(node("n0", cpu="16"), happened=Happened.MODIFIED)
    stage.scheduler.reconfigure([ORDINARY, PACKER])
    stage.run()
    assert not stage.binds()
    assert sum(stage.backlog.counts().values()) == 0


def test_a_bind_that_fails_brings_no_pod_back_into_a_queue_that_does_not_serve_it() -> None:
    stage = SchedulerScenario(nodes=1, profiles=[ORDINARY, PACKER])
    stage.tell(packed("small"))
    stage.scheduler.reconfigure([ORDINARY])
    stage.answer(InternalError("no"), to="binding")
    assert stage.backlog.where("uid-small") is None
    stage.backlog.check()
