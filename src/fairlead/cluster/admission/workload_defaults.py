"""Defaults of the kinds that make pods: apps, batch and ReplicationController."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fairlead.cluster.admission.pod_defaults import default_template
from fairlead.core.model import kinds as k

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind


def _with_template(spec: Doc, **defaults: object) -> Doc:
    out: Doc = {**defaults, **spec}
    out["template"] = default_template(out.get("template", {}))
    return out


def _deployment(doc: Doc) -> Doc:
    spec = _with_template(
        doc.get("spec", {}), replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600, strategy={}
    )
    strategy = {"type": "RollingUpdate", **spec["strategy"]}
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {"maxUnavailable": "25%", "maxSurge": "25%", **strategy.get("rollingUpdate", {})}
    return {**doc, "spec": {**spec, "strategy": strategy}}


def _replica_set(doc: Doc) -> Doc:
    return {**doc, "spec": _with_template(doc.get("spec", {}), replicas=1)}


def _replication_controller(doc: Doc) -> Doc:
    spec = _with_template(doc.get("spec", {}), replicas=1)
    labels = spec["template"].get("metadata", {}).get("labels")
    if labels and not spec.get("selector"):
        spec["selector"] = labels
    return _labelled_like_template({**doc, "spec": spec})


def _labelled_like_template(doc: Doc) -> Doc:
    labels = doc["spec"]["template"].get("metadata", {}).get("labels")
    if not labels or doc["metadata"].get("labels"):
        return doc
    return {**doc, "metadata": {**doc["metadata"], "labels": labels}}


def _stateful_set(doc: Doc) -> Doc:
    spec = _with_template(
        doc.get("spec", {}),
        replicas=1,
        revisionHistoryLimit=10,
        podManagementPolicy="OrderedReady",
        updateStrategy={},
        persistentVolumeClaimRetentionPolicy={},
    )
    strategy = {"type": "RollingUpdate", **spec["updateStrategy"]}
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {"partition": 0, **strategy.get("rollingUpdate", {})}
    spec["updateStrategy"] = strategy
    retention = {"whenDeleted": "Retain", "whenScaled": "Retain", **spec["persistentVolumeClaimRetentionPolicy"]}
    spec["persistentVolumeClaimRetentionPolicy"] = retention
    if "volumeClaimTemplates" in spec:
        spec["volumeClaimTemplates"] = [_claim_template(claim) for claim in spec["volumeClaimTemplates"]]
    return {**doc, "spec": spec}


def _claim_template(claim: Doc) -> Doc:
    spec = {"volumeMode": "Filesystem", **claim.get("spec", {})}
    named = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return {**named, **claim, "spec": spec, "status": {"phase": "Pending", **claim.get("status", {})}}


def _daemon_set(doc: Doc) -> Doc:
    spec = _with_template(doc.get("spec", {}), revisionHistoryLimit=10, updateStrategy={})
    strategy = {"type": "RollingUpdate", **spec["updateStrategy"]}
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {"maxUnavailable": 1, "maxSurge": 0, **strategy.get("rollingUpdate", {})}
    return {**doc, "spec": {**spec, "updateStrategy": strategy}}


def _job(doc: Doc) -> Doc:
    return {**doc, "spec": _job_spec(doc.get("spec", {}))}


def _job_spec(spec: Doc) -> Doc:
    counts = {"completions": 1, "parallelism": 1} if not {"completions", "parallelism"} & spec.keys() else {}
    replacement = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    out = {
        "parallelism": 1,
        "backoffLimit": 2147483647 if "backoffLimitPerIndex" in spec else 6,
        **counts,
        "completionMode": "NonIndexed",
        "suspend": False,
        "manualSelector": False,
        "podReplacementPolicy": replacement,
        **spec,
    }
    return {**out, "template": default_template(out.get("template", {}))}


def _cron_job(doc: Doc) -> Doc:
    spec = {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
        **doc.get("spec", {}),
    }
    template = spec.get("jobTemplate", {})
    inner = template.get("spec", {})
    inner = {**inner, "template": default_template(inner.get("template", {}))}
    return {**doc, "spec": {**spec, "jobTemplate": {**template, "spec": inner}}}


def _pod_template(doc: Doc) -> Doc:
    return {**doc, "template": default_template(doc.get("template", {}))}


WORKLOAD_DEFAULTS: dict[Kind, Callable[[Doc], Doc]] = {
    k.DEPLOYMENT: _deployment,
    k.REPLICA_SET: _replica_set,
    k.REPLICATION_CONTROLLER: _replication_controller,
    k.STATEFUL_SET: _stateful_set,
    k.DAEMON_SET: _daemon_set,
    k.JOB: _job,
    k.CRON_JOB: _cron_job,
    k.POD_TEMPLATE: _pod_template,
}


def own_job(doc: Doc) -> Doc:
    """Mark a new job's pods as its own: labels with its uid and name, and the selector that goes with them."""
    spec, metadata = doc["spec"], doc["metadata"]
    if spec.get("manualSelector"):
        return doc
    uid, name = metadata.get("uid", ""), metadata["name"]
    template = spec["template"]
    labels = {
        **template.get("metadata", {}).get("labels", {}),
        "controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
    }
    selector = spec.get("selector", {})
    selector = {
        **selector,
        "matchLabels": {**selector.get("matchLabels", {}), "batch.kubernetes.io/controller-uid": uid},
    }
    marked = {**template, "metadata": {**template.get("metadata", {}), "labels": labels}}
    return _labelled_like_template({**doc, "spec": {**spec, "selector": selector, "template": marked}})


def mark_daemon_set(doc: Doc, old: Doc | None = None) -> Doc:
    """Keep the annotation that counts a DaemonSet's templates, as older clients expect."""
    key = "deprecated.daemonset.template.generation"
    count = 1
    if old is not None:
        count = int(old["metadata"].get("annotations", {}).get(key, "1"))
        count += old["spec"].get("template") != doc["spec"].get("template")
    metadata = doc["metadata"]
    return {
        **doc,
        "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), key: str(count)}},
    }
