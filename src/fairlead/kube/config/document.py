"""A KubeConfig back to the document that kube-scheduler would write for it, and the difference between two.

The document is what `kube-scheduler --write-config-to` writes, field for field, and loads again to an equal
configuration. The one addition is `percentageOfNodesToScore: null`, which says that every node is scored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.config.problems import Path, dotted
from fairlead.core.model.durations import format_duration
from fairlead.kube.config.draft import TLS_NAMES
from fairlead.kube.config.plugin_args import args_document
from fairlead.kube.config.shapes import API_VERSION, KIND, POINTS

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.kube.config.plugin_sets import PluginSet
    from fairlead.kube.config.records import (
        ClientConnection,
        ExtenderConfig,
        ExtenderTls,
        KubeConfig,
        KubeProfile,
        LeaderElection,
    )


def to_document(config: KubeConfig) -> Doc:
    document: Doc = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "clientConnection": _client_connection(config.client_connection),
        "enableContentionProfiling": config.enable_contention_profiling,
        "enableProfiling": config.enable_profiling,
        "leaderElection": _leader_election(config.leader_election),
        "parallelism": config.parallelism,
        "percentageOfNodesToScore": config.percentage_of_nodes_to_score,
        "podInitialBackoffSeconds": config.pod_initial_backoff_seconds,
        "podMaxBackoffSeconds": config.pod_max_backoff_seconds,
        "profiles": [_profile(profile) for profile in config.profiles],
    }
    if config.extenders:
        document["extenders"] = [_extender(extender) for extender in config.extenders]
    if config.delay_cache_until_active:
        document["delayCacheUntilActive"] = True
    return document


def _client_connection(connection: ClientConnection) -> Doc:
    return {
        "acceptContentTypes": connection.accept_content_types,
        "burst": connection.burst,
        "contentType": connection.content_type,
        "kubeconfig": connection.kubeconfig,
        "qps": int(connection.qps) if connection.qps == int(connection.qps) else connection.qps,
    }


def _leader_election(election: LeaderElection) -> Doc:
    return {
        "leaderElect": election.leader_elect,
        "leaseDuration": format_duration(election.lease_duration),
        "renewDeadline": format_duration(election.renew_deadline),
        "resourceLock": election.resource_lock,
        "resourceName": election.resource_name,
        "resourceNamespace": election.resource_namespace,
        "retryPeriod": format_duration(election.retry_period),
    }


def _profile(profile: KubeProfile) -> Doc:
    document: Doc = {
        "schedulerName": profile.scheduler_name,
        "plugins": {point: _plugin_set(profile.plugins[point]) for point in sorted((*POINTS, "multiPoint"))},
    }
    if profile.own_percentage_of_nodes_to_score is not None:
        document["percentageOfNodesToScore"] = profile.own_percentage_of_nodes_to_score
    if profile.args:
        document["pluginConfig"] = [
            {"name": name, "args": args_document(name, args)} for name, args in sorted(profile.args.items())
        ]
    return document


def _plugin_set(plugin_set: PluginSet) -> Doc:
    document: Doc = {}
    if plugin_set.enabled:
        document["enabled"] = [{"name": ref.name, "weight": ref.weight} for ref in plugin_set.enabled]
    if plugin_set.disabled:
        document["disabled"] = [{"name": name, "weight": 0} for name in plugin_set.disabled]
    return document


def _extender(extender: ExtenderConfig) -> Doc:
    optional: Doc = {
        "filterVerb": extender.filter_verb,
        "preemptVerb": extender.preempt_verb,
        "prioritizeVerb": extender.prioritize_verb,
        "weight": extender.weight,
        "bindVerb": extender.bind_verb,
        "enableHTTPS": extender.enable_https,
        "nodeCacheCapable": extender.node_cache_capable,
        "managedResources": [
            {"name": resource.name, **({"ignoredByScheduler": True} if resource.ignored_by_scheduler else {})}
            for resource in extender.managed_resources
        ],
        "ignorable": extender.ignorable,
    }
    written = {key: value for key, value in optional.items() if value}
    if extender.tls is not None:
        written["tlsConfig"] = _tls(extender.tls)
    return {"urlPrefix": extender.url_prefix, "httpTimeout": format_duration(extender.http_timeout), **written}


def _tls(tls: ExtenderTls) -> Doc:
    values = {name: getattr(tls, attribute) for name, attribute in TLS_NAMES.items()}
    return {name: value for name, value in values.items() if value}


@dataclass(frozen=True, slots=True)
class ConfigDifference:
    """One place where two configurations differ; `None` on the side where there is nothing."""

    path: str
    before: Any
    after: Any


def diff(before: KubeConfig, after: KubeConfig) -> list[ConfigDifference]:
    """Where the effective configurations differ. Profiles, plugins, args and extenders are matched by name."""
    return list(_differences((), _by_name(to_document(before)), _by_name(to_document(after))))


_NAMES = ("schedulerName", "name", "urlPrefix")


def _by_name(value: Any) -> Any:
    """Lists become mappings, by name where items have one, so that an insertion is one difference and not many."""
    if isinstance(value, dict):
        return {key: _by_name(inner) for key, inner in value.items()}
    if isinstance(value, list):
        items = [_by_name(item) for item in value]
        key = next((name for name in _NAMES if items and all(isinstance(i, dict) and name in i for i in items)), None)
        if key and len({item[key] for item in items}) == len(items):
            return {f"[{item[key]}]": item for item in items}
        return {f"[{at}]": item for at, item in enumerate(items)}
    return value


def _differences(path: Path, before: Any, after: Any) -> Iterator[ConfigDifference]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        common = [key for key in before if key in after]
        moved = [key for key in after if key in before]
        if common != moved and common[0].startswith("["):
            yield ConfigDifference(f"{_place(path)} (order)", _names(common), _names(moved))
        for key in sorted({*before, *after}):
            yield from _differences((*path, key), before.get(key), after.get(key))
    elif before != after:
        yield ConfigDifference(_place(path), _plain(before), _plain(after))


def _place(path: Path) -> str:
    return dotted(path).replace(".[", "[")


def _names(keys: list[str]) -> list[str]:
    return [key.strip("[]") for key in keys]


def _plain(value: Any) -> Any:
    """The lists of a document again."""
    if isinstance(value, dict):
        inner = {key: _plain(item) for key, item in value.items()}
        return list(inner.values()) if inner and all(key.startswith("[") for key in inner) else inner
    return value
