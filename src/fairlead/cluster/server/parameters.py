"""The query parameters of a request, read as the real server reads them."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.client.port import Query
from fairlead.errors import BadRequest


def query_of(params: Mapping[str, str], namespace: str) -> Query:
    """What a list, a watch or the deletion of a collection is about."""
    return Query(
        namespace=namespace,
        label_selector=params.get("labelSelector") or "",
        field_selector=params.get("fieldSelector") or "",
        resource_version=params.get("resourceVersion") or "",
        resource_version_match=params.get("resourceVersionMatch") or "",
        limit=whole_number(params, "limit"),
        continue_=params.get("continue") or "",
    )


def whole_number(params: Mapping[str, str], name: str) -> int:
    """A number that is not negative; 0 if it is not given."""
    text = params.get(name) or "0"
    try:
        value = int(text)
        if not -(2**63) <= value < 2**63:
            raise ValueError
        return max(value, 0)
    except ValueError:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def flag(params: Mapping[str, str], name: str) -> bool:
    """A boolean parameter; naming it without a value counts as yes, as it does in the real server."""
    value = params.get(name)
    return value is not None and value.lower() not in ("false", "0")
