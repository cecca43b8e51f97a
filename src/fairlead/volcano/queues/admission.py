"""What Volcano's admission webhooks do to Queues, PodGroups and pods, done by the server itself, in their words.

    create   hierarchy paths begin at root, groups without a queue get their namespace's
    check    guarantee <= deserved <= capability; a queue fits below its parent and beside its siblings
    delete   root and default stay, and so does a queue that has children

Jobs are in jobs/admission.py; PodGroups, JobFlows, CronJobs and HyperNodes in flows/admission.py. The webhooks that
write pods anew are not here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fairlead.cluster.admission.problems import ValidationProblems
from fairlead.cluster.admission.resources import check_amount
from fairlead.cluster.admission.webhook_denial import Denied, all_of
from fairlead.cluster.store.quantities import amount, canonical
from fairlead.core.model import kinds as k
from fairlead.volcano.kinds import VC_QUEUE
from fairlead.volcano.queues.tree_rules import admit_children, admit_place, children_of

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView

HIERARCHY, HIERARCHY_WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
QUEUE_OF_NAMESPACE = "scheduling.volcano.sh/queue-name"
_BUDGETS = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")
_ROOT, _DEFAULT = "root", "default"
_SCHEDULER = "volcano"


# ---- made different ----


def mutate_queue(doc: Doc) -> Doc:
    """A new queue: its path begins at the root; it gives back what it does not need; it weighs something."""
    spec = {"reclaimable": True, **doc.get("spec", {})}
    spec["weight"] = spec.get("weight") or 1
    metadata = doc["metadata"]
    notes = metadata.get("annotations") or {}
    path, weights = notes.get(HIERARCHY, ""), notes.get(HIERARCHY_WEIGHTS, "")
    if path and weights and not path.startswith(_ROOT):
        notes = {**notes, HIERARCHY: f"{_ROOT}/{path}", HIERARCHY_WEIGHTS: f"1/{weights}"}
        metadata = {**metadata, "annotations": notes}
    return {**doc, "metadata": metadata, "spec": spec}


def mutate_group(view: DocView, doc: Doc) -> Doc:
    """A new PodGroup that names no queue, or the default one, gets its namespace's."""
    if doc.get("spec", {}).get("queue") != _DEFAULT:
        return doc
    namespace = view.get(k.NAMESPACE, "", doc["metadata"].get("namespace", "")) or {}
    queue = (namespace.get("metadata", {}).get("annotations") or {}).get(QUEUE_OF_NAMESPACE)
    return doc if queue is None else {**doc, "spec": {**doc["spec"], "queue": queue}}


# ---- refused ----


def admit_queue(view: DocView, new: Doc, old: Doc | None) -> None:
    """Raises Denied if a queue may not be made or changed like that."""
    problems = ValidationProblems()
    _check_amounts(problems, new.get("spec", {}))
    state = (new.get("status") or {}).get("state") or "Open"
    if state not in ("Open", "Closed"):
        problems.invalid("requestBody.spec.state", state, "queue state must be in [Open Closed]")
    _check_hierarchy(problems, view, new)
    if problems:
        raise _denied_queue(all_of(problems))
    if old is None or _parent(old) != _parent(new):
        _in_its_words(admit_place, view, new)
    if old is not None and new["metadata"]["name"] == _ROOT and _resources(new) != _resources(old):
        text = "root queue's resource attributes (capability, deserved, guarantee) cannot be modified"
        raise _denied_queue(text)
    if new["metadata"]["name"] != _ROOT and (old is None or _claims(old) != _claims(new)):
        _in_its_words(admit_children, view, new)


def admit_queue_deletion(view: DocView, name: str) -> None:
    if name in (_DEFAULT, _ROOT):
        raise _denied_queue(f"`{name}` queue can not be deleted")
    children = [child["metadata"]["name"] for child in children_of(view, name)]
    if children:
        listed = ", ".join(children)
        raise _denied_queue(f"queue {name} can not be deleted because it has {len(children)} child queues: {listed}")


def admit_pod(doc: Doc) -> None:
    """A pod of Volcano's may say one thing of how many of its kind may be missing, and it must make sense."""
    notes = doc["metadata"].get("annotations")
    if not notes or doc.get("spec", {}).get("schedulerName") != _SCHEDULER:
        return
    given = [key for key in _BUDGETS if key in notes]
    for key in given:
        _check_budget(key, notes[key])
    if len(given) > 1:
        listed = " ".join(_BUDGETS)
        raise _denied_pod(f"not allow configure multiple annotations <[{listed}]> at same time")


