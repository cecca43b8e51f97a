"""From a chosen node to the API, and back when something fails, by kube-scheduler's rules."""

from __future__ import annotations

from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.effects import PermitOrder
from fairlead.core.framework.plugin import Plugin, PostFilterResult, Wait
from fairlead.core.framework.profile import profile_of
from fairlead.core.model import kinds
from fairlead.core.model.flow import Happened, Verb
from fairlead.core.model.reasons import SKIP, SUCCESS, Status, failed, unschedulable
from fairlead.core.state.cluster import PodPlace
from fairlead.errors import Conflict
from fairlead.kube.binder import DefaultBinder
from fairlead.kube.nodes.basics import PrioritySort
from fairlead.kube.resources.plugin import NodeResourcesFit
from tests.support.documents import node, pod
from tests.support.scheduling import T0, RescuingPlugin, SchedulerScenario, ScriptedPlugin, default_plugins


class PointLog(Plugin):
    """Logs the points at which it is called for pod `a`, in order. Pod `a` waits for its permission, which comes when
    any other pod asks for one. At PreBindPreFlight and PreBind it answers with what a test put there."""

    name = "PointLog"

    def __init__(self, flight: Status | None = SUCCESS) -> None:
        self.log: list[str] = []
        self.flight = flight
        self.prepared: Status | None = None

    def _note(self, cycle: Cycle, point: str) -> None:
        if cycle.pod.name == "a":
            self.log.append(point)

    def reserve(self, cycle: Cycle, row: int) -> None:
        self._note(cycle, "Reserve")

    def unreserve(self, cycle: Cycle, row: int) -> None:
        self._note(cycle, "Unreserve")

    def permit(self, cycle: Cycle, row: int) -> Wait | None:
        self._note(cycle, "Permit")
        if cycle.pod.name == "a":
            return Wait(60.0)
        cycle.effects.permit_orders.append(PermitOrder("uid-a", self.name))
        self.log.append("allowed")
        return None

    def pre_bind_pre_flight(self, cycle: Cycle, row: int) -> Status | None:
        self._note(cycle, "PreBindPreFlight")
        return self.flight

    def pre_bind(self, cycle: Cycle, row: int) -> Status | None:
        self._note(cycle, "PreBind")
        return self.prepared

    def bind(self, cycle: Cycle, row: int) -> Status:
        self._note(cycle, "Bind")
        return SKIP

    def post_bind(self, cycle: Cycle, row: int) -> None:
        self._note(cycle, "PostBind")


def waiting_for(points: PointLog) -> SchedulerScenario:
    """A scheduler with pod `a`, which waits for permission."""
    profile = profile_of("default-scheduler", (PrioritySort(), NodeResourcesFit(), points, DefaultBinder()))
    scenario = SchedulerScenario(profiles=[profile], nodes=1)
    scenario.tell(pod("a"))
    return scenario


def test_plugins_are_called_in_the_order_of_kube_scheduler() -> None:
    points = PointLog()
    scenario = waiting_for(points)
    assert points.log == ["Reserve", "Permit", "PreBindPreFlight"]
    scenario.tell(pod("b"))
    assert points.log[3:] == ["allowed", "PreBind", "Bind"]
    scenario.answer()
    assert points.log[6:] == ["PostBind"]


def test_a_plugin_that_skips_before_the_wait_is_not_called_at_pre_bind() -> None:
    points = PointLog(SKIP)
    waiting_for(points).tell(pod("b"))
    assert points.log[2:] == ["PreBindPreFlight", "allowed", "Bind"]


def test_a_failure_before_the_wait_ends_the_binding_in_the_words_of_kube_scheduler() -> None:
    for flight, message in (
        (failed("no disk"), 'running PreBindPreFlight "PointLog": no disk'),
        (
            unschedulable("no"),
            'PreBindPreFlight PointLog returned "Unschedulable", which is unsupported.'
            " It is supposed to return Success, Skip, or Error status",
        ),
    ):
        points = PointLog(flight)
        scenario = waiting_for(points)
        assert points.log[2:] == ["PreBindPreFlight", "Unreserve"]
        assert scenario.conditions("a")[0]["message"] == message


def test_what_a_plugin_refuses_at_pre_bind_it_refuses_after_the_wait() -> None:
    points = PointLog()
    scenario = waiting_for(points)
    points.prepared = failed("no disk")
    scenario.tell(pod("b"))
    assert points.log[3:] == ["allowed", "PreBind", "Unreserve"]
    assert scenario.backlog.where("uid-a").queue == "backoff"


