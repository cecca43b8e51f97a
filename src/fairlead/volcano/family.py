"""The record of Volcano: what this family brings to the core, the cluster and the commands."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.core.family import CommandEntry, ControllerEntry, Family


def _controller(target: str) -> ControllerEntry:
    return ControllerEntry(f"fairlead.volcano.{target}")


_CONTROLLERS: Mapping[str, ControllerEntry] = {
    "volcano-podgroup-controller": _controller("jobs.podgroups:PodGroups"),
    "volcano-queue-controller": _controller("queues.controller:VolcanoQueues"),
    "volcano-cronjob-controller": _controller("flows.cron:VolcanoCronJobs"),
    "volcano-jobflow-controller": _controller("flows.flows:JobFlows"),
    "volcano-jobtemplate-controller": _controller("flows.flows:JobTemplates"),
    "volcano-job-controller": _controller("jobs.jobs:VolcanoJobs"),
    "volcano-gc-controller": _controller("jobs.job_garbage:VolcanoJobGarbage"),
    "volcano-hypernode-controller": _controller("topology.controller:HyperNodeDiscovery"),
    "volcano-sharding-controller": _controller("sharding.controller:ShardingController"),
}
VOLCANO_CONTROLLERS: tuple[str, ...] = tuple(_CONTROLLERS)

_COMMANDS: Mapping[str, CommandEntry] = {
    "controllers": CommandEntry(
        "fairlead.volcano.cli.controllers:controllers_command",
        "Run Volcano's controllers, in vc-controller-manager's place.",
        after="scheduler",
    ),
    "job": CommandEntry(
        "fairlead.volcano.jobs.cli.commands:job_group",
        "Run, view, follow, suspend and delete Volcano Jobs.",
        before="roles",
    ),
    "vcctl": CommandEntry(
        "fairlead.volcano.vcctl.command:vcctl_command", "Take vcctl's arguments and print what it does.", after="roles"
    ),
    "queue": CommandEntry(
        "fairlead.volcano.queues.command:queue_group",
        "List queues; show what one holds, may hold, and why.",
        before="nodes",
    ),
}

FAMILY = Family(
    "volcano",
    extends=("kube",),
    modes={"rounds": "fairlead.volcano.mode:RoundMode"},
    explainers={"checks": "fairlead.volcano.explain.text:show_checks"},
    kinds="fairlead.volcano.read_kinds:READ",
    controllers=_CONTROLLERS,
    settings="fairlead.volcano.config.controller_settings:controller_settings",
    commands=_COMMANDS,
    grants="fairlead.volcano.grants:GRANTS",
    hooks="fairlead.volcano.admission:hooks",
    metrics="fairlead.volcano.metrics:VolcanoMetrics",
    replay="fairlead.volcano.replay.forms:FORMS",
    network_domains="fairlead.volcano.topology.gang_domains:HyperNodeDomains",
    run_together="fairlead.volcano.jobs.together:run_together",
    what_if="fairlead.volcano.what_if:WHAT_IF",
    rows="fairlead.volcano.rows:ROWS",
    group_readers="fairlead.volcano.records.groups:READERS",
    group_annotations="fairlead.volcano.kinds:GROUP_ANNOTATIONS",
    group_preferences="fairlead.volcano.records.groups:network_preference",
    served="fairlead.volcano.kinds:SERVED",
    saved="fairlead.volcano.kinds:SAVED",
    kept_annotations=("volcano.sh/",),
    scheduler_fields="fairlead.volcano.kinds:SCHEDULER_FIELDS",
    unattended="fairlead.volcano.kinds:UNATTENDED",
    served_by={"volcano": "start with --volcano-conf to serve it"},
)
