"""The original's validation of a defaulted configuration: every complaint, in its words and its order.

One check is deliberately where the original has it: the args of NodeResourcesFit are not looked at here but when the
profile is built.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.config.problems import CheckStage, ConfigProblems, Path
from fairlead.core.model.durations import format_duration
from fairlead.kube.config.field_errors import (
    ConfigFieldError,
    duplicate,
    invalid,
    qualified_name_complaints,
    rendered,
    required,
)
from fairlead.kube.config.plugin_args import FamilyArgs
from fairlead.kube.config.plugin_args_validation import args_errors
from fairlead.kube.config.shapes import API_VERSION, PLUGIN_ARGS, POINTS

if TYPE_CHECKING:
    from fairlead.kube.config.draft import Draft, DraftProfile
    from fairlead.kube.config.gates import Gates
    from fairlead.kube.config.plugin_sets import PluginSet
    from fairlead.kube.config.records import ClientConnection, ExtenderConfig, LeaderElection

Found = Iterator[ConfigFieldError]
REMOVED = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")


def validate(draft: Draft, gates: Gates, problems: ConfigProblems) -> None:
    for error in _configuration(draft, gates):
        problems.note(CheckStage.VALIDATION, error.path, error.body, hint=error.hint)


def _configuration(draft: Draft, gates: Gates) -> Found:
    yield from _client_connection(draft.client_connection)
    yield from _leader_election(draft.leader_election)
    if draft.parallelism <= 0:
        yield invalid(("parallelism",), draft.parallelism, "should be an integer value greater than zero")
    yield from _profiles(draft.profiles, gates)
    yield from _percentage(("percentageOfNodesToScore",), draft.percentage)
    initial, longest = draft.pod_initial_backoff_seconds, draft.pod_max_backoff_seconds
    if initial <= 0:
        yield invalid(("podInitialBackoffSeconds",), initial, "must be greater than 0")
    if longest < initial:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        yield invalid(("podMaxBackoffSeconds",), longest, detail)
    yield from extender_errors(("extenders",), draft.extenders)


def _client_connection(connection: ClientConnection) -> Found:
    if connection.burst < 0:
        yield invalid(("clientConnection", "burst"), connection.burst, "must be non-negative")


def _leader_election(election: LeaderElection) -> Found:
    if not election.leader_elect:
        return
    durations = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    for name, seconds in durations.items():
        if seconds <= 0:
            yield invalid(("leaderElection", name), format_duration(seconds), "must be greater than zero")
    if election.lease_duration <= election.renew_deadline:
        deadline = format_duration(election.renew_deadline)
        yield invalid(("leaderElection", "leaseDuration"), deadline, "must be greater than `RenewDeadline`")
    if election.resource_lock != "leases":
        detail = 'resourceLock value must be "leases"'
        yield invalid(("leaderElection", "resourceLock"), election.resource_lock, detail)


def _percentage(path: Path, percentage: int | None) -> Found:
    if percentage is not None and not 0 <= percentage <= 100:
        yield invalid(path, percentage, "not in valid range [0-100]")


def _profiles(profiles: Sequence[DraftProfile], gates: Gates) -> Found:
    seen: dict[str, int] = {}
    for at, profile in enumerate(profiles):
        path: Path = ("profiles", at)
        if not profile.scheduler_name:
            yield required((*path, "schedulerName"))
        yield from _percentage((*path, "percentageOfNodesToScore"), profile.percentage)
        yield from _removed_plugins(path, profile)
        yield from _plugin_config(path, profile, gates)
        if profile.scheduler_name in seen:
            hint = f'"{profile.scheduler_name}" is the name of profiles[{seen[profile.scheduler_name]}] already'
            yield duplicate((*path, "schedulerName"), {}, hint)
        seen[profile.scheduler_name] = at
    yield from _common_queue_sort(profiles)


def _removed_plugins(path: Path, profile: DraftProfile) -> Found:
    for point in POINTS:
        if point.startswith("placement"):
            continue
        for at, ref in enumerate(profile.plugins[point].enabled):
            if ref.name in REMOVED:
                yield _removed((*path, "plugins", point, "enabled", at), ref.name)


def _removed(path: Path, name: str) -> ConfigFieldError:
    detail = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'
    return invalid(path, name, detail, "NodeVolumeLimits counts these volumes today")


def _plugin_config(path: Path, profile: DraftProfile, gates: Gates) -> Found:
    seen = set()
    for at, entry in enumerate(profile.plugin_config):
        here = (*path, "pluginConfig", at)
        if entry.name in seen:
            yield duplicate(here, entry.name)
        seen.add(entry.name)
        if entry.name in REMOVED:
            yield _removed(here, entry.name)
        elif entry.name in PLUGIN_ARGS and entry.name != "NodeResourcesFit":
            assert not isinstance(entry.args, Mapping | FamilyArgs), "args of an in-tree plugin are typed"
            yield from args_errors((*here, "args"), entry.args, gates)


def _common_queue_sort(profiles: Sequence[DraftProfile]) -> Found:
    """All profiles share one queue, so they must sort it the same way."""
    first = profiles[0].plugins["queueSort"]
    if len(first.enabled) > 1:
        at: Path = ("profiles", 0, "plugins", "queueSort", "Enabled")
        yield invalid(at, len(first.enabled), "only one queue sort plugin can be enabled")
    name = first.enabled[0].name if first.enabled else ""
    expected = next((entry.args for entry in profiles[0].plugin_config[::-1] if name and entry.name == name), {})
    for index, profile in enumerate(profiles[1:], start=1):
        other = profile.plugins["queueSort"]
        if other != first:
            at = ("profiles", index, "plugins", "queueSort")
            yield ConfigFieldError(at, f"Invalid value: {_set_shown(other)}: must be the same for all profiles")
        for entry in profile.plugin_config:
            if entry.name == name and entry.args != expected:
                at = ("profiles", index, "pluginConfig", "args")
                yield invalid(at, entry.args, "queueSort must be the same for all profiles")


def _set_shown(plugin_set: PluginSet) -> str:
    enabled: list[Mapping[str, object]] = [{"Name": ref.name, "Weight": ref.weight} for ref in plugin_set.enabled]
    disabled: list[Mapping[str, object]] = [{"Name": name, "Weight": 0} for name in plugin_set.disabled]
    return rendered({"Enabled": enabled or None, "Disabled": disabled or None})


def extender_errors(path: Path, extenders: Sequence[ExtenderConfig]) -> Found:
    managed: set[str] = set()
    for at, extender in enumerate(extenders):
        if extender.prioritize_verb and extender.weight <= 0:
            yield invalid((*path, at, "weight"), extender.weight, "must have a positive weight applied to it")
        for number, resource in enumerate(extender.managed_resources):
            here = (*path, at, "managedResources", number, "name")
            yield from _extended_resource_name(here, resource.name)
            if resource.name in managed:
                yield invalid(here, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        yield invalid(path, f"found {binders} extenders implementing bind", "only one extender can implement bind")


def _extended_resource_name(path: Path, name: str) -> Found:
    complaints = qualified_name_complaints(name)
    for complaint in complaints:
        yield invalid(path, name, complaint)
    if not complaints and not _is_extended(name):
        yield invalid(path, name, "is an invalid extended resource name")


def _is_extended(name: str) -> bool:
    """Of a vendor's domain, and still a name with the prefix that quotas put before it."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not qualified_name_complaints(f"requests.{name}")
