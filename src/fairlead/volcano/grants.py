"""What Volcano's scheduler and each of its controllers write on a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.console.roles.grants import Grant, table

ROUNDS = "rounds"
SHARDS = "shards"
CARDS = "cards"

GRANTS: Mapping[str, tuple[Grant, ...]] = {
    ROUNDS: table({
        "- pods patch": "gates of queues are not opened",
        "scheduling.volcano.sh podgroups patch": "groups do not move on to Inqueue and Running",
        "scheduling.volcano.sh queues create": "the queues root and default are not made",
        "scheduling.volcano.sh queues/status patch": "queues do not say what is allocated",
        "nodeinfo.volcano.sh numatopologies delete": "layouts of nodes that are gone stay",
    }),
    SHARDS: table({
        "shard.volcano.sh nodeshards/status patch": "others do not learn which nodes of a shard are in use",
    }),
    CARDS: table({
        "- nodes patch": "nodes with shared accelerator cards cannot be locked, so pods that share cards are not bound",
        "- configmaps get": "the description of shared accelerator cards is not read",
    }),
    "volcano-podgroup-controller": table({
        "scheduling.volcano.sh podgroups create delete": "plain pods get no groups",
        "- pods patch": "plain pods get no groups",
    }),
    "volcano-queue-controller": table({
        "scheduling.volcano.sh queues patch": "queues cannot be closed",
        "scheduling.volcano.sh queues/status patch": "queues are never open",
        "bus.volcano.sh commands delete": "commands to queues are carried out again and again",
        "- events create": "there are no events about queues",
    }),
    "volcano-cronjob-controller": table({
        "batch.volcano.sh jobs create delete": "cron jobs do not run",
        "batch.volcano.sh cronjobs/status patch": "cron jobs do not say when they ran",
        "- events create": "there are no events about cron jobs",
    }),
    "volcano-jobflow-controller": table({
        "batch.volcano.sh jobs create delete": "flows do not run",
        "flow.volcano.sh jobflows/status patch": "flows do not say how far they are",
        "- events create": "there are no events about flows",
    }),
    "volcano-jobtemplate-controller": table({
        "flow.volcano.sh jobtemplates/status patch": "templates do not list their jobs",
    }),
    "volcano-job-controller": table({
        "batch.volcano.sh jobs patch": "claims of jobs are not kept",
        "batch.volcano.sh jobs/status patch": "jobs do not move on",
        "- pods create patch delete": "jobs have no pods",
        "scheduling.volcano.sh podgroups create patch delete": "jobs have no groups",
        "scheduling.volcano.sh queues create": "the queues root and default are not made",
        "bus.volcano.sh commands delete": "commands to jobs are carried out again and again",
        "- persistentvolumeclaims create": "claims of jobs are not made",
        "- services create delete": "the plugins svc and ray of jobs do not work",
        "- configmaps create patch delete": "the plugin svc of jobs does not work",
        "networking.k8s.io networkpolicies create delete": "the plugin svc of jobs does not work",
        "- secrets create delete": "the plugin ssh of jobs does not work",
        "- events create": "there are no events about jobs",
    }),
    "volcano-gc-controller": table({"batch.volcano.sh jobs delete": "ended jobs are not cleaned up"}),
    "volcano-hypernode-controller": table({
        "topology.volcano.sh hypernodes create patch delete": "HyperNodes are not made from labels of nodes",
        "- events create": "there are no events about wrong configurations",
    }),
    "volcano-sharding-controller": table({
        "shard.volcano.sh nodeshards create patch": "nodes are not divided among schedulers",
        "- events create": "there are no events about wrong configurations",
    }),
}  # fmt: skip
"""By task: scheduling in rounds, doing so as one of several replicas with nodes of their own, placing pods that share
accelerator cards, and each controller by its name."""
