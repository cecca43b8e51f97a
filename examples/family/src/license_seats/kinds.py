"""The kind LicensePool, the record that scheduling reads of it, and the label by which pods ask for a seat."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fairlead.core.family import KindEntry, ReadBy
from fairlead.core.model.kinds import Definition, define

POOL_LABEL = "licenses.example.com/pool"
POOL_EVENTS = "licenses.example.com/LicensePool"
"""The resource under which changes of pools wake pods."""

LICENSE_POOL = define(
    "licenses.example.com/v1",
    "LicensePool",
    "licensepools",
    cluster=True,
    short="lp",
    definition=Definition(
        "licensepools.licenses.example.com",
        schema={
            "type": "object",
            "required": ["spec"],
            "properties": {
                "spec": {
                    "type": "object",
                    "required": ["seats"],
                    "properties": {"seats": {"type": "integer", "minimum": 0}},
                },
                "status": {"type": "object", "properties": {"used": {"type": "integer"}}},
            },
        },
        columns=(
            {"name": "Seats", "type": "integer", "jsonPath": ".spec.seats"},
            {"name": "Used", "type": "integer", "jsonPath": ".status.used"},
        ),
    ),
)
SERVED = (LICENSE_POOL,)


class LicensePool(NamedTuple):
    name: str
    seats: int


def compile_pool(document: Mapping[str, Any]) -> LicensePool:
    return LicensePool(document["metadata"]["name"], document["spec"]["seats"])


READ = (KindEntry(LICENSE_POOL, compile_pool, POOL_EVENTS, ReadBy.PLUGINS),)
"""A scheduler watches pools if one of its profiles names the plugin."""
