"""From the command line of `fairlead scheduler` to its configuration and its connection."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import yaml

from fairlead.assembly.loading import read_config
from fairlead.assembly.registry import PluginRegistry
from fairlead.client.client import KubeApi
from fairlead.client.credentials import Connection, connect
from fairlead.core.model import kinds
from fairlead.errors import ApiError, ConfigError
from fairlead.kube.config.document import to_document
from fairlead.kube.config.kube import default_kube_config
from fairlead.kube.config.policy import policy_from_config_map, provided_config, read_policy

if TYPE_CHECKING:
    from fairlead.cli.scheduler_flags import ClusterFlags, LeaderFlags, SchedulerFlags
    from fairlead.core.model.flow import Doc
    from fairlead.kube.config.records import KubeConfig

log = logging.getLogger("fairlead.scheduler")


def effective_config(flags: SchedulerFlags) -> KubeConfig:
    """The file, or the default with the flags that a file would make meaningless; and flags about leading over both."""
    given, capabilities = flags.config, PluginRegistry().capabilities
    if given.policy_configmap is not None:
        found = asyncio.run(_config_map(flags.cluster, given.policy_configmap_namespace, given.policy_configmap))
        config = policy_from_config_map(found, capabilities=capabilities, gates=given.gates)
    elif given.policy_config_file is not None:
        config = read_policy(given.policy_config_file, capabilities=capabilities, gates=given.gates)
    elif given.algorithm_provider is not None:
        config = provided_config(given.algorithm_provider, capabilities=capabilities, gates=given.gates)
    elif given.config is not None:
        config = read_config(given.config, capabilities=capabilities, gates=given.gates)
    else:
        config = default_kube_config(capabilities=capabilities, gates=given.gates)
        cluster = flags.cluster
        client = _overridden(config.client_connection, qps=cluster.kube_api_qps, burst=cluster.kube_api_burst)
        config = replace(config, client_connection=client)
    for notice in config.notices:
        log.warning(notice)
    return with_leader_flags(config, flags.leader)


async def _config_map(flags: ClusterFlags, namespace: str, name: str) -> Doc:
    """The ConfigMap with the policy, read once at the start, as kube-scheduler did."""
    api = KubeApi(connection_of(flags, default_kube_config()))
    try:
        found = await api.get(kinds.CONFIG_MAP, namespace, name)
        return {**found, "kind": kinds.CONFIG_MAP.kind, "apiVersion": kinds.CONFIG_MAP.api_version}
    except ApiError as error:
        raise ConfigError(f"cannot be read: {error}", file=f"ConfigMap {namespace}/{name}") from error
    finally:
        await api.close()


def with_leader_flags(config: KubeConfig, flags: LeaderFlags) -> KubeConfig:
    return replace(config, leader_election=_overridden(config.leader_election, **asdict(flags)))


def _overridden(record: Any, **said: Any) -> Any:
    return replace(record, **{name: value for name, value in said.items() if value is not None})


def written_config(config: KubeConfig) -> str:
    return yaml.safe_dump(to_document(config), sort_keys=True)


def connection_of(flags: ClusterFlags, config: KubeConfig) -> Connection:
    if flags.master and not (flags.kubeconfig or config.client_connection.kubeconfig):
        return Connection.to(flags.master)
    flag = None if flags.kubeconfig is None else str(flags.kubeconfig)
    found = connect(flag, flags.context, configured=config.client_connection.kubeconfig)
    return replace(found, server=flags.master.rstrip("/")) if flags.master else found
