"""KoordinatorQuirks: the behaviours of Koordinator's scheduler that Fairlead repairs by default and keeps on request.

Each field is one behaviour and one row of docs/koordinator-parity.md. True does as the original
does; False, the default, does what the second column of the row says.

Invariant: `KOORDINATOR_FIXED` has every field False and `KOORDINATOR_ORIGINAL` every field True.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from fairlead.core.model.quirk import quirk

KUBE = "Plugins of Kubernetes"
QUOTAS = "Quotas"
GANGS = "Gangs"
RESERVATIONS = "Reservations"
DEVICES = "NUMA and devices"


@dataclass(frozen=True, slots=True)
class KoordinatorQuirks:
    """Which of Koordinator's behaviours are kept. What each field means stands beside it, original before default."""

    balances_without_gain: bool = quirk(
        KUBE,
        "NodeResourcesBalancedAllocation scores how even a node is with the pod (kube-scheduler 1.35)",
        "it scores how much the pod evens it out (kube-scheduler 1.36)",
    )
    quota_shares_round_up: bool = quirk(
        QUOTAS,
        "shares of quotas are rounded to the nearest unit, so that together they may exceed what there is by a few",
        "the largest remainders are rounded up, and the shares sum to what there is",
    )
    default_quotas_share: bool = quirk(
        QUOTAS,
        "the default and the system quota take part in sharing out what is left of the root, with a cpu weight of -600"
        " each (their maximum overflows), although their use is taken off before",
        "they do not",
    )
    preemption_ignores_quotas: bool = quirk(
        QUOTAS,
        "after a refusal by a quota, DefaultPreemption, and Reservation with `enablePreemption`, may evict pods of"
        " other quotas, also those that are not preemptible, although the quota still refuses the pod",
        "only pods of the same quota are evicted for a pod that its quota refuses",
    )
    quota_victims_by_node: bool = quirk(
        QUOTAS,
        "a pod for which its quota finds no victims gets a reason for each node by its name: as many reasons as there"
        " are nodes",
        "one reason with the number of nodes: `No victims found for preemptor pod POD`",
    )
    quota_learns_of_pods_late: bool = quirk(
        QUOTAS,
        "the quota plugin learns of pods in a thread of its own, and a pod that is tried before that is refused by a"
        " runtime that does not hold its request yet; kept, that is so for a pod that is tried at the moment at which"
        " it comes (the recordings are free of it: their pods were held back until all had seen them)",
        "a quota counts a pod before the pod is tried",
    )
    gang_keeps_nominations: bool = quirk(
        GANGS,
        "members of a gang that had a place and lose it because another member finds none stay nominated to their"
        " nodes, and count there for other pods of no higher priority",
        "their nominations are cleared",
    )
    gang_rest_stays_gated: bool = quirk(
        GANGS,
        "pods of a gang that were not tried when the gang had enough stay at the gate until the next pod of the gang"
        " comes or the queue is flushed after five minutes",
        "they are tried when a pod of their group is bound",
    )
    gang_preempts_for_each_alone: bool = quirk(
        GANGS,
        "a gang that preempts (`enablePreemption`) looks for room for each member as if the others were not there: all"
        " are nominated to the cheapest node, and its pods are evicted even if they do not make enough room; victims"
        " that name no job count as one job with the priority of the first",
        "members are placed one after the other, nobody is evicted if one finds no room, and such victims count by"
        " themselves",
    )
    reservation_not_reserved: bool = quirk(
        RESERVATIONS,
        "a profile that enables Reservation without naming it under `reserve`, as the shipped one does, lets pods fit"
        " into reservations that they never take",
        "Reservation takes part in `reserve` wherever it filters",
    )
    reservation_excess_uncounted: bool = quirk(
        RESERVATIONS,
        "pods that use more of a node than their reservation holds are counted with no more than it holds by pods that"
        " do not match it, so that a node can be filled beyond what it has",
        "they are counted with all that they ask for",
    )
    load_keeps_ended_reservations: bool = quirk(
        RESERVATIONS,
        "LoadAwareScheduling goes on counting the estimate of a reservation that has ended",
        "it counts what is there",
    )
    preallocation_of_several_unscored: bool = quirk(
        RESERVATIONS,
        "a reservation that may take over several running pods is placed without a look at how many it takes over on"
        " which node (PreScore steps aside, and with it the score)",
        "nodes score 100 divided by one more than the pods that are taken over there",
    )
    numa_split_sorts_by_position: bool = quirk(
        DEVICES,
        "a request that is split over NUMA nodes is split in an order that compares the amounts left on the NUMA nodes"
        " 0, 1 ... by position, whichever NUMA nodes stand there",
        "NUMA nodes with the least left get their share first",
    )
    gpu_score_swaps_free_and_total: bool = quirk(
        DEVICES,
        "shared GPUs are scored with what is free as the total and the total as what is free: a GPU in use scores 0, or"
        " 100 if used ones are preferred, whatever is left of it",
        "by what is left of them",
    )
    gpu_partitions_ascend: bool = quirk(
        DEVICES,
        "GPU partitions with the lowest allocationScore are tried first",
        "those with the highest",
    )
    devices_unchecked_beside_numa: bool = quirk(
        DEVICES,
        "with `disableDeviceNUMATopologyAlignment` a node with a NUMA policy is not asked for devices in Filter, and"
        " the pod fails in Reserve",
        "it is asked like any other",
    )


KOORDINATOR_FIXED = KoordinatorQuirks()
KOORDINATOR_ORIGINAL = KoordinatorQuirks(**{field.name: True for field in fields(KoordinatorQuirks)})
KOORDINATOR_RECORDED = replace(KOORDINATOR_ORIGINAL, quota_learns_of_pods_late=False)
"""What recordings show: their pods were held back until the quota plugin had seen them."""
