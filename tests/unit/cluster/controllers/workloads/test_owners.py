"""KnownOwners: which objects a workload controller looks after, and visits because of them or their pods."""

from __future__ import annotations

from fairlead.cluster.controllers.workloads.owners import Key, KnownOwners
from fairlead.cluster.controllers.workqueue import Workqueue
from fairlead.cluster.controllers.writes import identity
from fairlead.core.model.flow import Change, Doc, Happened
from fairlead.core.model.kinds import REPLICA_SET


def test_an_object_with_the_name_of_a_deleted_one_is_another_owner() -> None:
    queue: Workqueue[Key] = Workqueue()
    known = KnownOwners(queue)
    first, second = _replica_set("one"), _replica_set("two")
    known.observe(Change(Happened.ADDED, REPLICA_SET, first))
    known.observe(Change(Happened.DELETED, REPLICA_SET, first))
    own = known.observe(Change(Happened.ADDED, REPLICA_SET, second))
    assert own == identity(second)
    assert (known.knows(first), known.knows(second)) == (False, True)
    assert (known.visit(identity(first)), known.visit(identity(second))) == (False, True)


def _replica_set(uid: str) -> Doc:
    return {"metadata": {"name": "web", "namespace": "default", "uid": uid}, "spec": {}}
