"""Volcano configurations under which stories are told, and what each makes worth telling.

All have `predicates`, `gang` and the action `backfill`; by it volcano_runner knows where a scheduler is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlead.volcano.config.presets import PRESETS


@dataclass(frozen=True, slots=True)
class Setting:
    """A configuration, and which fields of queues it looks at."""

    conf: str
    queues: int = 3
    """At most so many of them."""
    weighted: bool = False
    deserving: bool = False
    """Queues say what they deserve."""
    guaranteed: bool = False
    limited: bool = True
    tree: bool = False
    """Some queues are below others."""
    annotated: bool = False
    """The same by annotation, as drf reads it."""
    overcommitted: bool = True
    """Groups are let in one by one, so it is worth saying what their minimum needs."""


_CAPACITY = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: capacity
  - name: nodeorder
"""

_BINPACK = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
- plugins:
  - name: gang
- plugins:
  - name: overcommit
    arguments:
      overcommit-factor: 1.5
  - name: predicates
  - name: proportion
  - name: nodeorder
    arguments:
      leastrequested.weight: 0
      mostrequested.weight: 1
  - name: binpack
    arguments:
      binpack.weight: 10
"""

_DRF = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: drf
- plugins:
  - name: overcommit
  - name: predicates
  - name: nodeorder
"""

_FAIR_THEN_PRIORITY = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: drf
- plugins:
  - name: gang
  - name: priority
- plugins:
  - name: overcommit
    arguments:
      overcommit-factor: 1.0
  - name: predicates
  - name: proportion
  - name: nodeorder
"""

_DRF_TREE = """\
actions: "allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: drf
    enableHierarchy: true
  - name: predicates
  - name: nodeorder
"""

SETTINGS: Mapping[str, Setting] = {
    "default": Setting(PRESETS["default"], weighted=True, guaranteed=True),
    "shipped": Setting(PRESETS["shipped"], weighted=True),
    "kube-batch": Setting(PRESETS["kube-batch"], weighted=True, overcommitted=False),
    "capacity": Setting(_CAPACITY, deserving=True, guaranteed=True),
    "capacity-tree": Setting(
        _CAPACITY.replace("name: capacity", "name: capacity\n    enableHierarchy: true"),
        queues=5,
        deserving=True,
        guaranteed=True,
        tree=True,
    ),
    "binpack": Setting(_BINPACK, weighted=True),
    "drf": Setting(_DRF, queues=1, limited=False),
    "fair-then-priority": Setting(_FAIR_THEN_PRIORITY, weighted=True, guaranteed=True),
    "drf-tree": Setting(_DRF_TREE, annotated=True, limited=False, overcommitted=False),
}
