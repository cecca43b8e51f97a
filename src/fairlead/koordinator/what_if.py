"""Koordinator's part in questions about what would happen: quotas and reservations, GPUs in hundredths."""

from __future__ import annotations

from fairlead.core.engine.what_if.families import WhatIf
from fairlead.koordinator.devices.request import CORE, KOORD_GPU, RATIO
from fairlead.koordinator.quotas.what_if import allowances
from fairlead.koordinator.records.gangs import TOPOLOGY_SPEC
from fairlead.koordinator.reservations.what_if import end_of

WHAT_IF = WhatIf(
    allowances=allowances,
    end_of=end_of,
    closeness=(TOPOLOGY_SPEC,),
    hundreds=frozenset((KOORD_GPU, CORE, RATIO)),
)
