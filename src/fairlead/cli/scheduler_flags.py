"""The command line of `fairlead scheduler` as records, one for each part of the program that reads them."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from fairlead.kube.config.gates import Gates
    from fairlead.volcano.config.setup import VolcanoSetup

Group = TypeVar("Group")


@dataclass(frozen=True, slots=True)
class ConfigFlags:
    """Where the configuration is. One of the first four at most is given."""

    config: Path | None
    policy_config_file: Path | None
    policy_configmap: str | None
    algorithm_provider: str | None
    policy_configmap_namespace: str
    gates: Gates


@dataclass(frozen=True, slots=True)
class ClusterFlags:
    """How to reach the cluster, and how many requests it gets."""

    kubeconfig: Path | None
    context: str | None
    master: str | None
    kube_api_qps: float | None
    kube_api_burst: int | None


@dataclass(frozen=True, slots=True)
class LeaderFlags:
    """What is said of the lease; None is what was not said. Fields are called as in the configuration."""

    leader_elect: bool | None
    lease_duration: float | None
    renew_deadline: float | None
    retry_period: float | None
    resource_name: str | None
    resource_namespace: str | None


@dataclass(frozen=True, slots=True)
class PortFlags:
    """Where health, metrics and explanations are served, and to whom."""

    bind_address: str
    secure_port: int
    tls_cert_file: Path | None
    tls_private_key_file: Path | None
    authentication_token_file: Path | None
    authentication_kubeconfig: Path | None
    authorization_kubeconfig: Path | None
    authorization_always_allow_paths: tuple[str, ...]
    insecure_http: bool

    @property
    def on_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.bind_address).is_loopback
        except ValueError:
            return self.bind_address == "localhost"

    @property
    def asks_who(self) -> bool:
        """Whether the API server is asked who may use the port."""
        return bool(self.secure_port) and not self.insecure_http and self.authentication_token_file is None


@dataclass(frozen=True, slots=True)
class SchedulerFlags:
    config: ConfigFlags
    cluster: ClusterFlags
    leader: LeaderFlags
    port: PortFlags
    volcano: VolcanoSetup | None
    volcano_controllers: bool
    replace_refused_pods: bool
    evictions_in: tuple[str, str] | None
    first_lease: tuple[str, str] | None
    """Namespace and name of a lease that is taken before that of the configuration, and kept beside it."""
    tracing_endpoint: str | None
    unschedulable_limit: float
    verbosity: int

    @classmethod
    def of(cls, flags: Mapping[str, Any], volcano: VolcanoSetup | None) -> SchedulerFlags:
        """From what click gives, by the names of the options."""
        leader = {name.removeprefix("leader_elect_"): value for name, value in flags.items()}
        return cls(
            config=_group(ConfigFlags, flags),
            cluster=_group(ClusterFlags, flags),
            leader=_group(LeaderFlags, leader),
            port=_group(PortFlags, flags),
            volcano=volcano,
            volcano_controllers=flags["volcano_controllers"],
            replace_refused_pods=flags["replace_refused_pods"],
            evictions_in=flags["evictions_in"],
            first_lease=flags["first_lease"],
            tracing_endpoint=flags["tracing_endpoint"],
            unschedulable_limit=flags["unschedulable_limit"],
            verbosity=flags["verbosity"],
        )


def _group(made: type[Group], flags: Mapping[str, Any]) -> Group:
    return made(**{field.name: flags[field.name] for field in fields(made)})  # type: ignore[arg-type]