def test_a_refusal_by_reserve_is_undone_and_speaks_of_one_node() -> None:
    log: list[str] = []
    first, second = ScriptedPlugin("First", log), ScriptedPlugin("Second", log)
    second.reserved = unschedulable("taken")
    stage = SchedulerScenario(first, second, nodes=3)
    stage.tell(pod("a"))
    assert stage.conditions("a")[0]["message"] == "0/1 nodes are available: 1 taken."
    assert log[-4:] == ["First.reserve", "Second.reserve", "Second.unreserve", "First.unreserve"]
    assert stage.cluster.pods["uid-a"].place is PodPlace.PENDING
    assert stage.backlog.where("uid-a").plugins == ("Second",)


def test_a_refusal_by_permit_is_undone_too() -> None:
    permit = ScriptedPlugin("Permit")
    permit.permitted = unschedulable("not you")
    stage = SchedulerScenario(permit, nodes=1)
    stage.tell(pod("a"))
    assert stage.binds() == {}
    assert stage.conditions("a")[0]["message"] == "0/1 nodes are available: 1 not you."
    assert int(stage.cluster.table.requested["cpu"].sum()) == 0


def test_a_waiting_pod_keeps_its_room_until_it_is_allowed() -> None:
    permit = ScriptedPlugin("Permit")
    permit.permitted = Wait(60.0)
    stage = SchedulerScenario(permit, nodes=1)
    stage.tell(pod("a", cpu="4"))
    stage.tell(pod("b", cpu="4"))
    assert stage.binds() == {}
    assert stage.cluster.pods["uid-a"].place is PodPlace.ASSUMED
    stage.scheduler.bindings["uid-a"].allow("Permit")
    stage.tell(node("far", cpu="1"))
    stage.run()
    stage.scheduler.binding_driver.look_after(list(stage.scheduler.bindings.values()))
    assert stage.scheduler.bindings["uid-a"].past_permit


def test_waiting_too_long_is_a_refusal_that_names_the_plugin() -> None:
    permit = ScriptedPlugin("Permit")
    permit.permitted = Wait(30.0)
    stage = SchedulerScenario(permit, nodes=1)
    stage.tell(pod("a"))
    assert stage.scheduler.wake_at() == T0 + 30.0
    permit.permitted = None
    stage.run(after=31)
    assert (
        stage.conditions("a")[0]["message"]
        == "0/1 nodes are available: 1 rejected due to timeout after waiting 30s at plugin Permit."
    )


def test_no_permit_waits_longer_than_a_quarter_of_an_hour() -> None:
    permit = ScriptedPlugin("Permit")
    permit.permitted = Wait(3600.0)
    stage = SchedulerScenario(permit, nodes=1)
    stage.tell(pod("a"))
    assert stage.scheduler.wake_at() == T0 + 900.0


def test_a_pod_that_waits_for_permission_shows_the_node_it_expects() -> None:
    permit = ScriptedPlugin("Permit")
    permit.permitted = Wait(60.0)
    stage = SchedulerScenario(permit, nodes=1)
    stage.tell(pod("a"))
    patches = [w.body["status"] for w in stage.writes if w.subresource == "status"]
    assert patches == [{"nominatedNodeName": "n0"}]


def test_a_bound_pod_costs_a_binding_and_an_event() -> None:
    stage = SchedulerScenario(nodes=1)
    stage.tell(pod("a"))
    stage.answer()
    assert [(w.verb, w.kind.plural, w.subresource) for w in stage.writes] == [
        (Verb.CREATE, "pods", "binding"),
        (Verb.CREATE, "events", ""),
    ]
    binding = stage.writes[0].body
    assert binding["metadata"] == {"namespace": "default", "name": "a", "uid": "uid-a"}
    assert binding["target"]["kind"] == "Node"
    event = stage.events("Scheduled")[0]
    assert event["note"] == "Successfully assigned default/a to n0"
    assert (event["type"], event["action"], event["reportingController"]) == ("Normal", "Binding", "default-scheduler")


def test_everybody_sees_a_bound_pod() -> None:
    log = ScriptedPlugin("Log")
    stage = SchedulerScenario(log, nodes=1)
    stage.tell(pod("a"))
    assert "Log.post_bind" not in log.log
    stage.answer()
    assert "Log.post_bind" in log.log


def test_a_refused_binding_leaves_no_trace_and_is_retried_after_a_backoff() -> None:
    reserve = ScriptedPlugin("Reserve")
    stage = SchedulerScenario(reserve, nodes=1)
    stage.tell(pod("a"))
    stage.answer(Conflict("already there"), to="binding")
    assert "Reserve.unreserve" in reserve.log
    assert stage.cluster.pods["uid-a"].place is PodPlace.PENDING
    assert int(stage.cluster.table.requested["cpu"].sum()) == 0
    assert stage.backlog.where("uid-a").queue == "backoff"
    assert stage.conditions("a")[0]["reason"] == "SchedulerError"
    stage.run(after=3)
    assert len([w for w in stage.writes if w.subresource == "binding"]) == 2


