"""Whatever happens, in whatever order: no gang starts before it can be whole, a rolled-back gang leaves no trace, and a
scheduler that is killed at any point is replaced by one that finishes what was begun."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.core.engine.cycle.binding import BindingStage as Held
from fairlead.core.framework.plugin import Wait
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Doc, Happened, Reply, Verb, Write
from fairlead.core.model.reasons import unschedulable
from fairlead.errors import ApiError, Conflict, Unreachable
from fairlead.kube.gangs.plugin import GangScheduling
from tests.support.documents import RACK, deleting, group, member, node, pod
from tests.support.scheduling import SchedulerScenario, ScriptedPlugin, gang_scenario

GROUPS = {"a": 2, "b": 3, "c": 4}
MEMBERS = [(f"{name}-{i}", name) for name, size in GROUPS.items() for i in range(size + 1)]
GANG = GangScheduling.name
NODES = ["n0", "n1", "n2"]
VERSIONS = [kinds.POD_GROUP, kinds.POD_GROUP_BETA]
CPU = {"n0": 4, "n1": 4, "n2": 3}

steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("group"),
            st.sampled_from(sorted(GROUPS)),
            st.booleans(),
            st.integers(0, 2),
            st.sampled_from(VERSIONS),
        ),
        st.tuples(st.just("add"), st.sampled_from(MEMBERS), st.integers(1, 2), st.integers(0, 2)),
        st.tuples(st.just("single"), st.integers(0, 3), st.integers(1, 4)),
        st.tuples(st.just("delete"), st.sampled_from([name for name, _ in MEMBERS])),
        st.tuples(st.just("terminate"), st.sampled_from([name for name, _ in MEMBERS])),
        st.tuples(st.just("node"), st.sampled_from(NODES)),
        st.tuples(st.just("lose"), st.sampled_from(NODES)),
        st.tuples(st.just("api"), st.integers(0, 7)),
        st.tuples(st.just("watch")),
        st.tuples(st.just("wait"), st.floats(0.1, 40.0)),
        st.tuples(st.just("permit"), st.sampled_from(["yes", "wait", "no"])),
        st.tuples(st.just("allow"), st.integers(0, 5)),
        st.tuples(st.just("start"), st.sampled_from(sorted(GROUPS))),
        st.tuples(st.just("kill")),
    ),
    max_size=40,
)


class SchedulerAndApi:
    """A stage and its API server. Writes are performed when the API comes to them, some fail; the watch tells of what
    was done some time later. A killed scheduler knows nothing and is shown what the API has."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Doc] = {}
        self.permit = ScriptedPlugin("Permit")
        self.serial = 0
        self.version = 0
        self.sent: list[Write] = []
        self.binds: list[Write] = []
        self.untold: list[Change] = []
        self.stage = self._fresh()

    def _fresh(self, now: float | None = None) -> SchedulerScenario:
        stage = gang_scenario(self.permit, gang=GangScheduling(timeout=60.0))
        if now is not None:
            stage.now = now
        stage.run(*(Change(Happened.ADDED, self._kind(doc), doc) for doc in self.objects.values()))
        return stage

    def _kind(self, doc: Doc) -> Any:
        return kinds.Registry().by_kind(doc["apiVersion"], doc["kind"])

    def do(self, step: tuple[Any, ...]) -> None:
        getattr(self, f"_{step[0]}")(*step[1:])
        self._collect()
        self.check()

    def _collect(self) -> None:
        """What the scheduler wants done, in its order; a gang's first bind must find the gang whole. A bind that is
        sent once more because its answer was lost starts nobody."""
        for write in self.stage.writes:
            if write.subresource == "binding" and not any(write is sent for sent in self.binds):
                self._is_rightly_bound(write)
                self.binds.append(write)
        self.sent += self.stage.writes
        self.stage.writes.clear()

    def _is_rightly_bound(self, write: Write) -> None:
        pod_state = next(
            (s for s in self.stage.cluster.pods.values() if s.seen.uid == write.body["metadata"]["uid"]), None
        )
        if pod_state is None or pod_state.gang is None or pod_state.gang.group is None:
            return
        bindings = [self.stage.scheduler.bindings.get(uid) for uid in pod_state.gang.members]
        waiting = sum(1 for binding in bindings if binding is not None and not binding.past_permit)
        permitted = pod_state.gang.scheduled - waiting
        assert permitted >= pod_state.gang.minimum, f"{write.name} is bound when {permitted} members are permitted"

    def _store(self, doc: Doc, happened: Happened = Happened.MODIFIED) -> None:
        self.version += 1
        doc = {**doc, "metadata": {**doc["metadata"], "resourceVersion": str(self.version)}}
        key = (doc["kind"], doc["metadata"]["name"])
        if happened is Happened.DELETED:
            self.objects.pop(key, None)
        else:
            self.objects[key] = doc
        self.untold.append(Change(happened, self._kind(doc), doc))

    # ---- what users do ----

    def _group(self, name: str, topology: bool, priority: int = 0, kind: kinds.Kind = kinds.POD_GROUP) -> None:
        if ("PodGroup", name) not in self.objects:
            key = RACK if topology else ""
            self._store(group(name, GROUPS[name], key=key, priority=priority, kind=kind), Happened.ADDED)

    def _add(self, who: tuple[str, str], cpu: int, priority: int) -> None:
        if ("Pod", who[0]) in self.objects:
            return
        self.serial += 1
        doc = member(who[0], who[1], cpu=str(cpu), priority=priority)
        doc["metadata"]["uid"] = f"{who[0]}/{self.serial}"
        self._store(doc, Happened.ADDED)

    def _single(self, number: int, cpu: int) -> None:
        if ("Pod", f"s{number}") not in self.objects:
            self.serial += 1
            doc = pod(f"s{number}", cpu=str(cpu))
            doc["metadata"]["uid"] = f"s{number}/{self.serial}"
            self._store(doc, Happened.ADDED)

    def _delete(self, name: str) -> None:
        if ("Pod", name) in self.objects:
            self._store(self.objects["Pod", name], Happened.DELETED)

    def _terminate(self, name: str) -> None:
        if ("Pod", name) in self.objects:
            self._store(deleting(self.objects["Pod", name]))

    def _node(self, name: str) -> None:
        if ("Node", name) not in self.objects:
            doc = node(name, cpu=str(CPU[name]))
            doc["metadata"]["labels"][RACK] = f"rack-{name}"
            self._store(doc, Happened.ADDED)

    def _lose(self, name: str) -> None:
        """A node goes, and with it the pods on it."""
        if ("Node", name) in self.objects:
            self._store(self.objects["Node", name], Happened.DELETED)
            for key, doc in list(self.objects.items()):
                if key[0] == "Pod" and doc["spec"].get("nodeName") == name:
                    self._store(doc, Happened.DELETED)

    # ---- what the API does ----

    def _api(self, failures: int) -> None:
        """Perform all writes; of each three binds, those in `failures` fail."""
        replies = []
        for number, write in enumerate(self.sent):
            failed = write.subresource == "binding" and failures >> (number % 3) & 1
            error = (Conflict("no") if number % 2 else Unreachable("no")) if failed else self._perform(write)
            replies.append(Reply(write, {}, error))
        self.sent.clear()
        self.stage.run(replies=replies)

    def _perform(self, write: Write) -> ApiError | None:
        doc = self.objects.get(("Pod", write.name))
        if doc is None or write.kind is not kinds.POD:
            return None
        if write.subresource == "binding":
            if "deletionTimestamp" in doc["metadata"]:
                return Conflict(f"pod {write.name} is being deleted, cannot be assigned to a host")
            if doc["metadata"]["uid"] == write.body["metadata"]["uid"] and not doc["spec"].get("nodeName"):
                self._store({**doc, "spec": {**doc["spec"], "nodeName": write.body["target"]["name"]}})
        elif write.verb is Verb.DELETE:
            self._store(doc, Happened.DELETED)
        return None

    def _watch(self) -> None:
        told, self.untold = self.untold, []
        self.stage.run(*told)

    def _wait(self, seconds: float) -> None:
        self.stage.run(after=seconds)

    def _permit(self, answer: str) -> None:
        self.permit.permitted = {"yes": None, "wait": Wait(5.0), "no": unschedulable("not now")}[answer]

    def _allow(self, number: int) -> None:
        """The plugin that made a pod wait lets it go."""
        scheduler = self.stage.scheduler
        waiting = [b for b in scheduler.bindings.values() if "Permit" in b.waiting_for]
        if waiting:
            binding = waiting[number % len(waiting)]
            binding.allow("Permit")
            scheduler.output.writes = []
            scheduler.binding_driver.advance(binding, ())
            self.stage.writes += scheduler.output.writes

    def _start(self, name: str) -> None:
        """A whole gang at once, with room for it: what random steps rarely come to."""
        self._node("n0")
        self._node("n1")
        self._group(name, topology=False)
        for who in MEMBERS:
            if who[1] == name:
                self._add(who, 1, 0)
        self._watch()

    def _kill(self) -> None:
        """kill -9: some writes were performed, nobody heard of it; a new scheduler sees what there is."""
        for write in self.sent[: len(self.sent) // 2]:
            self._perform(write)
        self.sent.clear()
        self.untold.clear()
        self.stage = self._fresh(self.stage.now + 1.0)

    # ---- what must hold ----

    def check(self) -> None:
        self.stage.cluster.check()
        self.stage.backlog.check()
        table = self.stage.cluster.table
        for name, row in table.row_of.items():
            assert table.requested_column("cpu")[row] <= table.allocatable_column("cpu")[row], f"{name} is overfull"
        self._no_gang_holds_places_in_vain()

    def _no_gang_holds_places_in_vain(self) -> None:
        """A gang holds places for its minimum, or only those that members run on: nobody waits with half a cluster."""
        for gang in self.stage.cluster.gangs:
            if gang.group is not None and gang.scheduled < gang.minimum:
                bindings = [self.stage.scheduler.bindings.get(uid) for uid in gang.members]
                held = [b for b in bindings if b is not None and (b.stage is Held.HELD or GANG in b.waiting_for)]
                assert not held, f"{gang.key} holds {len(held)} places and is not whole"


_NODE_LOST = [("start", "c"), ("lose", "n0"), ("single", 0, 1)]


@given(steps)
@example(
    [
        ("start", "a"),
        ("terminate", "a-2"),
        ("api", 2),
        ("permit", "wait"),
        ("delete", "a-0"),
        ("wait", 1.0),
        ("wait", 5.0),
        ("start", "b"),
    ]
)
@example([("start", "b"), ("api", 3), ("permit", "wait"), ("wait", 1.0), ("allow", 0)])
@example([("permit", "wait"), ("start", "b"), ("delete", "b-0"), ("permit", "yes"), ("start", "b")])
@example([("start", "b"), ("api", 4), ("start", "a"), ("lose", "n0"), ("watch",)])
@example([*_NODE_LOST, ("api", 3), ("watch",), ("wait", 1.0)])
@example([("node", "n1"), *_NODE_LOST, ("api", 5), ("watch",), ("wait", 34.9)])
@example([("start", "b"), ("permit", "wait"), ("kill",), ("delete", "b-0"), ("lose", "n0"), ("start", "a")])
@settings(max_examples=150)
def test_no_gang_starts_before_it_can_be_whole_whatever_happens(sequence: list[tuple[Any, ...]]) -> None:
    world = SchedulerAndApi()
    for step in sequence:
        world.do(step)


@given(steps)
@settings(max_examples=80)
def test_no_gang_stays_partly_bound_for_good(sequence: list[tuple[Any, ...]]) -> None:
    """After any history, kill -9 and a restart, with room enough: every gang that has its members runs whole."""
    world = SchedulerAndApi()
    for step in sequence:
        world.do(step)
    world.permit.permitted = None
    for key in [
        key for key, doc in world.objects.items() if key[0] == "Pod" and "deletionTimestamp" in doc["metadata"]
    ]:
        world._store(world.objects[key], Happened.DELETED)
    world.do(("kill",))
    big = node("big", cpu="64")
    big["status"]["allocatable"]["pods"] = "110"
    world._store(big, Happened.ADDED)
    for _ in range(8):
        world.do(("watch",))
        world.do(("wait", 45.0))
        world.do(("api", 0))
    world.do(("watch",))
    for gang in world.stage.cluster.gangs:
        known = gang.group is not None and len(gang) >= gang.minimum
        if known and not (gang.group and gang.group.topology_key):
            bound = sum(1 for pod_state in gang.members.values() if pod_state.seen.node_name)
            assert bound >= gang.minimum, f"{gang.key} has {bound} of {gang.minimum}"


@given(st.integers(2, 6), st.integers(1, 3), st.integers(1, 2), st.booleans())
@settings(max_examples=60)
def test_a_rolled_back_gang_leaves_everything_as_it_was(size: int, cpu: int, nodes: int, topology: bool) -> None:
    """Table, order of pods on nodes, queues besides the gang's own entry, and nominations."""
    stage = gang_scenario()
    for number in range(nodes):
        doc = node(f"n{number}", cpu="4")
        doc["metadata"]["labels"][RACK] = f"r{number}"
        stage.tell(doc)
    stage.tell(pod("placed"), pod("waiting", cpu="9"), pod("running", on="n0"))
    before = _portrait(stage)
    docs = [member(f"g-{i}", "g", cpu=str(cpu)) for i in range(size)]
    stage.tell(group("g", 99 if size * cpu <= 4 * nodes - 2 else size, key=RACK if topology else ""), *docs)
    if any(pod_state.row >= 0 for pod_state in stage.cluster.gangs.get("scheduling.k8s.io:default/g").members.values()):
        return
    assert _portrait(stage) == before


def _portrait(stage: SchedulerScenario) -> tuple[Any, ...]:
    table, backlog = stage.cluster.table, stage.backlog
    high = table.high
    return (
        {name: np.array(column[:high]).tolist() for name, column in table.requested.items()},
        table.pod_count[:high].tolist(),
        table.nonzero_cpu[:high].tolist(),
        table.nonzero_memory[:high].tolist(),
        [[p.uid for p in pods] for pods in table.pods],
        stage.cluster.claims_in_use,
        sorted((entry.key, entry.place.value) for entry in backlog.queues if entry.gang is None),
        {uid: backlog.nominator.node_of(uid) for uid in stage.cluster.pods if backlog.nominator.node_of(uid)},
        sorted(stage.scheduler.bindings),
    )


@given(st.permutations(range(8)), st.booleans())
@settings(max_examples=60)
def test_two_gangs_never_hold_half_each(order: list[int], together: bool) -> None:
    """Two gangs of four, room for four: members arrive in any order, one by one or together, and one gang runs."""
    stage = gang_scenario(nodes=1)
    docs = [member(f"{name}-{i}", name) for name in "ab" for i in range(4)]
    stage.tell(group("a", 4), group("b", 4))
    arriving = [docs[i] for i in order]
    if together:
        stage.tell(*arriving)
    else:
        for doc in arriving:
            stage.tell(doc)
            held = {gang.name: gang.scheduled for gang in stage.cluster.gangs}
            assert set(held.values()) <= {0, 4}
    started = {name[0] for name in stage.binds()}
    assert len(stage.binds()) == 4
    assert len(started) == 1
