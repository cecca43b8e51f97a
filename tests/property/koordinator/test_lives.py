"""What Koordinator's profile never does in a running scheduler, whatever comes and goes in whatever order.

Pods with quotas, gangs, GPUs and CPUs of their own come beside reservations; binds and other writes are refused, pods
are deleted, evicted for more important ones, single or in gangs, or for reservations, or taken over by those, and the
scheduler is replaced by a new one that sees only what the API has. At every moment no GPU and no CPU is given twice, no
node and no NUMA node has more than it offers, no quota uses more than its maximum, and what a reservation holds and its
owners use comes to what it promised. When all is written and seen, nobody is tried without a reason.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.core.model.flow import Doc
from fairlead.core.model.quantity import read_quantity, to_units
from fairlead.errors import Conflict
from fairlead.koordinator.agents.node_topologies import node_topology
from fairlead.koordinator.records.cpu_topology import parse_cpus
from fairlead.koordinator.reservations.holdings import reservations_of
from tests.support.documents import asking
from tests.support.koordinator import (
    GPU,
    SCHEDULING,
    KoordScenario,
    elastic_quota,
    given_gpus,
    gpu_node,
    koord_group,
    koord_pod,
    koord_reservation,
)

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("quota"), st.integers(1, 3), st.integers(0, 3)),
        st.tuples(st.just("gang"), st.integers(1, 4), st.integers(0, 1)),
        st.tuples(st.just("gpu"), st.sampled_from([25, 50, 100, 200]), st.just(0)),
        st.tuples(st.just("reservation"), st.integers(1, 3), st.integers(0, 1)),
        st.tuples(st.just("takeover"), st.integers(1, 4), st.booleans()),
        st.tuples(st.just("owner"), st.integers(1, 3), st.just(0)),
        st.tuples(st.just("cpus"), st.integers(1, 2), st.sampled_from(["LSR", "LSE"])),
        st.tuples(st.just("important"), st.integers(1, 4), st.sampled_from([0, 100])),
        st.tuples(st.just("army"), st.integers(1, 2), st.just(0)),
        st.tuples(st.just("delete"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("refuse"), st.just(0), st.just(0)),
        st.tuples(st.just("refuse writes"), st.integers(0, 1), st.integers(0, 2)),
        st.tuples(st.just("restart"), st.just(0), st.just(0)),
    ),
    min_size=1,
    max_size=14,
)


class Life:
    def __init__(self) -> None:
        self.scenario = self._fresh()
        for name in ("n0", "n1"):
            found = gpu_node(name, cpu=4)
            if name == "n1":
                _keep_to_numa_nodes(*found)
            status = found[0]["status"]
            topology = node_topology({**found[0], "status": {**status, "capacity": status["allocatable"]}})
            assert topology is not None
            self.scenario.tell(*found, topology)
        self.scenario.tell(elastic_quota("team", least={"cpu": "1"}, most={"cpu": "3"}))
        self.count = 0

    def _fresh(self) -> KoordScenario:
        preempts = {"enablePreemption": True}
        return KoordScenario({"Coscheduling": preempts, "Reservation": preempts})

    def do(self, what: str, number: int, more: Any) -> None:
        self.count += 1
        name, scenario = f"{what}{self.count}", self.scenario
        if what == "quota":
            scenario.tell(koord_pod(name, quota="team", cpu=str(number), priority=more))
        elif what == "gang":
            least = number + more * 4
            scenario.tell(koord_group(name, least=least))
            scenario.tell(*(koord_pod(f"{name}-{at}", gang=name) for at in range(number + 1)))
        elif what == "gpu":
            scenario.tell(koord_pod(name, containers=[asking({GPU: str(number)})]))
        elif what == "reservation":
            scenario.tell(
                koord_reservation(name, request={"cpu": str(number)}, owners={"app": "web"}, allocateOnce=bool(more))
            )
        elif what == "takeover":
            policy = {"allocatePolicy": "Restricted", "preAllocation": True, "allocateOnce": False}
            several = {"preAllocationPolicy": {"enableMultiple": more}}
            wish = {"cpu": str(number), **({GPU: "100"} if number == 2 else {})}
            scenario.tell(koord_reservation(name, request=wish, owners={"app": "web"}, **policy, **several))
        elif what == "owner":
            scenario.tell(koord_pod(name, cpu=str(number), labels={"app": "web"}))
        elif what == "cpus":
            labels = {"koordinator.sh/qosClass": more}
            scenario.tell(koord_pod(name, cpu=str(number), labels=labels, priority=9500))
        elif what == "important":
            wish = {GPU: str(more)} if more else {}
            scenario.tell(koord_pod(name, containers=[asking({"cpu": str(number), **wish})], priority=10000))
        elif what == "army":
            scenario.tell(koord_group(name, least=number))
            members = [koord_pod(f"{name}-{at}", gang=name, cpu="3", priority=20000) for at in range(number)]
            scenario.tell(*members)
        elif what == "delete":
            scenario.delete_a_pod(number)
        elif what == "refuse":
            scenario.answer(Conflict("refused by the test"), to="binding")
        elif what == "refuse writes":
            scenario.settle(rounds=more)
            scenario.refuse(("reservations", "pods")[number])
        elif what == "restart":
            self._restart()

    def _restart(self) -> None:
        self.scenario = self._fresh().follow_on(self.scenario)

    def check(self) -> None:
        scenario = self.scenario
        scenario.cluster.check()
        pods = [doc for key, doc in scenario.docs.items() if key[0] == "pods" and doc["spec"].get("nodeName")]
        given: Counter[tuple[str, int]] = Counter()
        bound: Counter[tuple[str, int]] = Counter()
        shares: Counter[tuple[str, int]] = Counter()
        cpu: Counter[str] = Counter()
        team = 0
        for doc in pods:
            cores = sum(int(c["resources"]["requests"].get("cpu", 0)) for c in doc["spec"]["containers"])
            cpu[doc["spec"]["nodeName"]] += cores
            if doc["metadata"]["name"].startswith("quota"):
                team += cores
            bound.update((doc["spec"]["nodeName"], number) for number in _given_cpus(doc))
            for numa, milli in _given_shares(doc):
                shares[doc["spec"]["nodeName"], numa] += milli
            for minor, percent in given_gpus(doc).items():
                given[doc["spec"]["nodeName"], minor] += percent
        assert all(amount <= 100 for amount in given.values()), given
        assert all(times == 1 for times in bound.values()), bound
        assert all(milli <= 2000 for milli in shares.values()), shares
        assert all(cores <= 4 for cores in cpu.values()), cpu
        assert team <= 3
        table = scenario.cluster.table
        for row in range(table.high):
            assert "cpu" not in table.requested or int(table.requested["cpu"][row]) <= 4000
        for state in reservations_of(scenario.cluster).by_uid.values():
            pod_state = scenario.cluster.pods.get(state.record.uid)
            if pod_state is not None and pod_state.row >= 0:
                held = pod_state.pod.shape.request.get("cpu", 0)
                assert held == max(0, state.record.held["cpu"] - state.allocated.get("cpu", 0))


def _keep_to_numa_nodes(node: Doc, devices: Doc) -> None:
    """Give a node a NUMA policy, and one GPU to each of its two NUMA nodes."""
    node["metadata"].setdefault("labels", {})["node.koordinator.sh/numa-topology-policy"] = "Restricted"
    for device in devices["spec"]["devices"]:
        device["topology"] = {"socketID": 0, "nodeID": device["minor"], "pcieID": str(device["minor"])}


def _given_shares(doc: Doc) -> list[tuple[int, int]]:
    """The cpu that a pod was given of each NUMA node, in thousandths."""
    text = (doc["metadata"].get("annotations") or {}).get(SCHEDULING + "resource-status")
    parts = json.loads(text).get("numaNodeResources") or () if text else ()
    return [(part["node"], to_units("cpu", read_quantity(part["resources"].get("cpu", "0")))) for part in parts]


def _given_cpus(doc: Doc) -> frozenset[int]:
    """The CPUs that a pod was bound to."""
    text = (doc["metadata"].get("annotations") or {}).get(SCHEDULING + "resource-status")
    return parse_cpus(json.loads(text).get("cpuset") or "") if text else frozenset()


@settings(max_examples=25, deadline=None)
@given(steps=STEPS)
@example(steps=[("army", 1, 0), ("army", 2, 0), ("army", 2, 0)])
def test_nothing_is_promised_twice_through_failures_and_restarts(steps: list[tuple[str, int, Any]]) -> None:
    life = Life()
    for step in steps:
        life.do(*step)
        life.check()
        life.scenario.settle()
        life.check()
        tried = life.scenario.backlog.cycle
        life.scenario.run()
        assert life.scenario.backlog.cycle == tried, "nothing has happened that could help anybody"
    for _ in range(3):
        life.scenario.run(after=15)
        life.scenario.settle()
        life.check()
    assert not life.scenario.scheduler.parts.effects.permit_orders
    assert not life.scenario.backlog.complaints
