"""A run of equal pods ends up where each of them would, had the search begun anew for it."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.assembly.schedulers import default_scheduler
from fairlead.core.engine.cycle.attempt import place
from fairlead.core.engine.cycle.placement import LastSearch, Placed, Search
from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.effects import Effects
from fairlead.core.framework.evaluate import Evaluator
from fairlead.core.framework.points import merge_reserve
from fairlead.core.framework.profile import Profile
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Doc, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.core.state.statement import Statement
from fairlead.testing.builders import node

ZONE = "topology.kubernetes.io/zone"
APP = {"matchLabels": {"app": "a"}}
TERM = {"labelSelector": APP, "topologyKey": ZONE}
SPREAD = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": APP}
SPECS: list[Doc] = [
    {},
    {},
    {"tolerations": [{"operator": "Exists"}]},
    {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}},
    {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 3, "podAffinityTerm": TERM}]}}},
    {"topologySpreadConstraints": [SPREAD]},
    {"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}]},
    {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]},
    {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]},
]  # fmt: skip
REQUESTS: list[Doc] = [
    {"name": "r", "exactly": {"deviceClassName": "gpu"}},
    {"name": "r", "exactly": {"deviceClassName": "gpu"}},
    {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}},
    {"name": "r", "firstAvailable": [
        {"name": "two", "deviceClassName": "gpu", "count": 2}, {"name": "one", "deviceClassName": "gpu"}]},
]  # fmt: skip


class PlacingCluster:
    """A cluster, and a scheduler's means. With `runs`, what is carried from one search to the next is kept."""

    def __init__(self, profile: Profile, *, runs: bool) -> None:
        self.cluster = Cluster()
        self.profile = profile
        self.evaluator = Evaluator(profile)
        self._last = LastSearch()
        self._runs = runs
        self._rng = Random(7)
        self.went_on = 0

    def apply(self, change: Change) -> None:
        self.cluster.apply(change)

    def place(self, uid: str, promised: str, *, keep: bool) -> Any:
        if not self._runs:
            self._last.run = None
        pod = self.cluster.pods[uid].seen
        rivals = {row: [pod] for name, row in self.cluster.table.row_of.items() if name == promised}
        cycle = Cycle(pod=pod, cluster=self.cluster, profile=self.profile, now=0.0, rng=self._rng, effects=Effects())
        before = self._last.run
        answer = place(cycle, self.evaluator, Search(self._last, rivals))
        self.went_on += before is not None and self._last.run is before
        if not isinstance(answer, Placed):
            return type(answer)
        statement = Statement(self.cluster)
        statement.assign(pod, answer.row)
        if keep:
            statement.commit()
            assert merge_reserve(cycle, answer.row) is None
        else:
            statement.rollback()
        found = (answer.row, answer.feasible, answer.judged, answer.chosen, answer.runner_up)
        return found, sorted(cycle.notes), cycle.no_filter, cycle.no_score, self._rng.random()


def node_of(rng: Random, number: int) -> Change:
    offered = {"cpu": str(rng.randint(2, 6)), "memory": "16Gi", "pods": str(rng.randint(2, 8))}
    return Change(
        Happened.ADDED, kinds.NODE, node(f"n{number}").labelled({ZONE: rng.choice("xy")}).offers(offered).doc()
    )


