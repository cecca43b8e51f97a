"""The words that cells are made of: ages, counts of containers, joined lists, selectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fairlead.core.model.times import seconds_of

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

Cells = Callable[["Doc", float], list[Any]]
NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"


def human_duration(seconds: float) -> str:
    """`45s`, `5m10s`, `3h15m`, `2d3h`, `12d`, `2y45d`: two units while they matter, then one."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    if total < 0:
        return "0s"
    if total < 60 * 2:
        return f"{total}s"
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if minutes < 10:
        return _two(minutes, "m", total % 60, "s")
    if minutes < 60 * 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 24 * 8:
        return _two(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    if hours < 24 * 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


def age_of(timestamp: str | None, now: float) -> str:
    return human_duration(now - seconds_of(timestamp)) if timestamp else UNKNOWN


def age(doc: Doc, now: float) -> str:
    return age_of(doc["metadata"].get("creationTimestamp"), now)


def name(doc: Doc) -> str:
    text: str = doc["metadata"]["name"]
    return text


def joined_labels(labels: Mapping[str, str] | None) -> str:
    """`a=b,c=d`, by key."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def selector_text(selector: Doc | None) -> str:
    """A LabelSelector as one would type it."""
    if selector is None:
        return NONE
    parts = [f"{key}={value}" for key, value in selector.get("matchLabels", {}).items()]
    parts += [_requirement_text(one) for one in selector.get("matchExpressions", ())]
    return ",".join(sorted(parts)) or NONE


def _requirement_text(requirement: Doc) -> str:
    key, values = requirement.get("key", ""), ",".join(sorted(requirement.get("values", ())))
    match requirement.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return str(key)
    return f"!{key}"


def containers_and_images(template: Doc) -> list[str]:
    """Two cells: the names and the images of a template's containers."""
    containers = template.get("spec", {}).get("containers", ())
    return [",".join(one.get("name", "") for one in containers), ",".join(one.get("image", "") for one in containers)]


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def access_modes(modes: list[str] | None) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def truth(value: Any) -> str:
    return "True" if value else "False"
