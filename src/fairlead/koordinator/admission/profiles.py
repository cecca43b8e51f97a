"""ClusterColocationProfiles: what they make of a new pod before it gets its defaults.

Profiles that select the pod by its labels and its namespace's are applied in the order of their names. If any did, the
pod's cpu and memory get the names of its band: a pod of koord-batch then requests kubernetes.io/batch-cpu in whole
thousandths of a core. A profile with a probability takes the pods whose name hashes below it, so that the same pod is
always treated alike; the original throws dice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairlead.cluster.admission.problems import ValidationProblems
from fairlead.cluster.admission.webhook_denial import Denied
from fairlead.cluster.store.quantities import canonical, nanos
from fairlead.cluster.store.schema import WrongType, check_types, struct_of
from fairlead.cluster.store.strategic import merge_strategically
from fairlead.core.model import kinds as k
from fairlead.core.model.hashes import fnv32a
from fairlead.core.model.quality import quality_of_service
from fairlead.core.model.selectors import SelectorError, selector_from_document
from fairlead.errors import BadRequest
from fairlead.koordinator.kinds import KOORD_COLOCATION_PROFILE
from fairlead.koordinator.records.bands import (
    BATCH_CPU,
    BATCH_MEMORY,
    QOS_LABEL,
    SUB_PRIORITY_LABEL,
    band_by,
    name_in_band,
)

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView

SKIP_RESOURCES = "config.koordinator.sh/skip-update-resources"
EXTENDED_SPEC = "node.koordinator.sh/extended-resource-spec"
_MILLI = 10**6
_SECTIONS = ("requests", "limits")


WEBHOOK = "mpod-create.koordinator.sh"
_WRONG_PROBABILITY = "probability must be a whole number or a percentage from 0 to 100"


def admit_profile(profile: Doc) -> None:
    """Refuse a profile that no pod could be created under. The original finds out with the first pod, and then with
    every pod of the cluster. Raises Invalid."""
    spec, problems = profile.get("spec") or {}, ValidationProblems()
    if spec.get("probability") is not None and _percent(spec["probability"]) is None:
        problems.invalid("spec.probability", spec["probability"], _WRONG_PROBABILITY)
    for field in ("selector", "namespaceSelector"):
        try:
            _matches(spec.get(field) or {}, {})
        except (SelectorError, TypeError, AttributeError, KeyError) as error:
            problems.invalid(f"spec.{field}", spec[field], str(error) or "is no label selector")
    for field in ("labels", "annotations", "labelKeysMapping", "annotationKeysMapping", "labelSuffixes"):
        if not _is_text_map(spec.get(field)):
            problems.invalid(f"spec.{field}", spec[field], "must be a map of texts")
    if spec.get("patch") is not None:
        try:
            pod: Doc = {"metadata": {"name": "pod"}, "spec": {"containers": [{"name": "main"}]}}
            check_types(k.POD, merge_strategically(struct_of(k.POD), pod, spec["patch"]))
        except (BadRequest, WrongType, TypeError, AttributeError, KeyError, ValueError) as error:
            problems.invalid("spec.patch", spec["patch"], f"cannot be merged into a pod: {error}")
    problems.raise_if_any(KOORD_COLOCATION_PROFILE, profile["metadata"]["name"])


def _is_text_map(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _percent(given: Any) -> int | None:
    """A probability in percent; None if the value is not a whole number from 0 to 100."""
    text = str(given).removesuffix("%") if isinstance(given, str) and given.endswith("%") else given
    if isinstance(text, bool) or not (isinstance(text, int) or (isinstance(text, str) and text.isdecimal())):
        return None
    return int(text) if len(str(text)) <= 3 and 0 <= int(text) <= 100 else None


def with_profiles(view: DocView, pod: Doc) -> Doc:
    """A new pod as the profiles that select it want it. Raises Denied if one cannot be applied."""
    matching = [one for one in view.list(KOORD_COLOCATION_PROFILE) if _selects(view, one, pod)]
    if matching:
        matching.sort(key=lambda profile: profile["metadata"]["name"])
        for profile in matching:
            if _takes(profile, pod):
                pod = _applied(view, profile, pod)
        if not any(SKIP_RESOURCES in (one["metadata"].get("annotations") or {}) for one in matching):
            pod = _with_names_of_band(view, pod)
    return _with_extended_spec(pod)


def _selects(view: DocView, profile: Doc, pod: Doc) -> bool:
    spec, metadata = profile.get("spec") or {}, pod["metadata"]
    if spec.get("namespaceSelector") is not None:
        namespace = view.get(k.NAMESPACE, "", metadata.get("namespace") or "") or {"metadata": {}}
        if not _matches(spec["namespaceSelector"], namespace["metadata"].get("labels") or {}):
            return False
    return spec.get("selector") is None or _matches(spec["selector"], metadata.get("labels") or {})


def _matches(selector: Doc, labels: Mapping[str, str]) -> bool:
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return True
    return bool(selector_from_document(selector).matches(labels))


def _takes(profile: Doc, pod: Doc) -> bool:
    given = (profile.get("spec") or {}).get("probability")
    if given is None:
        return True
    percent = _percent(given)
    if percent is None:
        raise Denied(WEBHOOK, f"{profile['metadata']['name']}: {_WRONG_PROBABILITY}: {given!r}")
    drawn = fnv32a(f"{profile['metadata']['name']}/{pod['metadata'].get('namespace')}/{pod['metadata']['name']}") % 100
    return percent == 100 or (percent != 0 and drawn <= percent)


def _applied(view: DocView, profile: Doc, pod: Doc) -> Doc:
    spec_of_profile = profile.get("spec") or {}
    labels = {**(pod["metadata"].get("labels") or {}), **(spec_of_profile.get("labels") or {})}
    notes = {**(pod["metadata"].get("annotations") or {}), **(spec_of_profile.get("annotations") or {})}
    for old, new in (spec_of_profile.get("labelKeysMapping") or {}).items():
        labels[new] = labels.get(old, "")
    for old, new in (spec_of_profile.get("annotationKeysMapping") or {}).items():
        notes[new] = notes.get(old, "")
    for key, suffix in (spec_of_profile.get("labelSuffixes") or {}).items():
        if key in labels:
            labels[key] += suffix
    spec = dict(pod.get("spec") or {})
    if spec_of_profile.get("schedulerName"):
        spec["schedulerName"] = spec_of_profile["schedulerName"]
    if spec_of_profile.get("qosClass"):
        labels[QOS_LABEL] = spec_of_profile["qosClass"]
    if spec_of_profile.get("priorityClassName"):
        spec = _with_priority(view, spec, spec_of_profile["priorityClassName"])
    if spec_of_profile.get("koordinatorPriority") is not None:
        labels[SUB_PRIORITY_LABEL] = str(spec_of_profile["koordinatorPriority"])
    changed = {**pod, "metadata": {**pod["metadata"], "labels": labels, "annotations": notes}, "spec": spec}
    for part in ("labels", "annotations"):
        if not changed["metadata"][part]:
            del changed["metadata"][part]
    patch = spec_of_profile.get("patch")
    return merge_strategically(struct_of(k.POD), changed, patch) if patch else changed


def _with_priority(view: DocView, spec: Doc, name: str) -> Doc:
    found = view.get(k.PRIORITY_CLASS, "", name)
    if found is None:
        raise Denied(WEBHOOK, f'priorityclasses.scheduling.k8s.io "{name}" not found')
    rest = {key: value for key, value in spec.items() if key not in ("priority", "preemptionPolicy")}
    return {**rest, "priorityClassName": name}


# ---- resources ----


def _with_names_of_band(view: DocView, pod: Doc) -> Doc:
    spec = pod["spec"]
    labels = pod["metadata"].get("labels") or {}
    band = band_by(labels, _priority(view, spec), quality_of_service(spec))
    names = {name: name_in_band(band, name) for name in ("cpu", "memory")}
    names = {name: own for name, own in names.items() if own and own != name}
    if not names:
        return pod
    renamed = dict(spec)
    for group in ("initContainers", "containers"):
        if group in spec:
            renamed[group] = [_renamed_container(container, names) for container in spec[group]]
    if spec.get("overhead"):
        renamed["overhead"] = _renamed(spec["overhead"], names)
    return {**pod, "spec": renamed}


def _priority(view: DocView, spec: Doc) -> int | None:
    """The number that admission will give to the pod."""
    if spec.get("priorityClassName"):
        found = view.get(k.PRIORITY_CLASS, "", spec["priorityClassName"])
        return None if found is None else int(found["value"])
    given = spec.get("priority")
    return given if isinstance(given, int) else None


def _renamed_container(container: Doc, names: Mapping[str, str]) -> Doc:
    resources = container.get("resources")
    if not resources:
        return container
    changed = {**resources, **{part: _renamed(resources[part], names) for part in _SECTIONS if resources.get(part)}}
    limits = changed.get("limits") or {}
    missing = {
        own: limits[own] for own in names.values() if own in limits and own not in (changed.get("requests") or {})
    }
    if missing:
        changed["requests"] = {**(changed.get("requests") or {}), **missing}
    return {**container, "resources": changed}


def _renamed(amounts: Mapping[str, Any], names: Mapping[str, str]) -> Doc:
    found: Doc = {name: value for name, value in amounts.items() if name not in names}
    for name, own in names.items():
        if name in amounts:
            found[own] = canonical(-(-nanos(amounts[name]) // _MILLI)) if name == "cpu" else amounts[name]
    return found


def _with_extended_spec(pod: Doc) -> Doc:
    """The annotation by which a node's agent knows what containers request of the band koord-batch."""
    containers: Doc = {}
    for container in (pod.get("spec") or {}).get("containers") or ():
        if (resources := container.get("resources")) and (own := _of_batch(resources)):
            containers[container.get("name", "")] = own
    if not containers:
        return pod
    text = json.dumps({"containers": containers}, separators=(",", ":"), sort_keys=True)
    notes = {**(pod["metadata"].get("annotations") or {}), EXTENDED_SPEC: text}
    return {**pod, "metadata": {**pod["metadata"], "annotations": notes}}


def _of_batch(resources: Doc) -> Doc:
    """What a container's requests and limits say of the band koord-batch."""
    found: Doc = {}
    for part in _SECTIONS:
        amounts = resources.get(part)
        if amounts and (BATCH_CPU in amounts or BATCH_MEMORY in amounts):
            found[part] = {name: canonical(amounts[name]) for name in (BATCH_CPU, BATCH_MEMORY) if name in amounts}
    return found
