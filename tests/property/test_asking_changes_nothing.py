"""Questions leave the scheduler as it was: table, queues, nominations, generator and figures; also when cut off."""

from random import Random

import pytest

from fairlead.engine.scheduler import Scheduler
from fairlead.engine.what_if.simulate import simulate
from fairlead.engine.what_if.workload import Workload
from fairlead.runtime.copies import CopyFailed, ProcessCopy
from fairlead.sim.expansion import expand
from fairlead.testing import Harness, deployment, node, pod, priority_class
from fairlead.testing.asking import context_of


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
        scheduler.backlog.summary(),
        {uid: scheduler.backlog.nominator.node_of(uid) for uid in cluster.pods},
        scheduler._rng.getstate(),
        scheduler._search.start,
        scheduler.explanations._placements,
        list(scheduler.evictions.victims),
    )


@pytest.mark.parametrize("seed", range(4))
def test_asking_changes_nothing(seed: int) -> None:
    cluster = busy_cluster(seed)
    scheduler = cluster._schedulers[0]
    assert isinstance(scheduler, Scheduler)
    before, documents = looks(scheduler), [deployment("new").replicas(6).of(pod("new").asks(cpu="1")).doc()]
    cluster.would(*documents)
    cluster.would(pod("vip").asks(cpu="4").of_priority("high"))
    assert looks(scheduler) == before
    workload = Workload.of(expand(documents, context_of(cluster.store, documents), now=cluster.now))
    cut = ProcessCopy(lambda: simulate(scheduler, workload), limit=0.002)
    with pytest.raises(CopyFailed):
        cut.result()
    assert looks(scheduler) == before
    cluster.run(30)
    assert cluster.runtime.controllers