def _denied_queue(why: str) -> Denied:
    return Denied("validatequeue.volcano.sh", why)


def _denied_pod(why: str) -> Denied:
    return Denied("validatepod.volcano.sh", why)


def _in_its_words(admit: Callable[[DocView, Doc], str], view: DocView, new: Doc) -> None:
    """Rules about the tree say what is wrong, or nothing."""
    why = admit(view, new)
    if why:
        raise _denied_queue(why)


# ---- one queue by itself ----


def _check_amounts(problems: ValidationProblems, spec: Doc) -> None:
    path = "requestBody.spec"
    capability, deserved = spec.get("capability") or {}, spec.get("deserved") or {}
    guarantee = (spec.get("guarantee") or {}).get("resource") or {}
    for section, listed in (("capability", capability), ("deserved", deserved), ("guarantee.resource", guarantee)):
        for name, value in sorted(listed.items()):
            check_amount(problems, f"{path}.{section}.{name}", name, value)
            if section == "guarantee.resource":
                _check_guarantee(problems, f"{path}.deserved.{name}", name, deserved.get(name), canonical(value))
    for name, value in sorted(deserved.items()):
        most = capability.get(name)
        if most is not None and amount(value) > amount(most):
            text = f"deserved[{name}]={canonical(value)} must be <= capability[{name}]={canonical(most)}"
            problems.invalid(f"{path}.deserved.{name}", canonical(value), text)


def _check_guarantee(problems: ValidationProblems, path: str, name: str, deserved: str | None, guarantee: str) -> None:
    if deserved is None:
        problems.invalid(path, "<nil>", f"deserved[{name}] must be >= guarantee[{name}]={guarantee}")
    elif amount(deserved) < amount(guarantee):
        said = canonical(deserved)
        problems.invalid(path, said, f"deserved[{name}]={said} must be >= guarantee[{name}]={guarantee}")


def _check_hierarchy(problems: ValidationProblems, view: DocView, queue: Doc) -> None:
    """Paths of the older hierarchy, which is in annotations: as many weights as steps, and no queue in the middle."""
    notes, where = queue["metadata"].get("annotations") or {}, "requestBody.metadata.annotations"
    path, weights = notes.get(HIERARCHY, ""), notes.get(HIERARCHY_WEIGHTS, "")
    if not path and not weights:
        return
    if len(path.split("/")) != len(weights.split("/")):
        problems.invalid(where, path, f"{HIERARCHY} must have the same length with {HIERARCHY_WEIGHTS}")
        return
    for weight in weights.split("/"):
        complaint = _weight_complaint(weight, weights)
        if complaint:
            problems.invalid(where, weights, complaint)
            return
    for other in view.list(VC_QUEUE):
        theirs = (other["metadata"].get("annotations") or {}).get(HIERARCHY, "")
        if other["metadata"]["name"] != queue["metadata"]["name"] and theirs.startswith(f"{path}/"):
            name = other["metadata"]["name"]
            problems.invalid(where, path, f"{path} is not allowed to be in the sub path of {theirs} of queue {name}")
            return


def _weight_complaint(weight: str, weights: str) -> str:
    try:
        number = float(weight)
    except ValueError:
        why = f'strconv.ParseFloat: parsing "{weight}": invalid syntax'
        return f"{weight} in the {weights} is invalid number: {why}"
    return "" if number > 0 else f"{weight} in the {weights} must be larger than 0"


def _check_budget(key: str, value: str) -> None:
    digits = value.replace("%", "")
    try:
        number = int(digits)
    except ValueError:
        why = f'strconv.Atoi: parsing "{digits}": invalid syntax'
        raise _denied_pod(f"invalid value {why} for {key}") from None
    if "%" not in value and number <= 0:
        raise _denied_pod(f'invalid value <"{value}"> for {key}, it must be a positive integer')
    if "%" in value and not 0 < number < 100:
        text = f'invalid value <"{value}"> for {key}, it must be a valid percentage which between 1% ~ 99%'
        raise _denied_pod(text)


# ---- what of a queue matters to others ----


def _parent(queue: Doc) -> str:
    return str(queue.get("spec", {}).get("parent") or "")


def _resources(queue: Doc) -> list[dict[str, object]]:
    spec = queue.get("spec", {})
    listed: tuple[Mapping[str, str] | None, ...] = (
        spec.get("capability"),
        spec.get("deserved"),
        (spec.get("guarantee") or {}).get("resource"),
    )
    return [{name: amount(value) for name, value in (each or {}).items()} for each in listed]


def _claims(queue: Doc) -> tuple[object, ...]:
    return _parent(queue), *_resources(queue)
