"""How records read documents: times, and what is said of a document that makes no sense.

Compiling a document gives either a record or a ModelError that names the object and the field, so that one
malformed object is skipped and reported and never stops the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

from fairlead.core.model.quantity import QuantityError, read_quantity, to_units
from fairlead.core.model.times import seconds_of

Record = TypeVar("Record")
MALFORMED = (AttributeError, KeyError, TypeError, ValueError)
"""What reading a document of the wrong shape raises."""

_MAPPINGS = (dict, Mapping)
"""Dictionaries first: asking whether something else is a Mapping takes ten times as long."""

EMPTY: Mapping[str, str] = {}
"""The labels and annotations of all who have none. Nobody may write to it."""


class FieldError(ValueError):
    """A field with a value that cannot be used."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class ModelError(ValueError):
    """A document that cannot be compiled: which one, which field, and why."""

    def __init__(self, kind: str, key: str, field: str, message: str) -> None:
        super().__init__(f"{kind} {key}: {field}: {message}" if field else f"{kind} {key}: {message}")
        self.kind, self.key, self.field, self.message = kind, key, field, message


def malformed(kind: str, document: object, error: Exception) -> ModelError:
    """The ModelError for what was raised while a document was read."""
    field = error.field if isinstance(error, FieldError) else ""
    message = str(error) if isinstance(error, ValueError) else f"unreadable document ({type(error).__name__}: {error})"
    return ModelError(kind, object_key(document), field, message)


def compiler(kind: str) -> Callable[[Callable[[Mapping[str, Any]], Record]], Callable[[Mapping[str, Any]], Record]]:
    """Makes a function that reads a document one that raises nothing but ModelError."""

    def decorate(read: Callable[[Mapping[str, Any]], Record]) -> Callable[[Mapping[str, Any]], Record]:
        @wraps(read)
        def compile_(document: Mapping[str, Any]) -> Record:
            try:
                return read(document)
            except MALFORMED as error:
                raise malformed(kind, document, error) from error

        return compile_

    return decorate


def object_key(document: object) -> str:
    """`namespace/name`, or `name`, of a document of whatever shape."""
    metadata = document.get("metadata") if isinstance(document, _MAPPINGS) else None
    if not isinstance(metadata, _MAPPINGS):
        return "(unnamed)"
    namespace, name = metadata.get("namespace"), metadata.get("name") or "(unnamed)"
    return f"{namespace}/{name}" if namespace else str(name)


def is_older(version: str, known: str) -> bool:
    """Whether a resourceVersion comes before another. Versions of one kind are numbers that grow; where they are not
    numbers, nobody can know."""
    return version.isdecimal() and known.isdecimal() and int(version) < int(known)


def moment(document: Mapping[str, Any], field: str) -> float | None:
    """The time in a field, None if there is none."""
    text = document.get(field)
    return seconds_of(text) if text else None


def created_at(metadata: Mapping[str, Any]) -> float:
    """When an object was created; 0 for one that says nothing, which is older than any other."""
    return moment(metadata, "creationTimestamp") or 0.0


def read_units(resources: Mapping[str, Any] | None, path: str) -> dict[str, int]:
    """A resource list in base units."""
    units = {}
    for resource, amount in (resources or {}).items():
        try:
            units[resource] = to_units(resource, read_quantity(amount))
        except QuantityError as error:
            raise FieldError(f"{path}[{resource}]", str(error)) from None
    return units
