"""Volcano's part in questions about what would happen: queues, Jobs and groups."""

from __future__ import annotations

from fairlead.core.engine.what_if.families import WhatIf
from fairlead.volcano.jobs.what_if import OWNERS, awaited_by, end_of
from fairlead.volcano.queues.what_if import allowances, other_queues, queues_of
from fairlead.volcano.records.groups import TIER_ANNOTATION

WHAT_IF = WhatIf(
    queues_of=queues_of,
    allowances=allowances,
    edits=other_queues,
    end_of=end_of,
    awaited_by=awaited_by,
    closeness=(TIER_ANNOTATION,),
    owners=OWNERS,
    pods_need="a Volcano Job needs its queue",
)
