"""The controller of Volcano Jobs, step by step: which changes it answers with a sync, and which it need not."""

from __future__ import annotations

import pytest

from fairlead.core.model.flow import Change, Doc, Reply, Verb, Write
from fairlead.core.model.kinds import POD
from fairlead.errors import AlreadyExists
from fairlead.volcano.jobs.job_groups import group_name
from fairlead.volcano.jobs.jobs import VolcanoJobs
from fairlead.volcano.kinds import VC_JOB, VC_POD_GROUP, VC_QUEUE
from tests.support.controllers import Documents, created, patched, refused, settle


class Counting(VolcanoJobs):
    """Counts its visits."""

    visits = 0

    def visit(self, key: tuple[str, str], now: float) -> list[Write]:
        self.visits += 1
        return list(super().visit(key, now))


class JobWorld:
    """A queue, the controller, and an API that does what it is told."""

    def __init__(self) -> None:
        self.documents = Documents()
        self.controller = Counting(self.documents, announce=False)
        self.step(self.documents.put(VC_QUEUE, {"metadata": {"name": "default"}, "spec": {}}))

    def step(self, *changes: Change, replies: list[Reply] | None = None) -> list[Write]:
        return settle(self.controller, 0.0, *changes, replies=replies or ())

    def submit(self, *, min_available: int) -> list[Write]:
        template = {"spec": {"containers": [{"name": "main", "image": "x"}]}}
        spec = {"minAvailable": min_available, "queue": "default", "tasks": [{"name": "t", "replicas": 1}]}
        spec["tasks"][0]["template"] = template
        return self.step(self.documents.put(VC_JOB, {"metadata": {"namespace": "a", "name": "j"}, "spec": spec}))

    @property
    def job(self) -> Doc:
        job = self.documents.get(VC_JOB, "a", "j")
        assert job is not None
        return job

    def carry_out(self, writes: list[Write]) -> list[Write]:
        """Answer some writes well and tell of them; returns what comes of it."""
        replies, changes = [], []
        for write in writes:
            if write.verb is Verb.CREATE:
                reply, change = created(self.documents, write, write.name)
            else:
                change = self.documents.put(VC_JOB, patched(self.job, write))
                reply = Reply(write, change.doc)
            replies.append(reply)
            changes.append(change)
        return self.step(*changes, replies=replies)

    def let_in(self) -> Change:
        group = self.documents.get(VC_POD_GROUP, "a", group_name(self.job))
        assert group is not None
        return self.documents.put(VC_POD_GROUP, {**group, "status": {"phase": "Inqueue"}})


@pytest.fixture
def world() -> JobWorld:
    return JobWorld()


def test_a_status_that_the_controller_wrote_itself_calls_for_no_other_sync(world: JobWorld) -> None:
    writes = world.submit(min_available=1)
    assert [write.kind for write in writes] == [VC_POD_GROUP, VC_JOB]
    assert not world.carry_out(writes)
    assert world.job["status"]["state"]["phase"] == "Pending"
    assert world.controller.visits == 1


def test_a_job_moves_on_when_its_new_phase_is_not_the_last(world: JobWorld) -> None:
    """A Job that needs no pods is Pending only for as long as it takes to write it."""
    world.carry_out(world.carry_out(world.submit(min_available=0)))
    assert world.job["status"]["state"]["phase"] == "Running"


def test_a_group_that_was_let_in_before_it_was_known_gets_its_pods(world: JobWorld) -> None:
    group, status = world.submit(min_available=1)
    created(world.documents, group, group.name)
    let_in = world.let_in()
    done = world.documents.put(VC_JOB, patched(world.job, status))
    taken = refused(group, AlreadyExists("podgroups already exists"))
    pods = world.step(let_in, done, replies=[taken, Reply(status, done.doc)])
    assert [(write.verb, write.kind) for write in pods] == [(Verb.CREATE, POD)]
