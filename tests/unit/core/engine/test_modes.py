"""A scheduling mode that the core does not know works beside the attempts of kube profiles."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from random import Random
from typing import ClassVar

import pytest

from fairlead.core.engine.cycle.binding import Binding
from fairlead.core.engine.cycle.placement import Placed, ScoredRow
from fairlead.core.engine.modes import LacksOf, SchedulerParts, SchedulingMode
from fairlead.core.family import Family, families
from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.effects import Effects
from fairlead.core.framework.meter import Meter
from fairlead.core.framework.profile import Profile
from fairlead.core.model.explanation import Explanation
from fairlead.core.model.flow import Change, Doc, Reply
from fairlead.core.model.pod import Pod
from fairlead.core.state.cluster import PodPlace
from fairlead.core.state.statement import assume_on
from fairlead.errors import Conflict
from fairlead.kube.binder import DefaultBinder
from tests.support.documents import pod
from tests.support.scheduling import SchedulerScenario, default_plugins, profile_of


@pytest.fixture(autouse=True)
def own_family(monkeypatch: pytest.MonkeyPatch) -> None:
    """A family whose record names the mode of this module."""
    mine = Family("own", modes={"first-row": f"{__name__}:FirstRowMode"})
    monkeypatch.setattr("fairlead.core.engine.modes.families", lambda: (*families(), mine))


@dataclass(frozen=True)
class FirstRow:
    """Settings by which pods go to the first node, whatever is there."""

    made_by: ClassVar[str] = "first-row"


@dataclass(frozen=True)
class Words:
    text: str

    def to_document(self) -> Doc:
        return {"text": self.text}


class FirstRowMode(SchedulingMode):
    def __init__(self, parts: SchedulerParts) -> None:
        self._parts = parts
        self.profiles: dict[str, Profile] = {}
        self.told: list[str] = []

    def serves(self, profile: Profile) -> bool:
        return isinstance(profile.mode, FirstRow)

    def reconfigure(self, profiles: Sequence[Profile]) -> None:
        self.profiles = {profile.name: profile for profile in profiles if self.serves(profile)}

    def take_replies(self, replies: Sequence[Reply], now: float) -> None:
        self.told += [f"heard {len(replies)}"] if replies else []

    def step(self, now: float, changes: Sequence[Change], interrupted_by: Sized) -> None:
        cluster = self._parts.cluster
        for pod_state in list(cluster.pods.values()):
            profile = self.profiles.get(pod_state.seen.scheduler_name)
            if profile is None or pod_state.place is not PodPlace.PENDING:
                continue
            seen = pod_state.seen
            assume_on(cluster, seen, 0)
            cycle = Cycle(pod=seen, cluster=cluster, profile=profile, now=now, rng=Random(0), effects=Effects())
            self._parts.binding_driver.begin_unqueued(seen, cycle, Placed(0, 1, 1, ScoredRow(0, 0)), self)

    def wake_at(self, now: float) -> float | None:
        return 7.0

    def bound(self, binding: Binding) -> None:
        self.told.append(f"bound {binding.pod.name}")

    def failed(self, binding: Binding, freed: Pod | None) -> None:
        assert binding.status is not None
        self.told.append(f"failed {binding.pod.name}: {binding.status.message}, freed {freed is not None}")
        self.profiles = {}  # one attempt is enough

    def about_pod(self, pod: Pod) -> Explanation | None:
        return Explanation(pod.namespace, pod.name, pod.uid, pod.scheduler_name, "Waiting", message="for its mode")

    def about_group(self, namespace: str, name: str, lacks_of: LacksOf) -> Words | None:
        return Words(name) if name == "crew" else None

    def about_queue(self, name: str) -> Words | None:
        return Words(name) if name == "line" else None


def scenario() -> tuple[SchedulerScenario, FirstRowMode]:
    first = Profile("first", {"bind": (DefaultBinder(),)}, mode=FirstRow())
    made = SchedulerScenario(nodes=2, profiles=[profile_of("default-scheduler", default_plugins()), first])
    (mode,) = [mode for mode in made.scheduler.modes if isinstance(mode, FirstRowMode)]
    return made, mode


def first_pod(name: str) -> Doc:
    document = pod(name)
    return {**document, "spec": {**document["spec"], "schedulerName": "first"}}


def test_pods_of_its_profile_are_placed_by_the_mode_and_the_others_by_attempts() -> None:
    stage, mode = scenario()
    stage.tell(first_pod("a"), pod("b"))
    assert stage.binds()["a"] == "n0"
    assert stage.binds().keys() == {"a", "b"}
    stage.answer()
    assert "bound a" in mode.told
    assert "bound b" not in mode.told
    assert any(words.startswith("heard") for words in mode.told)


def test_who_placed_a_pod_gets_the_reason_that_it_was_not_bound() -> None:
    stage, mode = scenario()
    stage.tell(first_pod("a"))
    stage.answer(Conflict("no"), to="binding")
    assert [words for words in mode.told if words.startswith("failed a") and words.endswith("freed True")]
    assert stage.cluster.pods_by_key["default/a"].place is PodPlace.PENDING
    assert not stage.scheduler.bindings
    assert not list(stage.backlog.queues), "its mode keeps it, not the queue"


def test_the_scheduler_wakes_when_a_mode_wants_to() -> None:
    stage, _ = scenario()
    assert stage.scheduler.wake_at() == 7.0


def test_a_mode_is_asked_for_explanations() -> None:
    stage, mode = scenario()
    mode.reconfigure([])
    stage.tell(first_pod("a"))
    explained = stage.scheduler.explain("default", "a")
    assert explained is not None
    assert explained.message == "for its mode"
    assert stage.scheduler.explain_group("default", "crew") == Words("crew")
    assert stage.scheduler.explain_group("default", "other") is None
    assert stage.scheduler.explain_queue("line") == Words("line")
    assert stage.scheduler.explain_queue("other") is None


def test_a_mode_stays_when_profiles_change_and_is_made_once() -> None:
    stage, mode = scenario()
    default, first = stage.scheduler.profiles.values()
    stage.scheduler.reconfigure([default])
    assert mode in stage.scheduler.modes
    assert not mode.profiles
    stage.scheduler.reconfigure([default, first])
    assert [one for one in stage.scheduler.modes if isinstance(one, FirstRowMode)] == [mode]
    assert mode.profiles.keys() == {"first"}


def test_a_mode_comes_with_the_profile_that_names_it() -> None:
    stage = SchedulerScenario(nodes=1)
    assert len(stage.scheduler.modes) == 1
    first = Profile("first", {"bind": (DefaultBinder(),)}, mode=FirstRow())
    stage.scheduler.reconfigure([*stage.scheduler.profiles.values(), first])
    stage.tell(first_pod("a"))
    assert stage.binds() == {"a": "n0"}


def test_a_copy_is_neither_measured_nor_interrupted() -> None:
    stage = SchedulerScenario()
    stage.scheduler.measure(Meter(lambda: 0.0))
    stage.scheduler.interrupted_by = ["a question"]
    assert stage.scheduler.meter is not None
    stage.scheduler.go_alone()
    assert stage.scheduler.meter is None
    assert not stage.scheduler.interrupted_by


@pytest.mark.parametrize("served", [True, False])
def test_only_pods_of_kube_profiles_queue(served: bool) -> None:
    stage, mode = scenario()
    mode.reconfigure([])
    stage.tell(pod("b") if served else first_pod("b"))
    assert stage.backlog.serves("default-scheduler" if served else "first") is served
    assert ("b" in stage.binds()) is served


def test_modes_wait_for_what_only_they_need_and_kube_profiles_do_not() -> None:
    stage, _ = scenario()
    stage.scheduler.hold({"modes"})
    stage.tell(first_pod("a"), pod("b"))
    assert stage.binds() == {"b": stage.binds()["b"]}
    assert stage.scheduler.wake_at() != 7.0, "a mode that may not act does not wake anybody"
    stage.scheduler.hold(())
    stage.run()
    assert stage.binds()["a"] == "n0"
    only = [watch.kind.resource for watch in stage.scheduler.watches if watch.part == "modes"]
    assert "resourcequotas" in only
    assert not {"pods", "nodes", "namespaces"} & set(only)
