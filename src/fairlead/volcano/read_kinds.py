"""The kinds of Volcano's that scheduling reads."""

from __future__ import annotations

from fairlead.core.family import KindEntry, ReadBy
from fairlead.core.model import events
from fairlead.core.model.group import compile_group
from fairlead.volcano import kinds
from fairlead.volcano.records import queues, topology

READ = (
    KindEntry(kinds.VC_POD_GROUP, compile_group, events.POD_GROUP, counts_ended=True),
    KindEntry(kinds.VC_QUEUE, queues.compile_queue, read_by=ReadBy.MODES),
    KindEntry(kinds.VC_HYPER_NODE, topology.compile_hyper_node, kinds.HYPER_NODE_EVENTS),
    KindEntry(kinds.VC_NUMATOPOLOGY, topology.compile_numa_topology, read_by=ReadBy.MODES),
    KindEntry(kinds.VC_NODE_SHARD, topology.compile_node_shard, read_by=ReadBy.MODES),
)
"""In the order in which a scheduler watches them."""
