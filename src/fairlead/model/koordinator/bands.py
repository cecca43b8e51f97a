"""Priority bands and classes of service: which band a pod belongs to, and under which names it asks for resources.

A band is said by a label, else by the number of the pod's priority. A pod of no band counts as prod or batch by its
class of service. Pods of the bands mid and batch ask for resources of their own names, which the rules about `cpu` and
`memory` then read instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.model.pod import Pod

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


def service_class(pod: Pod) -> str:
    """The class of service that a pod's label names; the empty text if it names none that is known."""
    named = pod.labels.get(QOS_LABEL, "")
    return named if named in _CLASSES else ""


def own_band(pod: Pod) -> str:
    """The band of a pod by label or number. A label with an unknown value means none, whatever the number is."""
    named = pod.labels.get(PRIORITY_CLASS_LABEL)
    if named is not None:
        return named if named in _BANDS else NONE
    priority = pod.shape.priority
    if not pod.shape.has_priority:
        return NONE
    return next((band for low, high, band in _RANGES if low <= priority <= high), NONE)


def band_of(pod: Pod) -> str:
    """The band of a pod; one without counts by its class of service, which without a label follows from its quality."""
    band = own_band(pod)
    if band:
        return band
    named = service_class(pod) or _CLASS_OF_QUALITY.get(pod.shape.quality, "")
    return BATCH if named == "BE" else PROD if named else NONE


def name_in_band(band: str, resource: str) -> str:
    """The name under which pods of a band ask for a resource; the empty text if they cannot."""
    if band in (PROD, NONE):
        return resource
    return _OWN_NAMES[band].get(resource, "")
