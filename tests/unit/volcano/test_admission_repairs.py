"""What Volcano's webhooks let pass: refused here by default, kept with the original's quirks."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from fairlead.cluster.admission.hooks import kind_hooks
from fairlead.cluster.admission.webhook_denial import Denied
from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import Doc, PatchType, Verb, Write
from fairlead.errors import Invalid
from fairlead.volcano.controller_settings import VolcanoSettings
from fairlead.volcano.kinds import VC_CRON_JOB, VC_JOB, VC_JOB_FLOW, VC_JOB_TEMPLATE, VC_POD_GROUP, VC_QUEUE
from fairlead.volcano.records.quirks import FIXED, ORIGINAL, Quirks


def store(quirks: Quirks = FIXED) -> Store:
    made = Store(clock=lambda: 0.0, rng=Random(1), hooks=kind_hooks([VolcanoSettings(quirks=quirks)]))
    for name, parent in (("root", ""), ("default", "root"), ("inner", "root"), ("leaf", "inner")):
        create(
            made,
            VC_QUEUE,
            {"metadata": {"name": name}, "spec": {"weight": 1, **({"parent": parent} if parent else {})}},
        )
        state(made, name, "Open")
    return made


def create(target: Store, kind: Any, doc: Doc, warnings: list[str] | None = None) -> Doc:
    namespace = "default" if kind.namespaced else ""
    body = {"apiVersion": kind.api_version, "kind": kind.kind, **doc}
    return target.perform(Write(Verb.CREATE, kind, namespace, doc["metadata"]["name"], body=body), warnings=warnings)


def state(target: Store, name: str, word: str) -> None:
    body = {"status": {"state": word}}
    target.perform(Write(Verb.PATCH, VC_QUEUE, "", name, body=body, subresource="status", patch_type=PatchType.MERGE))


def spec(**task: Any) -> Doc:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}
    return {"tasks": [{"name": "w", "replicas": 1, "template": template, **task}]}


def job(**task: Any) -> Doc:
    return {"metadata": {"name": "job"}, "spec": spec(**task)}


def test_a_task_may_restart_without_limit() -> None:
    assert create(store(), VC_JOB, job(maxRetry=-1))["spec"]["tasks"][0]["maxRetry"] == -1
    with pytest.raises(Invalid, match="should be greater than or equal to 0"):
        create(store(ORIGINAL), VC_JOB, job(maxRetry=-1))
    with pytest.raises(Invalid, match="should be greater than or equal to 0"):
        create(store(), VC_JOB, job(maxRetry=-2))


def test_the_status_of_a_job_that_restarts_without_limit_can_be_written() -> None:
    made = store()
    create(made, VC_JOB, job(maxRetry=-1))
    body = {"status": {"state": {"phase": "Running"}, "running": 1}}
    write = Write(Verb.PATCH, VC_JOB, "default", "job", body=body, subresource="status", patch_type=PatchType.MERGE)
    assert made.perform(write)["status"]["state"]["phase"] == "Running"


def test_a_status_that_breaks_its_schema_is_refused_though_the_spec_stays() -> None:
    made = store()
    create(made, VC_JOB, job())
    body = {"status": {"state": {"phase": "Dancing"}, "running": -1}}
    write = Write(Verb.PATCH, VC_JOB, "default", "job", body=body, subresource="status", patch_type=PatchType.MERGE)
    with pytest.raises(Invalid, match=r"status.running.*greater than or equal to 0.*status.state.phase.*Dancing"):
        made.perform(write)


def test_the_action_of_an_exit_code_must_be_one() -> None:
    odd = job(policies=[{"exitCode": 3, "action": "Dance"}])
    with pytest.raises(Denied, match=r'spec.tasks.policies: Invalid value: "Dance": invalid policy action'):
        create(store(), VC_JOB, odd)
    create(store(ORIGINAL), VC_JOB, odd)


@pytest.mark.parametrize("queue", ["root", "inner"])
def test_only_queues_without_children_take_pod_groups(queue: str) -> None:
    group = {"metadata": {"name": "g"}, "spec": {"minMember": 1, "queue": queue}}
    with pytest.raises(Denied, match="only a queue without children takes PodGroups"):
        create(store(), VC_POD_GROUP, group)
    create(store(ORIGINAL), VC_POD_GROUP, group)


def test_a_queue_stays_while_groups_are_in_it() -> None:
    for quirks in (FIXED, ORIGINAL):
        target = store(quirks)
        create(target, VC_POD_GROUP, {"metadata": {"name": "g"}, "spec": {"minMember": 1, "queue": "leaf"}})
        going = Write(Verb.DELETE, VC_QUEUE, "", "leaf")
        if quirks is FIXED:
            with pytest.raises(Denied, match="it has 1 PodGroups: default/g"):
                target.perform(going)
            target.perform(Write(Verb.DELETE, VC_POD_GROUP, "default", "g"))
        target.perform(going)


@pytest.mark.parametrize("kind", [VC_CRON_JOB, VC_JOB_TEMPLATE])
def test_a_template_whose_job_would_be_refused_is(kind: Any) -> None:
    bad = {**spec(), "minAvailable": 9, "queue": "not-there-yet"}
    body = {"schedule": "* * * * *", "jobTemplate": {"spec": bad}} if kind is VC_CRON_JOB else bad
    doc = {"metadata": {"name": "t"}, "spec": body}
    with pytest.raises(Denied, match="its Job would be refused: job 'minAvailable' should not be greater"):
        create(store(), kind, doc)
    create(store(ORIGINAL), kind, doc)
    bad.pop("minAvailable")
    create(store(), kind, doc)


def test_probes_and_patches_of_flows_are_warned_about() -> None:
    probe = {"taskStatusList": [{"taskName": "t", "phase": "Running"}]}
    flows = [{"name": "a", "patch": {"spec": {}}}, {"name": "b", "dependsOn": {"targets": ["a"], "probe": probe}}]
    doc = {"metadata": {"name": "f"}, "spec": {"flows": flows, "jobRetainPolicy": "retain"}}
    for quirks, count in ((FIXED, 2), (ORIGINAL, 0)):
        warnings: list[str] = []
        create(store(quirks), VC_JOB_FLOW, doc, warnings)
        assert len([one for one in warnings if "not acted on" in one]) == count


@pytest.mark.parametrize("word", ["Closing", "Unknown"])
def test_a_queue_gets_no_state_that_it_cannot_come_to(word: str) -> None:
    target = store()
    with pytest.raises(Denied, match=f"queue leaf cannot be made {word}: open or close it by a Command"):
        state(target, "leaf", word)
    state(store(ORIGINAL), "leaf", word)
    state(target, "leaf", "Closed")
    state(target, "leaf", "Open")
    create(target, VC_POD_GROUP, {"metadata": {"name": "g"}, "spec": {"minMember": 1, "queue": "leaf"}})
    state(target, "leaf", "Closing")
