"""What is wrong with an object: problems with the path of the field, worded and ordered as the API server does.

Validation never stops at the first problem; it adds all of them to a Problems and asks at the end whether there are
any. The message repeats no problem, the causes keep every one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from fairlead.errors import Forbidden, Invalid

if TYPE_CHECKING:
    from fairlead.core.model.kinds import Kind


IMMUTABLE = "field is immutable"


def worded(value: Any) -> str:
    """A value as it stands in a message: strings quoted, objects as JSON."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


class ValidationProblems:
    """A growing list of (reason, field, message)."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: list[tuple[str, str, str]] = []

    def __bool__(self) -> bool:
        return bool(self.found)

    def invalid(self, path: str, value: Any, detail: str = "") -> None:
        self._add("FieldValueInvalid", path, f"Invalid value: {worded(value)}", detail)

    def invalid_as_is(self, path: str, value: Any, detail: str) -> None:
        """Like `invalid`, with the members of the value in the order given."""
        self._add("FieldValueInvalid", path, f"Invalid value: {orjson.dumps(value).decode()}", detail)

    def each_invalid(self, path: str, value: Any, details: Iterable[str]) -> None:
        for detail in details:
            self.invalid(path, value, detail)

    def required(self, path: str, detail: str = "") -> None:
        self._add("FieldValueRequired", path, "Required value", detail)

    def forbidden(self, path: str, detail: str) -> None:
        self._add("FieldValueForbidden", path, "Forbidden", detail)

    def internal(self, path: str, detail: str) -> None:
        self._add("InternalError", path, "Internal error", detail)

    def duplicate(self, path: str, value: Any, detail: str = "") -> None:
        self._add("FieldValueDuplicate", path, f"Duplicate value: {worded(value)}", detail)

    def duplicate_as_is(self, path: str, value: Any, detail: str) -> None:
        self._add("FieldValueDuplicate", path, f"Duplicate value: {orjson.dumps(value).decode()}", detail)

    def not_found(self, path: str, value: Any, detail: str = "") -> None:
        self._add("FieldValueNotFound", path, f"Not found: {worded(value)}", detail)

    def too_long(self, path: str, limit: int) -> None:
        self._add("FieldValueTooLong", path, "Too long", f"may not be more than {limit} bytes")

    def unsupported(self, path: str, value: Any, supported: Sequence[str]) -> None:
        listed = ", ".join(map(worded, supported))
        self._add("FieldValueNotSupported", path, f"Unsupported value: {worded(value)}: supported values: {listed}", "")

    def not_one_of(self, path: str, value: Any, supported: Sequence[str]) -> None:
        """Complain when the value is not among those supported."""
        if value not in supported:
            self.unsupported(path, value, supported)

    def negative(self, path: str, value: Any) -> None:
        """Complain when a number that is set is below zero."""
        if value is not None and value < 0:
            self.invalid(path, value, "must be greater than or equal to 0")

    def add(self, reason: str, path: str, text: str) -> None:
        """A problem that is worded already."""
        self.found.append((reason, path, text))

    def _add(self, reason: str, path: str, text: str, detail: str) -> None:
        self.found.append((reason, path, f"{text}: {detail}" if detail else text))

    def raise_if_any(self, kind: Kind, name: str) -> None:
        if self.found:
            raise self.error(kind, name)

    def error(self, kind: Kind, name: str) -> Invalid:
        texts = list(dict.fromkeys(f"{path}: {message}" for _, path, message in self.found))
        all_of_them = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        full_kind = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
        details: dict[str, Any] = {"name": name}
        if kind.group:
            details["group"] = kind.group
        details["kind"] = kind.kind
        details["causes"] = [
            {"reason": reason, "message": message, "field": path} for reason, path, message in self.found
        ]
        return Invalid(f'{full_kind} "{name}" is invalid: {all_of_them}', details=details)


def forbidden(kind: Kind, name: str, why: str) -> Forbidden:
    """A refusal by an admission plugin."""
    details = {"name": name, **({"group": kind.group} if kind.group else {}), "kind": kind.plural}
    return Forbidden(f'{kind.resource} "{name}" is forbidden: {why}', details=details)
