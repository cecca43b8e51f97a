"""Volcano's own names and grammar for its controllers: `*` for all, `+name` or `name` on, `-name` off.

What is said of one by name counts before `*`. A name both on and off, or one that is not known, is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from fairlead.errors import ConfigError

VOLCANO_NAMES: Mapping[str, tuple[str, ...]] = {
    "job-controller": ("volcano-job-controller",),
    "pg-controller": ("volcano-podgroup-controller",),
    "queue-controller": ("volcano-queue-controller",),
    "gc-controller": ("volcano-gc-controller",),
    "jobflow-controller": ("volcano-jobflow-controller",),
    "jobtemplate-controller": ("volcano-jobtemplate-controller",),
    "cronjob-controller": ("volcano-cronjob-controller",),
    "hyperNode-controller": ("volcano-hypernode-controller",),
    "sharding-controller": ("volcano-sharding-controller",),
    "colocation-config": (),
}
"""Name in Volcano -> names here; the last one configures an agent on nodes, of which there is none here."""


def choose_volcano_controllers(text: str) -> tuple[str, ...]:
    """Our names of the controllers that a choice in Volcano's words means. Raises ConfigError."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    on = {word.lstrip("+") for word in words if not word.startswith("-") and word != "*"}
    off = {word[1:] for word in words if word.startswith("-")}
    for word in sorted(on | off):
        if word not in VOLCANO_NAMES:
            close = get_close_matches(word, VOLCANO_NAMES, n=1)
            hint = f"did you mean {close[0]}?" if close else "one of: " + ", ".join(VOLCANO_NAMES)
            raise ConfigError(f'there is no controller "{word}"', hint=hint)
    if both := sorted(on & off):
        raise ConfigError(f'controller "{both[0]}" is switched both on and off')
    chosen = set(VOLCANO_NAMES) - off if "*" in words else on
    return tuple(ours for name, made in VOLCANO_NAMES.items() if name in chosen for ours in made)
