"""Merging an applied configuration into the live object, and taking out what its owner no longer states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.cluster.ownership.fieldsets import Fields, Path, children, item_step, value_step
from fairlead.cluster.ownership.shape import Division

if TYPE_CHECKING:
    from fairlead.cluster.ownership.shape import TypeShape


def merged(live: Any, config: Any, shape: TypeShape) -> Any:
    """The live value with what the configuration says put over it."""
    how = shape.divides(config)
    if how is Division.NOTHING or type(live) is not type(config) or shape.divides(live) is not how:
        return config
    if how is Division.MEMBERS:
        return live | {
            name: merged(live[name], value, shape.member(name)) if name in live else value
            for name, value in config.items()
        }
    return _merged_list(live, config, shape, how)


def _merged_list(live: list[Any], config: list[Any], shape: TypeShape, how: Division) -> list[Any]:
    """Shared items stand as the configuration orders them; the others keep their places between them."""

    def step(value: Any) -> str:
        return item_step(value, shape) if how is Division.ITEMS else value_step(value)

    present, wanted = {step(item): item for item in live}, {step(item): item for item in config}
    left, right = list(present), list(wanted)
    out: list[Any] = []
    while left or right:
        if left and left[0] not in wanted:
            out.append(present[left.pop(0)])
        elif left and right and left[0] != right[0] and right[0] in present:
            left.pop(0)  # a shared item that the configuration wants elsewhere; its turn comes from the right
        elif right:
            name = right.pop(0)
            both = name in present and how is Division.ITEMS
            out.append(merged(present[name], wanted[name], shape.item()) if both else wanted[name])
            if left and left[0] == name:
                left.pop(0)
        else:
            left.pop(0)
    return out


def without(value: Any, shape: TypeShape, unwanted: Fields, kept: Fields) -> Any:
    """The value without the unwanted fields, except where somebody owns something inside them."""
    if not unwanted:
        return value
    held = {path[:depth] for path in kept for depth in range(1, len(path) + 1)}
    return _without(value, shape, (), unwanted, held)


def _without(value: Any, shape: TypeShape, path: Path, unwanted: Fields, held: set[Path]) -> Any:
    parts = children(value, shape)
    if parts is None or not any(one[: len(path)] == path for one in unwanted):
        return value
    left = {
        step: _without(part, inner, (*path, step), unwanted, held)
        for step, (part, inner) in parts.items()
        if (*path, step) not in unwanted or (*path, step) in held
    }
    if isinstance(value, dict):
        return {step[2:]: part for step, part in left.items()}
    return list(left.values())
