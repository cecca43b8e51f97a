"""Quirks: the behaviours of Volcano that Fairlead repairs by default and keeps on request.

Each field is one behaviour and one row of docs/volcano-parity.md. True does as Volcano does; False, the default, does
what the row's second column says. Code reads the one behaviour that it has an alternative for, never for
"compatible" as a whole, so that a reader finds both sides of a difference by searching for one name.

To add a behaviour: add a field below with `quirk(section, original, default)`, read it where the behaviour is decided,
and run `make docs`, which writes the tables of docs/volcano-parity.md from these fields. A new section needs a line
`<!-- quirks: NAME -->` and a line `<!-- end of quirks -->` in that document, where its table is to stand.

Invariant: `FIXED` has every field False and `ORIGINAL` every field True.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from fairlead.core.model.quirk import quirk

CONFIGURATION = "Configuration"
QUEUES = "Queues"
EVICTIONS = "Evictions"
PLUGINS = "Plugins"
WRITING = "Writing"
JOBS = "Jobs"


@dataclass(frozen=True, slots=True)
class Quirks:
    """Which of Volcano's behaviours are kept. What each field means stands beside it, original before default."""

    # ---- configuration ----

    ignores_unknown_settings: bool = quirk(
        CONFIGURATION,
        "unknown keys, switches, plugins and arguments, and arguments of a wrong type, are ignored",
        "errors with line and suggestion",
    )
    skips_missing_plugins: bool = quirk(
        CONFIGURATION,
        "a plugin that does not exist is skipped in every round",
        "an error",
    )

    # ---- queues ----

    ending_pods_free_quota: bool = quirk(
        QUEUES,
        "a pod's quota is free again when its deletion begins",
        "the pod counts until it is gone; the pod that would start in its stead is promised the place",
    )
    device_minimums_slip: bool = quirk(
        QUEUES,
        "when a group is let in, a claim that its pods share counts for each of them, and devices that were promised "
        "to groups in earlier rounds are forgotten",
        "a claim counts once, and what was promised counts until it is used",
    )
    backfill_ignores_queues: bool = quirk(
        QUEUES,
        "backfill does not ask queues",
        "it does, so a capability of `pods` counts pods that request nothing",
    )
    ignores_pods_capability: bool = quirk(
        QUEUES,
        "a capability of `pods` limits nothing",
        "it limits the number of pods",
    )
    reserves_before_admission: bool = quirk(
        QUEUES,
        "proportion, capacity and resourcequota reserve for a group as soon as they are asked about it, also if "
        "another plugin refuses it",
        "only for groups that are let in",
    )
    ancestor_shares_go_stale: bool = quirk(
        QUEUES,
        "the shares of capacity's ancestors stay as they were when the round began",
        "they follow every placement and eviction",
    )
    broken_tree_stops_all_queues: bool = quirk(
        QUEUES,
        "with capacity's hierarchy, one queue whose parent is missing or below it, or one group in a queue with "
        "children, stops all queues",
        "only that queue and those below it, or that group; `fairlead queue explain` says why",
    )
    ignores_fifo: bool = quirk(
        QUEUES,
        "`dequeueStrategy: fifo` is not read",
        "no job of such a queue overtakes one that could not be placed in this round",
    )

    large_gangs_wait_for_each_other: bool = quirk(
        QUEUES,
        "a gang that needs more than proportion gives its queue waits for ever if another queue waits as well, also on "
        "an empty cluster",
        "when nothing else can be placed, a queue may start one whole gang beyond what it deserves, within its "
        "capability",
    )

    half_started_jobs_wait: bool = quirk(
        QUEUES,
        "of two jobs that lack their minimum neither comes first because some of its pods run already, so that a gang "
        "that lost a bind may stay half bound",
        "the one whose pods run comes first, after priorities",
    )

    # ---- evictions ----

    disagreement_restarts_tier: bool = quirk(
        EVICTIONS,
        "where the plugins of a tier agree on no victim, the next plugin of the tier starts anew",
        "the tier has no victims, and the next tier is asked",
    )
    undone_evictions_become_running: bool = quirk(
        EVICTIONS,
        "an eviction that is undone leaves a pod that was only bound as running",
        "the pod has the status that it had",
    )
    undone_evictions_stay_hidden: bool = quirk(
        EVICTIONS,
        "an eviction that is undone leaves the pod out of what predicates and scores see until the round ends",
        "the pod is seen again",
    )
    skips_predicates_after_evictions: bool = quirk(
        EVICTIONS,
        "preempt does not ask predicates again after evictions, and topology-aware preemption asks only pod affinity",
        "both ask all predicates",
    )
    retries_satisfied_jobs: bool = quirk(
        EVICTIONS,
        "a job that got its room is tried again in the same round by preempt; reclaim asks for its queue again",
        "each is tried once",
    )
    asks_refused_nodes_again: bool = quirk(
        EVICTIONS,
        "preempt and reclaim try every node again for every task, also one on which an equal task of the job came to "
        "nothing",
        "such a node is left out until something is placed or evicted",
    )
    reclaim_ignores_hyper_nodes: bool = quirk(
        EVICTIONS,
        "reclaim ignores the hypernodes of jobs with a topology",
        "it makes room within them",
    )
    recalls_only_own_topologies: bool = quirk(
        EVICTIONS,
        "the hypernode in which a job with a topology already runs is not derived from pods of sub-groups that have "
        "no topology of their own",
        "it is",
    )
    pdb_protects_unlabelled_pods: bool = quirk(
        EVICTIONS,
        "pdb protects all pods without labels",
        "no budget covers them, and they may be evicted",
    )
    forgets_promised_hyper_nodes: bool = quirk(
        EVICTIONS,
        "the hypernode in which room was made for a job is forgotten with the round, and the job may end up elsewhere",
        "it is kept for the job until the job is placed, and read from the pods' nominated nodes after a restart",
    )

    # ---- plugins ----

    ignores_affinity_on_new_nodes: bool = quirk(
        PLUGINS,
        "affinity terms of placed pods count only on nodes that had such pods when the round began",
        "on every node",
    )
    task_topology_keeps_undone: bool = quirk(
        PLUGINS,
        "task-topology goes on counting a placement that is undone",
        "it stops counting it",
    )
    spread_scores_wrong_cards: bool = quirk(
        PLUGINS,
        "the spread score of vGPUs is always 0; that of Ascend cards prefers cards with one pod",
        "100 for a card that nobody uses",
    )
    counts_pod_once_per_card: bool = quirk(
        PLUGINS,
        "a pod is counted once on a card, however many of its containers use it",
        "every container counts",
    )
    mig_only_sizes_in_use: bool = quirk(
        PLUGINS,
        "on a card that is partitioned (MIG), only sizes of which a part is in use are considered",
        "the smallest free part that fits",
    )
    oversized_ascend_request_is_zero: bool = quirk(
        PLUGINS,
        "a container that requests more memory than an Ascend card has is treated as requesting none",
        "the pod is refused",
    )
    rescheduling_reads_only_ten_minutes: bool = quirk(
        PLUGINS,
        "rescheduling looks for averages over `metricsPeriod`, of which only `10m` exists",
        "it uses the averages that exist",
    )
    rescheduling_counts_no_pods: bool = quirk(
        PLUGINS,
        "rescheduling compares CPU and memory, and never the number of pods, with its thresholds",
        "it compares all three",
    )
    rescheduling_trusts_old_usage: bool = quirk(
        PLUGINS,
        "rescheduling goes by the usage of a node however old it is",
        "usage older than five minutes counts as unknown",
    )
    rescheduling_takes_unknown_for_idle: bool = quirk(
        PLUGINS,
        "rescheduling treats a node without usage as idle",
        "such a node is left out",
    )
    rescheduling_overspends: bool = quirk(
        PLUGINS,
        "rescheduling goes on evicting when the idle nodes have less than no room left",
        "it stops",
    )
    rescheduling_confuses_names: bool = quirk(
        PLUGINS,
        "rescheduling confuses pods of one name in different namespaces",
        "it distinguishes them",
    )
    tdm_closes_at_midnight: bool = quirk(
        PLUGINS,
        "a zone of tdm whose hours go past midnight is closed from midnight on",
        "open until the hours are over",
    )
    silent_extender_means_ready: bool = quirk(
        PLUGINS,
        "when the extender fails to answer whether a job is ready, the job counts as ready unless the extender is "
        "ignorable",
        "the job counts as ready only if the extender is ignorable",
    )
    failed_opening_mutes_extender: bool = quirk(
        PLUGINS,
        "an extender that fails when a round opens is not asked for the rest of it",
        "it is asked, and its failures are refusals",
    )
    counts_unregistered_volumes: bool = quirk(
        PLUGINS,
        "volumes of a driver that no node has registered (hostpath's, local disks') fit nowhere, unless "
        "`--ignored-provisioners` names it",
        "they are not counted",
    )
    storage_capacity_on_request: bool = quirk(
        PLUGINS,
        "the capacity that storage drivers publish counts only with `--csi-storage`",
        "it counts unless that is off",
    )
    ignores_group_limits: bool = quirk(
        PLUGINS,
        "`volcano.sh/nodegroup-resource-limits` of a queue means nothing (1.15)",
        "it limits what the queue has of each group of nodes (as in 1.16)",
    )
    shrunk_nodes_refuse_binds: bool = quirk(
        PLUGINS,
        "a pod that requests nothing is not bound to a node that has shrunk below what its pods request",
        "it is bound",
    )

    # ---- writing ----

    ending_pods_reset_phase: bool = quirk(
        WRITING,
        "a group falls back to Pending or Unknown as soon as a pod of its minimum begins to end",
        "it is Running until the pod is gone, unless a pod of it waits for a place (as in Volcano after 1.16)",
    )

    # ---- jobs ----

    kill_forgets_finished_pods: bool = quirk(
        JOBS,
        "a kill of the whole Job does not count the finished pods that it leaves, so a completed Job shows 0 succeeded",
        "they are counted by phase",
    )
    target_kill_deletes_group: bool = quirk(
        JOBS,
        "RestartPod, RestartTask and RestartPartition delete the PodGroup, so that the Job queues again",
        "the PodGroup stays",
    )
    target_kill_deletes_objects: bool = quirk(
        JOBS,
        "they also delete and remake Service, ConfigMap, NetworkPolicy and Secret; running pods keep the old ssh keys",
        "these stay as they are",
    )
    times_move_with_counters: bool = quirk(
        JOBS,
        "`lastTransitionTime` of a Job changes with every counter",
        "it changes with the phase, on which TTL and running time depend",
    )
    version_rises_with_every_kill: bool = quirk(
        JOBS,
        "every request that meets a dying or finished Job raises `status.version`",
        "only a kill that deletes pods does",
    )
    restart_swallows_actions: bool = quirk(
        JOBS,
        "AbortJob, CompleteJob and TerminateJob are lost while a Job is Restarting",
        "they are carried out",
    )
    replaced_delay_still_fires: bool = quirk(
        JOBS,
        "a delayed action that another one has replaced is carried out all the same",
        "it is dropped",
    )
    group_events_without_version: bool = quirk(
        JOBS,
        "the event Unknown of a PodGroup calls for no policy once the Job has been killed for the first time",
        "it does",
    )
    delayed_event_is_not_synced: bool = quirk(
        JOBS,
        "an event whose policy has a timeout is only remembered: lost pods are not made again meanwhile",
        "the Job is synchronised as well",
    )
    every_lost_pod_is_a_retry: bool = quirk(
        JOBS,
        "each of several pods that are lost together counts as a retry",
        "they count as one",
    )
    min_resources_as_written: bool = quirk(
        JOBS,
        "containers that state limits alone (the usual way to ask for GPUs) add nothing to minResources",
        "requests are filled in from limits first, as the API server does for pods",
    )
    foreign_pod_blocks: bool = quirk(
        JOBS,
        "a foreign pod under the name of one of the Job's pods counts as made, and nothing tries again",
        "creation is tried until the name is free",
    )
    refused_pods_stop_status: bool = quirk(
        JOBS,
        "if one pod is refused, the status is not written and the other pods are not counted",
        "they are",
    )
    commands_deleted_first: bool = quirk(
        JOBS,
        "a Command is deleted before it is carried out, so that a crash in between loses it",
        "it is noted in the Job's status, carried out, and then deleted: once and not less",
    )
    hosts_stale_while_pending: bool = quirk(
        JOBS,
        "the hosts in the svc ConfigMap do not follow a change of replicas while the Job is Pending",
        "they do in every phase",
    )
    restart_leaves_hosts: bool = quirk(
        JOBS,
        "a Job that fails in a restart keeps the ConfigMap of svc",
        "nothing of it is left",
    )
    every_master_is_rank_0: bool = quirk(
        JOBS,
        "pytorch gives RANK 0 to every master, so that ranks repeat and the last are missing",
        "masters by index, workers after them",
    )
    ray_service_targets_names: bool = quirk(
        JOBS,
        "the Service of a Ray head targets ports by name, also where the head calls them otherwise",
        "it targets their numbers",
    )
    flow_ignores_terminated_jobs: bool = quirk(
        JOBS,
        "a running JobFlow waits for ever for a job that was terminated",
        "it fails",
    )
    missing_template_stops_flow: bool = quirk(
        JOBS,
        "a JobFlow one of whose templates is missing has no status at all, and steps after it are not begun",
        "the others go on and are reported; the missing template is waited for",
    )
    template_keeps_deleted_jobs: bool = quirk(
        JOBS,
        "a JobTemplate goes on listing jobs that were deleted",
        "they leave the list",
    )
    cron_keeps_terminated_jobs: bool = quirk(
        JOBS,
        "terminated runs of a CronJob are never cleaned up",
        "they count as failed runs",
    )
    refuses_unlimited_restarts: bool = quirk(
        JOBS,
        "a task's `maxRetry: -1` (no limit) is understood by the controller and refused by the API",
        "accepted",
    )
    exit_code_actions_unchecked: bool = quirk(
        JOBS,
        "the action of an exitCode policy is not checked; an unknown word acts as a sync, or as a kill",
        "refused, as it is beside an event",
    )
    groups_in_inner_queues: bool = quirk(
        JOBS,
        "PodGroups are accepted in root and in queues with children, where Jobs are refused",
        "refused",
    )
    templates_unchecked: bool = quirk(
        JOBS,
        "a CronJob or JobTemplate whose Job would be refused is stored, and every run of it fails",
        "refused with the words that its Job would be refused with",
    )
    queue_goes_under_its_jobs: bool = quirk(
        JOBS,
        "a queue can be deleted while PodGroups are in it; every sync of their Jobs fails until the Job is terminated",
        "refused",
    )
    flow_probes_ignored_silently: bool = quirk(
        JOBS,
        "probes and patches of a JobFlow are stored and never looked at",
        "the same, with a warning to their sender",
    )
    queue_state_by_hand: bool = quirk(
        JOBS,
        "a queue's /status takes every state, also Closing for a queue with nothing in it, where it then stays",
        "Closing without PodGroups and Unknown are refused",
    )
    hyper_nodes_share_labels: bool = quirk(
        JOBS,
        "HyperNodes found by labels go by their own label alone: racks of one name in two zones are one, with two "
        "parents, which makes the tree unusable",
        "such racks are two HyperNodes",
    )
    node_limit_per_batch: bool = quirk(
        JOBS,
        "the sharding controller looks at fifty nodes at a time, and node-limit holds for each fifty",
        "node-limit holds for the whole cluster",
    )

    @classmethod
    def of(cls, *, compatible: bool) -> Quirks:
        """All of them, or none."""
        return ORIGINAL if compatible else FIXED


FIXED = Quirks()
ORIGINAL = Quirks(**{one.name: True for one in fields(Quirks)})


def parity_table(section: str, of: type[Any] = Quirks) -> str:
    """The rows of one section of docs/volcano-parity.md, or of another document with fields made by `quirk`, as a
    Markdown table."""
    lines = [f"| original, kept when compatible | default | field of `{of.__name__}` |", "|---|---|---|"]
    for one in fields(of):
        said = one.metadata
        if said["section"] == section:
            lines.append(f"| {said['original']} | {said['default']} | `{one.name}` |")
    return "\n".join(lines) + "\n"
