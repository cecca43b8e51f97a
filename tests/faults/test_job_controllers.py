"""Volcano's controllers on an API that refuses, loses answers and tells late: every Job ends as it does on a good one.

The controllers read a mirror that is as far as their watch has told, as on a real cluster: their own writes are not in
it for a while, and a second creation of the same object is answered with AlreadyExists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from random import Random

import pytest

from fairlead.cluster.store.store import Store
from fairlead.core.model import kinds as k
from fairlead.core.model.flow import Change, Controller, Doc, Happened, Reply, Verb, Write
from fairlead.core.model.kinds import Kind
from fairlead.errors import ApiError, InternalError, TooManyRequests, Unreachable
from fairlead.runtime.virtual import Latencies
from fairlead.volcano.jobs.job_plugins.env import EnvPlugin
from fairlead.volcano.kinds import VC_JOB, VC_POD_GROUP
from tests.support.job_cases import TWENTY, Case, spec, task
from tests.support.job_cluster import JobCluster, volcano_controllers

Fault = Callable[[Write], tuple[bool, ApiError] | None]
"""Whether a write is carried out all the same, and how it is answered; None for one that goes well."""


class OnMirror:
    """Controllers that read what their watch has told them, and nothing newer."""

    name = "on-mirror"

    def __init__(self) -> None:
        self._docs: dict[tuple[Kind, str, str], Doc] = {}
        self._inner = volcano_controllers(self)
        self.watches = self._inner.watches

    def get(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        return self._docs.get((kind, namespace, name))

    def list(self, kind: Kind, namespace: str = "") -> Iterable[Doc]:
        return [doc for (its, space, _), doc in self._docs.items() if its is kind and namespace in ("", space)]

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        for change in changes:
            metadata = change.doc["metadata"]
            place = (change.kind, metadata.get("namespace", ""), metadata["name"])
            if change.happened is Happened.DELETED:
                self._docs.pop(place, None)
            else:
                self._docs[place] = change.doc
        return self._inner.step(now, changes, replies)

    def wake_at(self) -> float | None:
        return self._inner.wake_at()


DISK = {
    "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"},
    "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/disk"}},
}  # fmt: skip


OF_ITS_OWN = {k.CONFIG_MAP, k.SECRET, k.SERVICE, k.NETWORK_POLICY, VC_POD_GROUP, k.POD}


def lives(cases: Sequence[Case], fault: Fault, *, late: float = 0.0) -> dict[str, str]:
    """The phase in which each Job ends, with faults for the controllers and watches that are late by up to `late`
    seconds."""

    made: set[Kind] = set()

    def perform(store: Store, controller: Controller, write: Write) -> Doc:
        outcome = fault(write) if isinstance(controller, OnMirror) and write.kind is not k.EVENT else None
        performed, error = outcome or (True, None)
        answer = store.perform(write) if performed else {}
        if performed and write.verb is Verb.CREATE:
            made.add(write.kind)
        if error is not None:
            raise error
        return answer

    latencies = Latencies(watch=lambda rng: rng.uniform(0, late)) if late else None
    cluster = JobCluster(cases, lambda _: OnMirror(), perform=perform, latencies=latencies)
    cluster.harness.apply(DISK)
    ends = {name: phase for name, (phase, _) in cluster.live().items()}
    assert made >= OF_ITS_OWN
    return ends


def said(cases: Sequence[Case]) -> dict[str, str]:
    return {case.name: case.ends for case in cases}


BESIDE = (
    Case(
        "beside",
        spec(
            task("w", 2), plugins={"svc": [], "ssh": [], "env": []},
            volumes=[{
                "mountPath": "/data",
                "volumeClaim": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }],
        ),
        "Completed",
    ),
)  # fmt: skip
"""A Job that has something of every kind beside its pods."""


@pytest.mark.parametrize(("performed", "late"), [(True, 0.3), (False, 0.0)])
def test_whichever_write_fails_the_job_ends(performed: bool, late: float) -> None:
    """The k-th write is answered with an error, for every k. Where it was carried out all the same, sending it again is
    refused as AlreadyExists."""
    sent = 0
    for number in range(100):
        count = iter(range(1000))

        def fault(write: Write, count: Iterable[int] = count, number: int = number) -> tuple[bool, ApiError] | None:
            nonlocal sent
            sent = next(iter(count))
            return (performed, Unreachable("the answer was lost")) if sent == number else None

        assert lives(BESIDE, fault, late=late) == said(BESIDE), f"write {number} failed"
        if sent < number:
            break
    assert 10 < sent < 99


@pytest.mark.parametrize("kind", [k.CONFIG_MAP, k.SECRET, k.SERVICE, k.NETWORK_POLICY, k.PERSISTENT_VOLUME_CLAIM,
                                  VC_POD_GROUP, k.POD, VC_JOB], ids=str)  # fmt: skip
def test_a_kind_that_is_refused_three_times_does_not_stop_the_job(kind: Kind) -> None:
    left = dict.fromkeys(Verb, 3)

    def fault(write: Write) -> tuple[bool, ApiError] | None:
        if write.kind is not kind or not left[write.verb]:
            return None
        left[write.verb] -= 1
        return False, InternalError("no")

    assert lives(BESIDE, fault) == said(BESIDE)


@pytest.mark.parametrize("seed", range(3))
def test_with_one_write_in_ten_failing_and_late_watches_every_job_ends_as_it_should(seed: int) -> None:
    rng = Random(seed)
    cases = [replace(case, name=f"{case.name}-{at}") for at in range(2) for case in TWENTY]

    def fault(write: Write) -> tuple[bool, ApiError] | None:
        if rng.random() > 0.1:
            return None
        error = rng.choice((Unreachable("lost"), InternalError("no"), TooManyRequests("slowly")))
        return isinstance(error, Unreachable) and rng.random() < 0.5, error

    assert lives(cases, fault, late=0.2) == said(cases)


def test_what_a_plugin_raises_costs_one_try_of_one_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request that was being carried out is not lost with the exception, and other Jobs do not notice."""
    raised = iter(range(3))
    add = EnvPlugin.on_pod_create

    def adds_or_raises(self: EnvPlugin, pod: Doc, job: Doc) -> None:
        if job["metadata"]["name"] == "beside" and next(raised, None) is not None:
            raise RuntimeError("a defect")
        add(self, pod, job)

    monkeypatch.setattr(EnvPlugin, "on_pod_create", adds_or_raises)
    cases = [*BESIDE, *TWENTY]
    assert lives(cases, lambda write: None) == said(cases)
    assert next(raised, None) is None
