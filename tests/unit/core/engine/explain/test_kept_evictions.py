"""Evictions that were written down are known to the next scheduler, also if the first was killed."""

from __future__ import annotations

from fairlead.assembly.schedulers import SchedulerAssembly
from fairlead.core.engine.explain.eviction_ledger import CONFIG_MAP, EvictionLedger
from fairlead.core.engine.scheduler import Options, Scheduler
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened, Reply, Verb, Write
from fairlead.core.state.cluster import Cluster
from fairlead.errors import AlreadyExists, Forbidden, NotFound
from fairlead.testing import Harness, namespace, node, pod, priority_class


def ledger_scheduler() -> Scheduler:
    return SchedulerAssembly(options=Options(evictions_in=CONFIG_MAP)).scheduler()


def names(scheduler: Scheduler) -> list[str]:
    return [one.name for one in scheduler.ledger.of()]


def evict(cluster: Harness, number: int) -> None:
    cluster.apply(pod(f"low-{number}").asks(cpu="3"))
    cluster.run(5)
    cluster.apply(pod(f"vip-{number}").asks(cpu="3").of_priority("high"))
    cluster.run(60)
    cluster.delete("pod", f"vip-{number}")
    cluster.run(5)


def test_the_next_scheduler_knows_what_the_killed_one_evicted() -> None:
    first = ledger_scheduler()
    cluster = Harness(nodes=[node("only").offers(cpu="4")], schedulers=[lambda _: first])
    cluster.apply(namespace("kube-system"), priority_class("high", 1000))
    evict(cluster, 0)
    evict(cluster, 1)
    kept = cluster.store.get(kinds.CONFIG_MAP, *CONFIG_MAP)
    assert kept is not None
    second = ledger_scheduler()
    second.ledger.restore(kept)
    assert names(second) == names(first) == ["low-1", "low-0"]
    before, after = next(first.ledger.of()), next(second.ledger.of())
    assert before == after
    assert (after.beneficiary, after.node) == ("default/vip-1", "only")


def deletion(name: str) -> tuple[Write, Cluster]:
    cluster = Cluster()
    metadata = {"name": name, "namespace": "default", "uid": name}
    spec = {"containers": [], "nodeName": "n"}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}
    cluster.apply(Change(Happened.ADDED, kinds.POD, document))
    body = {"preconditions": {"uid": name}}
    return Write(Verb.DELETE, kinds.POD, "default", name, body=body, note=("default/vip", "rule")), cluster


def test_only_the_newest_are_written_and_refusals_are_taken_in() -> None:
    ledger = EvictionLedger(CONFIG_MAP)
    write, cluster = deletion("low")
    (made,) = ledger.note([write], cluster, 1.0)
    assert made.verb is Verb.CREATE
    ledger.take_replies([Reply(made, None, AlreadyExists("it is there"))])
    (patch,) = ledger.note([write], cluster, 2.0)
    assert patch.verb is Verb.PATCH
    assert len(patch.body["data"]) == 2, "what could not be created goes with the next"
    for second in range(3, 1200):
        (patch,) = ledger.note([write], cluster, float(second))
    assert sum(value is None for value in patch.body["data"].values()) == 1, "the oldest goes for it"
    ledger.take_replies([Reply(patch, None, NotFound("somebody deleted it"))])
    (again,) = ledger.note([write], cluster, 2000.0)
    assert again.verb is Verb.CREATE
    assert len(again.body["data"]) == 1000
    ledger.take_replies([Reply(again, None, Forbidden("no"))])
    assert ledger.note([write], cluster, 2001.0) == []
    assert len(list(ledger.of())) == 1201


def test_what_cannot_be_read_is_left_out() -> None:
    ledger = EvictionLedger(CONFIG_MAP)
    ledger.restore({"data": {"1.a": "no JSON", "2.b": "[1,2]", "3.c": '[1,"ns","p","u",0,"n","","s","","",0.5]'}})
    assert [one.name for one in ledger.of()] == ["p"]
