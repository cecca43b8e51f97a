"""Lists in chunks: what the list parameters mean together, and the opaque token that continues a list.

A token remembers the version of the first chunk and where it ended, so that all chunks show one moment. When that
moment is no longer known, the answer is Gone and the list begins anew. Combinations of parameters that the real
server refuses are refused with its words.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import orjson

from fairlead.errors import ApiError, BadRequest, Gone, Invalid, Unreachable

if TYPE_CHECKING:
    from fairlead.client.port import Query
    from fairlead.cluster.store.objects import Record

Match = Literal["", "Exact", "NotOlderThan"]
_MOST_DIGITS = 20
"""Of a number of 64 bits. Longer ones are not read: that takes a time that grows with their length."""
_TOKEN_VERSION = "meta.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which part of a list is wanted, at which version: a Query's parameters, checked."""

    limit: int = 0
    after: str = ""
    """Continue with the first object whose `namespace/name` is not below this."""
    version: int = 0
    exact: bool = False

    @classmethod
    def of(cls, query: Query) -> PageRequest:
        limit, match = query.limit, query.resource_version_match
        _check(query.continue_, query.resource_version, match)
        if query.continue_:
            version, after = _read_token(query.continue_)
            return cls(limit=limit, after=after, version=version, exact=version > 0)
        version = parse_version(query.resource_version)
        return cls(limit=limit, version=version, exact=match == "Exact" or (not match and limit > 0 and version > 0))


@dataclass(frozen=True, slots=True)
class Chunk:
    """Part of a list, as records."""

    records: list[Record]
    version: int
    continue_: str = ""
    remaining: int | None = None


def chunk(records: list[Record], request: PageRequest, version: int, *, counted: bool) -> Chunk:
    """The first `limit` of what is left. `counted` says whether the rest may be counted (not under a selector)."""
    if not request.limit or len(records) <= request.limit:
        return Chunk(records, version)
    rest = len(records) - request.limit
    taken = records[: request.limit]
    return Chunk(taken, version, _token(version, taken[-1].path + "\0"), rest if counted else None)


def parse_version(text: str) -> int:
    """A resourceVersion as a number; empty is 0."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit():
        raise _bad_version(text, "invalid syntax")
    digits = text.lstrip("0")
    if len(digits) > _MOST_DIGITS or int(digits or "0") >= 1 << 64:
        raise _bad_version(text, "value out of range")
    return int(digits or "0")


def _bad_version(text: str, why: str) -> BadRequest:
    return BadRequest(
        f'invalid resource version: resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}":'
        f" {why}"
    )


def too_large(wanted: int, current: int) -> ApiError:
    """Somebody requests a version that is still to come."""
    error = Unreachable(
        f"Timeout: Too large resource version: {wanted}, current: {current}",
        details={"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]},
        retry_after=1,
    )
    error.code, error.reason = 504, "Timeout"
    return error


def expired(request: PageRequest) -> Gone:
    """A list that cannot be continued, or a version that cannot be listed any more."""
    if request.after:
        return Gone(
            "The provided continue parameter is too old to display a consistent list result. You must start a new"
            " list without the continue parameter."
        )
    return Gone("The resourceVersion for the provided list is too old.")


def list_options_invalid(field: str, problem: str) -> Invalid:
    return Invalid(
        f'ListOptions.meta.k8s.io "" is invalid: {field}: {problem}',
        details={"group": "meta.k8s.io", "kind": "ListOptions", "causes": [_cause(field, problem)]},
    )


def _cause(field: str, problem: str) -> dict[str, str]:
    reason = "FieldValueNotSupported" if problem.startswith("Unsupported") else "FieldValueForbidden"
    return {"reason": reason, "message": problem, "field": field}


def _check(continue_: str, resource_version: str, match: str) -> None:
    field = "resourceVersionMatch"
    if match and continue_:
        raise list_options_invalid(field, "Forbidden: resourceVersionMatch is forbidden when continue is provided")
    if match and not resource_version:
        raise list_options_invalid(
            field, "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
        )
    if match not in ("", "Exact", "NotOlderThan"):
        raise list_options_invalid(
            field, f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
        )
    if match == "Exact" and resource_version == "0":
        raise list_options_invalid(
            field, 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        )
    if continue_ and resource_version not in ("", "0"):
        raise BadRequest("specifying resource version is not allowed when using continue")


def _token(version: int, start: str) -> str:
    raw = orjson.dumps({"v": _TOKEN_VERSION, "rv": version, "start": start})
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, str]:
    try:
        content = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        version, start = content["rv"], content["start"]
        if content["v"] != _TOKEN_VERSION or not isinstance(version, int) or not isinstance(start, str):
            raise ValueError
    except (ValueError, KeyError, TypeError, binascii.Error):
        raise BadRequest(
            "invalid continue token: continue key is not valid: illegal base64 data or unknown format"
        ) from None
    return version, start
