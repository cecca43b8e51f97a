"""Which volume a claim gets: the smallest that offers what is requested. Documents in, a document out.

A volume that names the claim already is taken whatever its size. A claim that waits for its first consumer gets no
other than that here: its scheduler chooses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairlead.core.model.quantity import Quantity, QuantityError, read_quantity
from fairlead.core.model.selectors import SelectorError, selector_from_document
from fairlead.core.model.storage import CLASS_ANNOTATION, SELECTED_NODE, WAIT_FOR_FIRST_CONSUMER

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc


def class_of(doc: Doc) -> str:
    """The storage class of a claim or volume."""
    old = (doc["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION)
    return str(old if old is not None else (doc.get("spec") or {}).get("storageClassName") or "")


def refers_to(volume: Doc, claim: Doc) -> bool:
    """Whether a volume is promised to this claim, by name if not yet by uid."""
    reference = volume["spec"].get("claimRef") or {}
    wanted, metadata = reference.get("uid") or "", claim["metadata"]
    same_name = (reference.get("namespace"), reference.get("name")) == (metadata["namespace"], metadata["name"])
    return same_name and wanted in ("", metadata["uid"])


def waits_for_consumer(storage_class: Doc | None) -> bool:
    return (storage_class or {}).get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER


def selected_node(claim: Doc) -> str:
    return str((claim["metadata"].get("annotations") or {}).get(SELECTED_NODE) or "")


def best_volume(claim: Doc, volumes: Iterable[Doc], *, only_promised: bool) -> Doc | None:
    fitting = []
    for volume in volumes:
        if volume["spec"].get("claimRef"):
            if refers_to(volume, claim) and _is_of_the_same_mode(volume, claim):
                return volume
        elif not only_promised and _fits(volume, claim):
            fitting.append(volume)
    return min(fitting, key=lambda one: (_capacity(one).nanos, one["metadata"]["name"]), default=None)


def _fits(volume: Doc, claim: Doc) -> bool:
    if volume["metadata"].get("deletionTimestamp") or (volume.get("status") or {}).get("phase") != "Available":
        return False
    if class_of(volume) != class_of(claim) or not _is_of_the_same_mode(volume, claim):
        return False
    if not set(claim["spec"].get("accessModes") or ()) <= set(volume["spec"].get("accessModes") or ()):
        return False
    return _capacity(volume) >= requested(claim) and _is_selected(volume, claim)


def _is_selected(volume: Doc, claim: Doc) -> bool:
    selector = claim["spec"].get("selector")
    if selector is None:
        return True
    try:
        return selector_from_document(selector).matches(volume["metadata"].get("labels") or {})
    except SelectorError:
        return False


def _is_of_the_same_mode(volume: Doc, claim: Doc) -> bool:
    return bool(volume["spec"].get("volumeMode", "Filesystem") == claim["spec"].get("volumeMode", "Filesystem"))


def requested(claim: Doc) -> Quantity:
    return _storage((claim["spec"].get("resources") or {}).get("requests"))


def _capacity(volume: Doc) -> Quantity:
    return _storage(volume["spec"].get("capacity"))


def _storage(resources: Doc | None) -> Quantity:
    try:
        return read_quantity((resources or {}).get("storage"))
    except QuantityError:
        return Quantity(0)
