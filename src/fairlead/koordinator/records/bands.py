"""Priority bands and classes of service: which band a pod belongs to, and under which names it requests resources.

A band is said by a label, else by the number of the pod's priority. A pod of no band counts as prod or batch by its
class of service. Pods of the bands mid and batch request resources of their own names, which the rules about `cpu` and
`memory` then read instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod

PROD, MID, BATCH, FREE, NONE = "koord-prod", "koord-mid", "koord-batch", "koord-free", ""
BATCH_CPU, BATCH_MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
MID_CPU, MID_MEMORY = "kubernetes.io/mid-cpu", "kubernetes.io/mid-memory"
QOS_LABEL = "koordinator.sh/qosClass"
PRIORITY_CLASS_LABEL = "koordinator.sh/priority-class"
SUB_PRIORITY_LABEL = "koordinator.sh/priority"

_RANGES = ((9000, 9999, PROD), (7000, 7999, MID), (5000, 5999, BATCH), (3000, 3999, FREE))
_BANDS = frozenset({PROD, MID, BATCH, FREE})
_CLASSES = frozenset({"LSE", "LSR", "LS", "BE", "SYSTEM"})
_CLASS_OF_QUALITY = {"Guaranteed": "LSR", "Burstable": "LS", "BestEffort": "BE"}
_OWN_NAMES = {
    MID: {"cpu": MID_CPU, "memory": MID_MEMORY},
    BATCH: {"cpu": BATCH_CPU, "memory": BATCH_MEMORY},
    FREE: {},
}


def class_by(labels: Mapping[str, str]) -> str:
    """The class of service that labels name; the empty text if they name none that is known."""
    named = labels.get(QOS_LABEL, "")
    return named if named in _CLASSES else ""


def own_band_by(labels: Mapping[str, str], priority: int | None) -> str:
    """The band by label or number. A label with an unknown value means none, whatever the number is."""
    named = labels.get(PRIORITY_CLASS_LABEL)
    if named is not None:
        return named if named in _BANDS else NONE
    if priority is None:
        return NONE
    return next((band for low, high, band in _RANGES if low <= priority <= high), NONE)


def band_by(labels: Mapping[str, str], priority: int | None, quality: str) -> str:
    """The band of a pod with these labels, this number and this quality of service; one without a band of its own
    counts by its class of service, which without a label follows from its quality."""
    band = own_band_by(labels, priority)
    if band:
        return band
    named = class_by(labels) or _CLASS_OF_QUALITY.get(quality, "")
    return BATCH if named == "BE" else PROD if named else NONE


def service_class(pod: Pod) -> str:
    """The class of service that a pod's label names."""
    return class_by(pod.labels)


def own_band(pod: Pod) -> str:
    """The band of a pod by label or number."""
    return own_band_by(pod.labels, pod.shape.priority if pod.shape.has_priority else None)


def band_of(pod: Pod) -> str:
    """The band of a pod, by default that of its class of service."""
    return band_by(pod.labels, pod.shape.priority if pod.shape.has_priority else None, pod.shape.quality)


def name_in_band(band: str, resource: str) -> str:
    """The name under which pods of a band request a resource; the empty text if they cannot."""
    if band in (PROD, NONE):
        return resource
    return _OWN_NAMES[band].get(resource, "")
