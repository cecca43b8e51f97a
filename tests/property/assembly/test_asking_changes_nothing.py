"""Questions leave the scheduler as it was: table, queues, nominations, generator and figures; also when cut off."""

import itertools
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from types import FrameType

import pytest

from fairlead.assembly.expansion import expand
from fairlead.core.engine.scheduler import Scheduler
from fairlead.core.engine.what_if.answers import answer
from fairlead.core.engine.what_if.simulate import simulate
from fairlead.core.engine.what_if.workload import Workload
from fairlead.core.model import kinds
from fairlead.koordinator.kinds import KOORD_DEVICE, KOORD_ELASTIC_QUOTA, KOORD_POD_GROUP, KOORD_RESERVATION
from fairlead.koordinator.reservations.holdings import reservations_of
from fairlead.runtime.copies import CopyFailed, ProcessCopy, branch
from fairlead.testing import Harness, deployment, node, pod, priority_class
from fairlead.testing.asking import answer_of, context_of
from fairlead.volcano.kinds import VC_POD_GROUP, VC_QUEUE
from fairlead.volcano.rounds.driver import RoundDriver
from fairlead.volcano.rounds.round import Job
from tests.support import short_gangs as short
from tests.support.volcano import round_drivers


def busy_cluster(seed: int) -> Harness:
    rng = Random(seed)
    cluster = Harness(nodes=[node(f"n{i}").offers(cpu=str(rng.randint(2, 8))) for i in range(5)], seed=seed)
    cluster.apply(priority_class("high", 1000))
    for number in range(12):
        one = pod(f"p{number}").asks(cpu=str(rng.randint(1, 4)))
        cluster.apply(one.of_priority("high") if rng.random() < 0.3 else one)
    cluster.run(rng.uniform(0, 20))
    return cluster


def looks(scheduler: Scheduler) -> tuple[object, ...]:
    cluster, table = scheduler.cluster, scheduler.cluster.table
    return (
        {name: column.tobytes() for name, column in table.requested.items()},
        table.version.tobytes(),
        [[one.uid for one in pods] for pods in table.pods],
        {uid: (state.place, state.row) for uid, state in cluster.pods.items()},
        scheduler.backlog.queues.summary(),
        {uid: scheduler.backlog.nominator.node_of(uid) for uid in cluster.pods},
        scheduler.parts.rng.getstate(),
        scheduler.pods._last_search.start,
        scheduler.explanations._placements,
        list(scheduler.pods.evictions.victims),
        list(scheduler.ledger.of()),
        {kind: dict(cluster.object_index.of(kind)) for kind in READ},
        {uid: (state.available(), dict(state.owners)) for uid, state in reservations_of(cluster).by_uid.items()},
        [(job.uid, job.phase, job.counts.ready) for driver in round_drivers(scheduler) for job in jobs_of(driver)],
    )


READ = (
    kinds.RESOURCE_CLAIM, kinds.RESOURCE_SLICE, VC_POD_GROUP, VC_QUEUE, KOORD_POD_GROUP,
    KOORD_ELASTIC_QUOTA, KOORD_RESERVATION, KOORD_DEVICE,
)  # fmt: skip


def jobs_of(driver: RoundDriver) -> Iterable[Job]:
    return () if driver.latest is None else driver.latest.jobs.values()


def stuck_after(calls: int, question: Callable[[], object]) -> Callable[[], object]:
    """The question, which never ends once it has called so many functions. It is so cut off in its middle on a fast
    machine as on a slow one."""

    def ask() -> object:
        left = itertools.count(calls, -1)

        def called(frame: FrameType, event: str, arg: object) -> None:
            if event == "call" and next(left) <= 0:
                threading.Event().wait()

        sys.setprofile(called)
        return question()

    return ask


@pytest.mark.parametrize("seed", range(4))
def test_asking_changes_nothing(seed: int) -> None:
    cluster = busy_cluster(seed)
    scheduler = cluster.assembled.schedulers[0]
    assert isinstance(scheduler, Scheduler)
    before, documents = looks(scheduler), [deployment("new").replicas(6).of(pod("new").asks(cpu="1")).doc()]
    cluster.would(*documents)
    cluster.would(pod("vip").asks(cpu="4").of_priority("high"))
    assert looks(scheduler) == before
    workload = Workload.of(expand(documents, context_of(cluster.store, documents), now=cluster.now))
    cut = ProcessCopy(stuck_after(200, lambda: simulate(scheduler, workload)), limit=0.05)
    with pytest.raises(CopyFailed, match="was cut off"):
        cut.result()
    assert looks(scheduler) == before
    cluster.run(30)
    assert cluster.runtime.controllers


OTHERS: dict[str, tuple[Callable[[Path], Harness], list[object]]] = {
    "claims": (short.kube_device, [pod("new").asks(cpu="1")]),
    "volcano": (short.volcano_device, short.volcano_gang(2, short.VGPU)),
    "reservations": (short.koord_reserved, short.koord_gang(2, {"cpu": "2"})),
}


@pytest.mark.parametrize("mode", OTHERS)
def test_asking_changes_nothing_in_other_modes(mode: str, tmp_path: Path) -> None:
    make, gang = OTHERS[mode]
    cluster = make(tmp_path)
    cluster.run(5)
    scheduler = cluster.assembled.schedulers[0]
    assert isinstance(scheduler, Scheduler)
    before = looks(scheduler)
    documents = [one if isinstance(one, dict) else one.doc() for one in gang]  # type: ignore[attr-defined]
    for doc in documents:
        doc["metadata"]["name"] = f"other-{doc['metadata']['name']}"
    answer_of(cluster, {"kind": "SimulateQuestion"}, documents)
    assert looks(scheduler) == before
    objects = expand(documents, context_of(cluster.store, documents), now=cluster.now)
    question = {"kind": "SimulateQuestion", "changes": True, "objects": objects, "now": cluster.now}
    cut = ProcessCopy(stuck_after(200, lambda: answer(scheduler, question, branch)), limit=0.05)
    with pytest.raises(CopyFailed, match="was cut off"):
        cut.result()
    assert looks(scheduler) == before
