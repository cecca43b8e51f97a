"""Jobs and groups in questions about what would happen."""

from __future__ import annotations

import pytest

from fairlead.core.engine.what_if.answers import workload_of
from fairlead.core.model.flow import Doc
from fairlead.errors import BadRequest
from fairlead.volcano.jobs.what_if import OWNERS, awaited_by

GROUP: Doc = {"kind": "PodGroup", "apiVersion": "scheduling.volcano.sh/v1beta1", "metadata": {"name": "g"}}


def pod(task: str = "w", owner: str = "batch.volcano.sh/v1alpha1") -> Doc:
    return {
        "metadata": {
            "namespace": "default",
            "name": f"j-{task}",
            "ownerReferences": [{"kind": "Job", "apiVersion": owner, "name": "j", "controller": True}],
            "annotations": {"scheduling.k8s.io/group-name": "g", "volcano.sh/task-spec": task},
        }
    }


def test_a_pod_of_a_job_waits_until_its_group_is_let_into_its_queue() -> None:
    awaited = awaited_by(pod(), [GROUP])
    assert awaited is not None
    assert awaited.key == "default/g"
    phases = ("Pending", "Inqueue", "Running", "Completed")
    assert [awaited.lets_in({"status": {"phase": phase}}) for phase in phases] == [False, True, True, False]
    assert not awaited.lets_in({"metadata": {}})


def test_pods_of_plain_jobs_and_of_groups_outside_the_question_wait_for_nothing() -> None:
    assert awaited_by(pod(owner="batch/v1"), [GROUP]) is None
    assert awaited_by(pod(), []) is None


def test_a_job_is_changed_task_by_task() -> None:
    form = OWNERS["batch.volcano.sh"]
    pods = [pod("a"), pod("b"), pod("b")]
    assert form.templates(pods, [{"spec": {"x": at}} for at in (1, 2, 2)]) == {
        "spec": {"tasks": [{"name": task, "template": {"spec": {"x": at}}} for at, task in enumerate("ab", 1)]}
    }
    assert form.scaled(pods, 1) == {
        "spec": {"minAvailable": 1, "tasks": [{"name": "a", "replicas": 1}, {"name": "b", "replicas": 0}]}
    }


def test_objects_of_which_nobody_makes_pods_are_refused_with_what_a_job_needs() -> None:
    with pytest.raises(BadRequest) as refused:
        workload_of({"objects": [{**GROUP, "metadata": {"name": "g", "namespace": "default"}}]})
    assert str(refused.value) == (
        "objects: nobody makes pods of them, so nothing would be scheduled; a Volcano Job needs its queue"
    )
