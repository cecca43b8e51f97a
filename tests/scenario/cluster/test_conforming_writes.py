"""Writes of our own that promise to conform are stored as they are: the cluster is the same as if all were decoded."""

from __future__ import annotations

from dataclasses import replace

from fairlead.cluster.kubelets.simulated_nodes import FAIL
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Controller, Doc, PatchType, Verb, Write
from fairlead.testing.builders import job, node, pod
from fairlead.testing.harness import Harness


def _pods() -> list[Doc]:
    plain = pod("plain").asks(cpu="100m").restarting("Never").running_for("5s")
    two = [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]
    beside = [{"name": "first", "image": "f"}, {"name": "beside", "image": "s", "restartPolicy": "Always"}]
    gates = [{"conditionType": "example.com/ready"}]
    return [
        plain.doc(),
        pod("failed").restarting("Never").running_for("3s").exiting(2).doc(),
        pod("crashing").restarting("OnFailure").running_for("2s").exiting(1).doc(),
        pod("again").restarting("Always").running_for("7s").doc(),
        pod("late").having(activeDeadlineSeconds=4).restarting("Never").doc(),
        pod("several").having(containers=two, initContainers=beside).running_for("6s").doc(),
        pod("outside").having(hostNetwork=True).doc(),
        pod("gated").having(readinessGates=gates).doc(),
        pod("refused").asks(cpu="1000").doc(),
        job("work").times(3, at_once=2).of(pod("w").restarting("Never").running_for("2s")).doc(),
    ]


def _played(*, trusting: bool) -> list[tuple[str, int, bytes]]:
    def perform(controller: Controller, write: Write) -> Doc:
        conforming.append(write.conforms)
        return cluster.store.perform(write if trusting else replace(write, conforms=False))

    conforming: list[bool] = []
    cluster = Harness(nodes=[node("n-0"), node("n-1")], perform=perform)
    told = cluster.store.feed([kinds.POD, kinds.EVENT])
    cluster.apply(*_pods())
    cluster.run(20)
    for value in ("true", None):
        body = {"metadata": {"annotations": {FAIL: value}}}
        cluster.store.perform(Write(Verb.PATCH, kinds.NODE, "", "n-0", body, patch_type=PatchType.MERGE))
        cluster.run(120)
    assert sum(conforming) > 50
    return [_spelled(change) for change in told.drain()]


def _spelled(change: Change) -> tuple[str, int, bytes]:
    metadata = change.doc["metadata"]
    return change.happened.value, int(metadata["resourceVersion"]), repr(change.doc).encode()


def test_what_conforms_is_stored_as_if_it_had_been_decoded() -> None:
    assert _played(trusting=True) == _played(trusting=False)
