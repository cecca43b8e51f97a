"""From decoded fields to a draft: defaults filled in and plugin sets merged, but nothing validated yet.

Validation and building look at the draft, because the original's complaints are about defaulted values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from fairlead.kube.config.plugin_args import Args, typed_args
from fairlead.kube.config.plugin_sets import Plugins, merge_plugins, needed_plugins, read_plugins
from fairlead.kube.config.records import ClientConnection, ExtenderConfig, ExtenderTls, LeaderElection, ManagedResource
from fairlead.kube.config.shapes import PLUGIN_ARGS

if TYPE_CHECKING:
    from fairlead.kube.config.gates import Gates

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DraftArgs:
    """An entry of pluginConfig; `at` is its place in the file, None for one that was filled in."""

    name: str
    args: Args
    at: int | None = None


@dataclass(frozen=True, slots=True)
class DraftProfile:
    scheduler_name: str
    percentage: int | None
    user: Plugins
    plugins: Plugins
    plugin_config: tuple[DraftArgs, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    profiles: tuple[DraftProfile, ...]
    leader_election: LeaderElection
    client_connection: ClientConnection
    extenders: tuple[ExtenderConfig, ...]
    parallelism: int
    percentage: int | None
    pod_initial_backoff_seconds: int
    pod_max_backoff_seconds: int
    enable_profiling: bool
    enable_contention_profiling: bool
    delay_cache_until_active: bool


def draft_configuration(decoded: Fields, gates: Gates) -> Draft:
    profiles = decoded.get("profiles") or [{}]
    if len(profiles) == 1 and "schedulerName" not in profiles[0]:
        profiles = [{**profiles[0], "schedulerName": "default-scheduler"}]
    profiling = decoded.get("enableProfiling", True)
    return Draft(
        profiles=tuple(_profile(profile, gates) for profile in profiles),
        leader_election=_leader_election(decoded.get("leaderElection", {})),
        client_connection=_client_connection(decoded.get("clientConnection", {})),
        extenders=tuple(read_extender(extender) for extender in decoded.get("extenders", ())),
        parallelism=decoded.get("parallelism", 16),
        percentage=decoded.get("percentageOfNodesToScore"),
        pod_initial_backoff_seconds=decoded.get("podInitialBackoffSeconds", 1),
        pod_max_backoff_seconds=decoded.get("podMaxBackoffSeconds", 10),
        enable_profiling=profiling,
        enable_contention_profiling=decoded.get("enableContentionProfiling", profiling),
        delay_cache_until_active=decoded.get("delayCacheUntilActive", False),
    )


def _profile(written: Fields, gates: Gates) -> DraftProfile:
    user = read_plugins(written.get("plugins", {}))
    plugins = merge_plugins(user, gates)
    configured = [_draft_args(entry, at, gates) for at, entry in enumerate(written.get("pluginConfig", ()))]
    known = {entry.name for entry in configured}
    filled = [
        DraftArgs(name, typed_args(name, {}, gates))
        for name in needed_plugins(plugins)
        if name in PLUGIN_ARGS and name not in known
    ]
    return DraftProfile(
        scheduler_name=written.get("schedulerName", ""),
        percentage=written.get("percentageOfNodesToScore"),
        user=user,
        plugins=plugins,
        plugin_config=(*configured, *filled),
    )


def _draft_args(entry: Fields, at: int, gates: Gates) -> DraftArgs:
    name, args = entry.get("name", ""), entry.get("args")
    if name in PLUGIN_ARGS:
        return DraftArgs(name, typed_args(name, args or {}, gates), at)
    return DraftArgs(name, {} if args is None else args, at)


def _leader_election(written: Fields) -> LeaderElection:
    """A duration of zero and an empty name count as not written."""
    default = LeaderElection()
    return LeaderElection(
        leader_elect=written.get("leaderElect", True),
        lease_duration=written.get("leaseDuration") or default.lease_duration,
        renew_deadline=written.get("renewDeadline") or default.renew_deadline,
        retry_period=written.get("retryPeriod") or default.retry_period,
        resource_lock=written.get("resourceLock") or default.resource_lock,
        resource_name=written.get("resourceName") or default.resource_name,
        resource_namespace=written.get("resourceNamespace") or default.resource_namespace,
    )


def _client_connection(written: Fields) -> ClientConnection:
    default = ClientConnection()
    return ClientConnection(
        kubeconfig=written.get("kubeconfig", ""),
        accept_content_types=written.get("acceptContentTypes", ""),
        content_type=written.get("contentType") or default.content_type,
        qps=written.get("qps") or default.qps,
        burst=written.get("burst") or default.burst,
    )


def read_extender(written: Fields) -> ExtenderConfig:
    tls = written.get("tlsConfig")
    return ExtenderConfig(
        url_prefix=written.get("urlPrefix", ""),
        filter_verb=written.get("filterVerb", ""),
        preempt_verb=written.get("preemptVerb", ""),
        prioritize_verb=written.get("prioritizeVerb", ""),
        bind_verb=written.get("bindVerb", ""),
        weight=written.get("weight", 0),
        enable_https=written.get("enableHTTPS", False),
        tls=None if tls is None else _tls(tls),
        http_timeout=written.get("httpTimeout") or 5.0,
        node_cache_capable=written.get("nodeCacheCapable", False),
        managed_resources=tuple(
            ManagedResource(resource.get("name", ""), resource.get("ignoredByScheduler", False))
            for resource in written.get("managedResources", ())
        ),
        ignorable=written.get("ignorable", False),
    )


TLS_NAMES = {
    "insecure": "insecure", "serverName": "server_name", "certFile": "cert_file", "keyFile": "key_file",
    "caFile": "ca_file", "certData": "cert_data", "keyData": "key_data", "caData": "ca_data",
}  # fmt: skip
assert set(TLS_NAMES.values()) == {tls.name for tls in fields(ExtenderTls)}


def _tls(written: Fields) -> ExtenderTls:
    return ExtenderTls(**{TLS_NAMES[name]: value for name, value in written.items()})
