"""A pod that a finalizer keeps after its deletion costs nothing while it waits."""

from __future__ import annotations

from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import POD
from fairlead.testing.builders import pod
from fairlead.testing.harness import Harness


def test_a_deleted_pod_with_a_finalizer_waits_without_work() -> None:
    cluster = Harness(nodes=1)
    doc = pod("held").doc()
    doc["metadata"]["finalizers"] = ["example.com/hold"]
    cluster.store.perform(Write(Verb.CREATE, POD, "default", "held", body=doc))
    cluster.run(5)
    cluster.store.perform(Write(Verb.DELETE, POD, "default", "held"))
    cluster.run(60)  # virtual time does not pass a moment at which somebody always has something to do
    there = cluster.get(POD, "held")
    assert there is not None
    assert there["metadata"]["deletionGracePeriodSeconds"] == 0
    version = there["metadata"]["resourceVersion"]
    cluster.run(600)
    assert cluster.store.read(POD, "default", "held")["metadata"]["resourceVersion"] == version
    cluster.patch(POD, "held", {"metadata": {"finalizers": None}})
    cluster.run(1)
    assert cluster.get(POD, "held") is None
