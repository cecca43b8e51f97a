"""quirk: one field of a table of behaviours that a family keeps on request and repairs by default."""

from __future__ import annotations

from dataclasses import field


def quirk(section: str, original: str, default: str) -> bool:
    """A field of such a table. `original` says what the original does, `default` what Fairlead does unless the field is
    set."""
    said = {"section": section, "original": original, "default": default}
    made: bool = field(default=False, metadata=said)
    return made
