"""Which pods Koordinator's webhook refuses: classes of service and bands that do not go together, and wrong quotas.

    always      the mark of reserve pods; batch resources without BE; BE of no band or prod, LSR of any but prod;
                LSR and LSE without whole cores; a pod of a quota that is a parent
    when new    a pod beyond what its quota's annotation admits
    on update   a changed class of service, band, sub-priority, or preemptibility

A pod that carries no label of Koordinator's and requests nothing of its names is looked at in no detail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.cluster.admission.problems import ValidationProblems
from fairlead.cluster.admission.webhook_denial import Denied, all_of
from fairlead.core.model.quantity import parse_quantity
from fairlead.core.model.requests import pod_requests
from fairlead.koordinator.kinds import KOORD_ELASTIC_QUOTA
from fairlead.koordinator.quotas.admission import all_quotas, is_parent, labels_of, namespaces_of, notes_of
from fairlead.koordinator.quotas.pod_admission import check_limits
from fairlead.koordinator.records.bands import (
    BATCH,
    BATCH_CPU,
    BATCH_MEMORY,
    FREE,
    MID,
    NONE,
    PROD,
    QOS_LABEL,
    SUB_PRIORITY_LABEL,
    class_by,
    own_band_by,
)
from fairlead.koordinator.records.quotas import DEFAULT, NAME_LABEL, PREEMPTIBLE_LABEL
from fairlead.koordinator.records.reservations import RESERVE_POD

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView

_CORE = 10**9
_APART = {"BE": (NONE, PROD), "LSR": (NONE, MID, BATCH, FREE)}
_REQUESTS = "pod.spec.containers[*].resources.requests"


class QuotaOfPods:
    """Finds the quota of a pod. It remembers in which namespace a quota was, because pods name quotas alone."""

    def __init__(self) -> None:
        self._homes: dict[str, str] = {}

    def of(self, view: DocView, pod: Doc) -> Doc | None:
        name = labels_of(pod).get(NAME_LABEL)
        if name:
            return self._named(view, name)
        if not any(view.list(KOORD_ELASTIC_QUOTA)):
            return None
        home = pod["metadata"].get("namespace") or ""
        own = view.get(KOORD_ELASTIC_QUOTA, home, home)
        if own is not None:
            return own
        listed = sorted(all_quotas(view).items())
        return next((quota for _, quota in listed if home in namespaces_of(quota)), None)

    def _named(self, view: DocView, name: str) -> Doc | None:
        if name in self._homes:
            found = view.get(KOORD_ELASTIC_QUOTA, self._homes[name], name)
            if found is not None:
                return found
        known = all_quotas(view)
        self._homes = {one: quota["metadata"].get("namespace") or "" for one, quota in known.items()}
        return known.get(name)


def admit_pod(view: DocView, quotas: QuotaOfPods, new: Doc, old: Doc | None = None) -> None:
    """Raises Denied if Koordinator's webhook would refuse the pod, or the change of it."""
    if RESERVE_POD in notes_of(new):
        raise _denied(f"annotations.{RESERVE_POD}: Forbidden: cannot set in annotations")
    _check_service(new, old)
    if old is not None and labels_of(old).get(PREEMPTIBLE_LABEL) != labels_of(new).get(PREEMPTIBLE_LABEL):
        raise _denied("Preemptible label is forbidden modify now.")
    quota = quotas.of(view, new)
    if quota is not None and quota["metadata"]["name"] != DEFAULT and is_parent(quota):
        names = f"quota:{quota['metadata']['name']}, pod:{new['metadata']['name']}"
        raise _denied(f"pod can not be linked to a parentQuotaGroup,{names}")
    if quota is not None and old is None:
        check_limits(view, quota, new)


def _denied(why: str) -> Denied:
    return Denied("vpod.koordinator.sh", why)


def _check_service(new: Doc, old: Doc | None) -> None:
    labels, batch = labels_of(new), _asks_for_batch(new["spec"])
    named = class_by(labels)
    if old is None and not named and not batch:
        return
    problems = ValidationProblems()
    if old is not None:
        _check_step(problems, new, old)
    if named != "BE" and batch:
        text = "must specify koordinator QoS BE with koordinator colocation resources"
        problems.add("FieldValueRequired", f"labels.{QOS_LABEL}", f"Required value: {text}")
    if named in _APART and (band := own_band_by(labels, new["spec"].get("priority"))) in _APART[named]:
        text = f"{QOS_LABEL}={named} and priorityClass={band} cannot be used in combination"
        problems.add("FieldValueForbidden", "Pod", f"Forbidden: {text}")
    if named in ("LSR", "LSE"):
        _check_cores(problems, new["spec"])
    if problems.found:
        raise _denied(all_of(problems))


def _check_step(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    before, after = labels_of(old), labels_of(new)
    bands = own_band_by(before, old["spec"].get("priority")), own_band_by(after, new["spec"].get("priority"))
    steps = (
        (f"labels.{QOS_LABEL}", class_by(before), class_by(after)),
        ("spec.priority", *bands),
        (f"labels.{SUB_PRIORITY_LABEL}", before.get(SUB_PRIORITY_LABEL, ""), after.get(SUB_PRIORITY_LABEL, "")),
    )
    for path, was, is_now in steps:
        if was != is_now:
            problems.invalid(path, is_now, "field is immutable")


def _asks_for_batch(spec: Doc) -> bool:
    for group in ("containers", "initContainers"):
        for container in spec.get(group) or ():
            requests = (container.get("resources") or {}).get("requests")
            if requests and (BATCH_CPU in requests or BATCH_MEMORY in requests):
                return True
    return False


def _check_cores(problems: ValidationProblems, spec: Doc) -> None:
    asked = pod_requests(spec, {}).exact.get("cpu", 0)
    if not asked:
        problems.add("FieldValueRequired", _REQUESTS, "Required value: LSR Pod must declare the requested CPUs")
    elif asked % _CORE:
        shown = str(parse_quantity(f"{asked // 10**6}m"))
        problems.invalid(_REQUESTS, shown, "the requested CPUs of LSR Pod must be integer")
