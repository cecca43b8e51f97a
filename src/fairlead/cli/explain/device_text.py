"""What there is of devices for each request of a pod, as lines for people to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.console.terminal import line

if TYPE_CHECKING:
    from rich.text import Text

Document = Mapping[str, Any]


def device_lines(document: Document) -> Iterator[Text]:
    """A few lines for each request that is not served; they work on the JSON form."""
    for request in document.get("devices", ()):
        wanted, kind = request["wanted"], request["deviceClass"]
        yield line((request["claim"], "bold"), f", request {request['request']}: {wanted} of class {kind}")
        for text in _lines(request):
            yield line(f"  {text}")


def _lines(request: Document) -> Iterator[str]:
    if "problem" in request:
        yield request["problem"]
        return
    most = request.get("mostOnOneNode")
    where = f", at most {most['free']} of them on one node ({most['node']})" if most else ""
    yield f"{request['devices']} devices, {request['matching']} match, {request['free']} free{where}"
    for refused in request.get("refusedBy", ()):
        yield f"{refused['devices']} are refused by the {refused['of']}'s selector {refused['selector']}"
    if "tainted" in request:
        yield f"{request['tainted']} have taints that the request does not tolerate"
    for holder in request.get("heldBy", ()):
        yield f"{holder['devices']} held by claim {holder['claim']}{_pods(holder['pods'])}"
    if "nearest" in request:
        yield f"nearest: {_nearest(request['nearest'])}"


def _pods(names: Sequence[str]) -> str:
    return f" of pod {', '.join(names)}" if names else ""


def _nearest(nearest: Document) -> str:
    about = f"{nearest['device']} on {nearest['node']}"
    if "fails" in nearest:
        has = ", ".join(f"{name} {value}" for name, value in nearest.get("has", {}).items())
        about += f", refused by {' and '.join(nearest['fails'])}" + (f"; it has {has}" if has else "")
    if "heldBy" in nearest:
        about += f", held by {', '.join(nearest['heldBy'])}"
    return about + (f", tainted {nearest['taint']}" if "taint" in nearest else "")