def pod_of(number: int, spec: Doc, labels: dict[str, str], node_name: str = "") -> Change:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]
    metadata = {"name": f"p{number}", "namespace": "default", "uid": f"p{number}", "labels": labels}
    doc = {"metadata": metadata, "spec": {**spec, "containers": containers, "nodeName": node_name}}
    if "resourceClaims" in spec:
        doc["status"] = {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": f"p{number}-c"}]}
    return Change(Happened.ADDED, kinds.POD, doc)


def claim_of(number: int, request: Doc) -> Change:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": f"p{number}", "uid": f"p{number}", "controller": True}
    metadata = {"name": f"p{number}-c", "namespace": "default", "uid": f"c{number}", "ownerReferences": [owner]}
    return Change(
        Happened.ADDED,
        kinds.RESOURCE_CLAIM,
        {
            "metadata": metadata,
            "spec": {"devices": {"requests": [request]}},
        },
    )


def slice_of(number: int, devices: int) -> Change:
    return Change(
        Happened.ADDED,
        kinds.RESOURCE_SLICE,
        {
            "metadata": {"name": f"s{number}"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": f"n{number}",
                "pool": {"name": f"n{number}", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": f"d{at}"} for at in range(devices)],
            },
        },
    )


GPU = Change(Happened.ADDED, kinds.DEVICE_CLASS, {"metadata": {"name": "gpu"}, "spec": {}})


def between(rng: Random, number: int, labels: dict[str, str]) -> list[Change]:
    """What may happen between two pods of a run; most often nothing."""
    service = {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": "s", "namespace": "default"},
        "spec": {"selector": labels},
    }
    happened = rng.choice(["node", "pod", "service", *[""] * 9])
    if happened == "node":
        return [node_of(rng, rng.randrange(7))]
    if happened == "pod":
        return [pod_of(1000 + number, rng.choice(SPECS), labels, "n0")]
    return [Change(Happened.ADDED, kinds.SERVICE, service)] if happened else []


def story(rng: Random) -> Iterator[Change | tuple[str, str, bool]]:
    """Changes, and runs of equal pods that are placed, or only tried, with some node promised to others or not."""
    nodes = rng.randint(2, 6)
    yield from [node_of(rng, number) for number in range(nodes)]
    yield from [GPU, *(slice_of(number, rng.randint(1, 4)) for number in range(nodes) if rng.random() < 0.8)]
    number = 0
    for _ in range(rng.randint(1, 5)):
        spec, labels, size = rng.choice(SPECS), {"app": rng.choice("ab")}, rng.randint(2, 5)
        request = rng.choice(REQUESTS)
        run = range(number, number + size)
        number += size
        if "resourceClaims" in spec:
            other = rng.choice(REQUESTS)
            yield from [claim_of(member, request if rng.random() < 0.8 else other) for member in run]
        yield from [pod_of(member, spec, labels) for member in run]
        for member in run:
            yield from between(rng, member, labels)
            yield f"p{member}", rng.choice(["n0", *[""] * 7]), rng.random() < 0.9


@given(st.integers(0, 2**32))
@example(13253581)
@settings(max_examples=150)
def test_a_run_is_what_searches_from_the_beginning_would_find(seed: int) -> None:
    profile = default_scheduler().profiles["default-scheduler"]
    with_runs, without = PlacingCluster(profile, runs=True), PlacingCluster(profile, runs=False)
    for told in story(Random(seed)):
        if isinstance(told, Change):
            with_runs.apply(told)
            without.apply(told)
        else:
            uid, promised, keep = told
            assert with_runs.place(uid, promised, keep=keep) == without.place(uid, promised, keep=keep)


def test_equal_pods_are_a_run() -> None:
    world = PlacingCluster(default_scheduler().profiles["default-scheduler"], runs=True)
    for number in range(3):
        world.apply(Change(Happened.ADDED, kinds.NODE, node(f"n{number}").offers(cpu="8", pods="20").doc()))
    for number in range(6):
        world.apply(pod_of(number, {}, {"app": "a"}))
    for number in range(6):
        world.place(f"p{number}", "", keep=True)
    assert world.went_on == 5


def test_equal_pods_with_claims_of_their_own_are_a_run() -> None:
    world = PlacingCluster(default_scheduler().profiles["default-scheduler"], runs=True)
    world.apply(GPU)
    for number in range(3):
        world.apply(Change(Happened.ADDED, kinds.NODE, node(f"n{number}").offers(cpu="8", pods="20").doc()))
        world.apply(slice_of(number, 4))
    for number in range(6):
        world.apply(claim_of(number, REQUESTS[0]))
        world.apply(pod_of(number, SPECS[-1], {"app": "a"}))
    for number in range(6):
        world.place(f"p{number}", "", keep=True)
    assert world.went_on == 5
