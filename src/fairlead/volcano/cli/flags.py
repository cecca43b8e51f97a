"""The flags by which a process also schedules with the Volcano profile, for `fairlead scheduler` and `fairlead up`.

They are Volcano's own, where those still mean something, beside `--volcano-conf`, which turns it on. Pods of the kube
profiles and pods of this one are then scheduled by one process over one table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from fairlead.core.model.durations import parse_duration
from fairlead.errors import ConfigError
from fairlead.volcano.records.ring import Ring
from fairlead.volcano.rounds.partition import Partition, Sharding, node_labels

if TYPE_CHECKING:
    from fairlead.volcano.config.setup import VolcanoSetup

Command = TypeVar("Command", bound=Callable[..., Any])


def _seconds(context: click.Context, parameter: click.Parameter, value: str) -> float:
    try:
        seconds = parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None
    if seconds <= 0:
        raise click.BadParameter(f"{value} is no time at all; for example 1s", context, parameter)
    return seconds


_OPTIONS = (
    click.option(
        "--volcano-conf",
        metavar="FILE|PRESET",
        help="Also schedule with the Volcano profile, as this volcano-scheduler.conf says (read again when it "
        "changes), or a preset: default, shipped, kube-batch.",
    ),
    click.option(
        "--volcano-compatible",
        is_flag=True,
        help="Keep the original's slips, and overlook what it overlooks in the file.",
    ),
    click.option("--volcano-only", is_flag=True, help="Serve no kube profile."),
    click.option(
        "--scheduler-name",
        "scheduler_names",
        multiple=True,
        metavar="NAME",
        help="Pods of this schedulerName are Volcano's; may be repeated.  [default: volcano]",
    ),
    click.option(
        "--schedule-period",
        default="1s",
        show_default=True,
        callback=_seconds,
        metavar="DURATION",
        help="Volcano: time from the end of a round to the next.",
    ),
    click.option(
        "--default-queue",
        default="default",
        show_default=True,
        metavar="NAME",
        help="Volcano: the queue of groups that name none.",
    ),
    click.option(
        "--percentage-nodes-to-find",
        type=int,
        default=0,
        show_default=True,
        metavar="N",
        help="Volcano: feasible nodes that are enough, in percent; 0 is its adaptive formula, 100 is all.",
    ),
    click.option(
        "--minimum-percentage-nodes-to-find",
        type=int,
        default=5,
        show_default=True,
        metavar="N",
        help="Volcano: the least that this formula gives.",
    ),
    click.option(
        "--minimum-feasible-nodes",
        type=int,
        default=100,
        show_default=True,
        metavar="N",
        help="Volcano: and the least number of nodes.",
    ),
    click.option(
        "--node-selector",
        "node_selector",
        multiple=True,
        metavar="KEY:VALUE,...",
        help="Volcano: only nodes with one of these labels exist for it; may be repeated.",
    ),
    click.option(
        "--scheduler-sharding-mode",
        type=click.Choice([mode.value for mode in Sharding]),
        default="none",
        show_default=True,
        help="Volcano: keep to the nodes of a NodeShard (hard), or prefer them (soft).",
    ),
    click.option(
        "--scheduler-sharding-name",
        default="volcano",
        show_default=True,
        metavar="NAME",
        help="Volcano: that NodeShard.",
    ),
    click.option(
        "--ignored-provisioners",
        "ignored_provisioners",
        multiple=True,
        metavar="NAME,...",
        help="Volcano: volumes of these are not counted; may be repeated.",
    ),
    click.option(
        "--csi-storage",
        type=bool,
        is_flag=False,
        flag_value="true",
        metavar="BOOL",
        help="Volcano: heed the room that storage drivers say they have.  [default: unless compatible]",
    ),
)


VOLCANO_ONLY = (
    "scheduler_names", "schedule_period", "default_queue", "percentage_nodes_to_find",
    "minimum_percentage_nodes_to_find", "minimum_feasible_nodes", "node_selector", "scheduler_sharding_mode",
    "scheduler_sharding_name", "ignored_provisioners", "csi_storage",
)  # fmt: skip
"""Parameters that mean nothing without a Volcano configuration."""


def _given(names: Sequence[str]) -> str:
    """The first of these parameters that the user gave, as it is spelt on the command line; empty if none."""
    context = click.get_current_context(silent=True)
    for parameter in () if context is None else context.command.params:
        source = None if context is None else context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is ParameterSource.COMMANDLINE:
            return parameter.opts[0]
    return ""


def volcano_options(command: Command) -> Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def volcano_setup(flags: dict[str, Any]) -> VolcanoSetup | None:
    """Takes Volcano's flags out of the command line's; None if there is to be no Volcano profile."""
    from fairlead.volcano.config.options import VolcanoOptions
    from fairlead.volcano.config.setup import VolcanoSetup

    conf, only = flags.pop("volcano_conf"), flags.pop("volcano_only")
    compatible = flags.pop("volcano_compatible")
    options = VolcanoOptions(
        scheduler_names=tuple(flags.pop("scheduler_names")) or _usual_names(conf),
        period=flags.pop("schedule_period"),
        default_queue=flags.pop("default_queue"),
        percentage_of_nodes=flags.pop("percentage_nodes_to_find"),
        minimum_percentage=flags.pop("minimum_percentage_nodes_to_find"),
        minimum_feasible_nodes=flags.pop("minimum_feasible_nodes"),
        csi_storage=flags.pop("csi_storage"),
        gates=flags.get("gates", frozenset()),
        ignored_provisioners=_listed(flags.pop("ignored_provisioners")),
        partition=_partition(
            selector=_listed(flags.pop("node_selector")),
            mode=flags.pop("scheduler_sharding_mode"),
            shard=flags.pop("scheduler_sharding_name"),
            environment=os.environ if conf is not None else {},
        ),
    )
    if conf is None:
        if only or compatible:
            raise click.UsageError("--volcano-only and --volcano-compatible need --volcano-conf")
        if given := _given(VOLCANO_ONLY):
            raise click.UsageError(f"{given} is about the Volcano profile, so it needs --volcano-conf")
        return None
    return VolcanoSetup(conf, options, compatible, only)


def _listed(given: Sequence[str]) -> tuple[str, ...]:
    """A flag that may be repeated, or given once with commas."""
    return tuple(part for entry in given for part in entry.split(",") if part)


def _partition(*, selector: Sequence[str], mode: str, shard: str, environment: Mapping[str, str]) -> Partition:
    ring, replica = _ring(environment)
    return Partition(node_labels(selector), ring, replica, Sharding(mode), shard)


def _ring(environment: Mapping[str, str]) -> tuple[Ring | None, str]:
    """The replicas of a StatefulSet, each of which has the name of its pod: Volcano's variables, read as it does."""
    if environment.get("MULTI_SCHEDULER_ENABLE") != "true":
        return None, ""
    replica = environment.get("SCHEDULER_POD_NAME", "")
    base, dash, _ = replica.rpartition("-")
    if not dash:
        raise ConfigError(f'SCHEDULER_POD_NAME is "{replica}", which is no name of a StatefulSet\'s pod')
    try:
        count = int(environment.get("SCHEDULER_NUM", ""))
    except ValueError:
        count = 1
    if count < 1:
        raise ConfigError(f"SCHEDULER_NUM is {count}, and there must be one at least")
    return Ring(f"{base}-{number}" for number in range(count)), replica


def _usual_names(conf: str | None) -> tuple[str, ...]:
    return ("kube-batch",) if conf == "kube-batch" else ("volcano",)