def test_a_refused_binding_is_news_for_pods_that_found_no_room() -> None:
    stage = SchedulerScenario(nodes=1)
    stage.tell(pod("a", cpu="4"))
    stage.tell(pod("b", cpu="4"))
    assert stage.backlog.where("uid-b").queue == "unschedulable"
    stage.answer(Conflict("no"), to="binding")
    stage.run(after=2)
    assert "b" in stage.binds()


def test_texts_of_rescues_follow_the_refusal() -> None:
    first = RescuingPlugin("One", lambda: PostFilterResult(unschedulable("nothing to give")))
    second = RescuingPlugin("Two", lambda: PostFilterResult(unschedulable("nobody to evict")))
    stage = SchedulerScenario(profiles=[profile_of("default-scheduler", default_plugins(first, second))], nodes=1)
    stage.tell(pod("a", cpu="9"))
    assert (
        stage.conditions("a")[0]["message"]
        == "0/1 nodes are available: 1 Insufficient cpu. nothing to give, nobody to evict"
    )


def test_a_rescue_that_fails_ends_the_chain() -> None:
    first = RescuingPlugin("One", lambda: PostFilterResult(failed("not found")))
    second = RescuingPlugin("Two", lambda: PostFilterResult(unschedulable("never asked")))
    stage = SchedulerScenario(profiles=[profile_of("default-scheduler", default_plugins(first, second))], nodes=1)
    stage.tell(pod("a", cpu="9"))
    assert stage.conditions("a")[0]["message"] == "0/1 nodes are available: 1 Insufficient cpu. not found"
    assert stage.conditions("a")[0]["reason"] == "Unschedulable"


def test_a_pod_that_is_gone_is_not_put_back() -> None:
    stage = SchedulerScenario(nodes=1)
    stage.tell(pod("a"))
    stage.gone(pod("a"))
    stage.answer(Conflict("no such pod"), to="binding")
    assert stage.backlog.where("uid-a") is None
    assert stage.events("FailedScheduling") == []


def test_a_condition_that_says_it_already_is_not_written_again() -> None:
    stage = SchedulerScenario(nodes=1)
    stage.tell(pod("a", cpu="9"))
    condition = stage.conditions("a")[0]
    told = {**pod("a", cpu="9"), "status": {"phase": "Pending", "conditions": [condition]}}
    stage.tell(told, happened=Happened.MODIFIED)
    stage.tell(node("small", cpu="2"))
    stage.tell(
        {**node("small", cpu="2"), "spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}},
        happened=Happened.MODIFIED,
    )
    stage.run(after=5)
    messages = [condition["message"] for condition in stage.conditions("a")]
    assert len(messages) == len(set(messages))


def test_counts_sort_as_strings() -> None:
    first, second = ScriptedPlugin("First"), ScriptedPlugin("Second")
    first.refused = {f"n{i}": ("y", False) for i in range(2)}
    second.refused = {f"n{i}": ("x", False) for i in range(2, 12)}
    stage = SchedulerScenario(first, second, nodes=12)
    stage.tell(pod("a"))
    assert stage.conditions("a")[0]["message"] == "0/12 nodes are available: 10 x, 2 y."


def test_the_note_of_an_event_is_cut_and_the_condition_is_not() -> None:
    long = ScriptedPlugin("Long")
    long.refused = {"n0": ("x" * 2000, False)}
    stage = SchedulerScenario(long, nodes=1)
    stage.tell(pod("a"))
    note = stage.events("FailedScheduling")[0]["note"]
    assert len(note) == 1024
    assert note.endswith(" ...")
    assert len(stage.conditions("a")[0]["message"]) > 2000


def test_a_second_event_of_the_same_kind_becomes_a_series() -> None:
    stage = SchedulerScenario(nodes=1)
    stage.tell(pod("a", cpu="9"))
    for _ in range(3):
        stage.tell(node("bigger", cpu="8"), happened=Happened.ADDED)
        stage.backlog.activate([stage.cluster.pods["uid-a"].seen], stage.now)
        stage.run()
    created = stage.events("FailedScheduling")
    patched = [w for w in stage.writes if w.kind is kinds.EVENT_V1 and w.verb is Verb.PATCH]
    assert len(created) == 1
    assert [w.body["series"]["count"] for w in patched] == [2]
