"""KubeSchedulerConfiguration as frozen records, for the rest of fairlead.

Names follow the format, in Python's spelling; durations are seconds. Everything is filled in: a reader never needs to
know a default. Only `percentage_of_nodes_to_score` may be None, and that means that every node is scored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.kube.config.gates import DEFAULT_GATES, Gates

if TYPE_CHECKING:
    from fairlead.kube.config.plugin_args import Args
    from fairlead.kube.config.plugin_sets import Plugins, Points


@dataclass(frozen=True, slots=True)
class LeaderElection:
    leader_elect: bool = True
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


@dataclass(frozen=True, slots=True)
class ClientConnection:
    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: int = 100


@dataclass(frozen=True, slots=True)
class ExtenderTls:
    """`*_data` is base64 text, as in the file."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = ""


@dataclass(frozen=True, slots=True)
class ManagedResource:
    name: str
    ignored_by_scheduler: bool = False


@dataclass(frozen=True, slots=True)
class ExtenderConfig:
    """An HTTP extender; an empty verb is not supported by it. Its name is its URL."""

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = False
    tls: ExtenderTls | None = None
    http_timeout: float = 5.0
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


@dataclass(frozen=True, slots=True)
class KubeProfile:
    """One scheduler name. `points` has the effective plugins of every extension point in order, with weights;
    `plugins` has the sets that they came from, as the original writes them back."""

    scheduler_name: str
    points: Points
    args: Mapping[str, Args]
    plugins: Plugins
    percentage_of_nodes_to_score: int | None = None
    """The profile's own, else the configuration's. None: every node; 0: the original's adaptive formula."""
    own_percentage_of_nodes_to_score: int | None = None

    @property
    def listed(self) -> frozenset[str]:
        """The plugins that take part at any point."""
        return frozenset(name for entries in self.points.values() for name, _ in entries)

    @property
    def weights(self) -> Mapping[str, int]:
        """The weight of each scoring plugin."""
        return dict(self.points["score"])


@dataclass(frozen=True, slots=True)
class KubeConfig:
    """A whole configuration. `notices` are remarks for the log that change nothing."""

    profiles: tuple[KubeProfile, ...]
    parallelism: int = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    extenders: tuple[ExtenderConfig, ...] = ()
    delay_cache_until_active: bool = False
    notices: tuple[str, ...] = field(default=(), compare=False)
    gates: Gates = field(default=DEFAULT_GATES, compare=False)

    @property
    def extenders_in_order(self) -> tuple[ExtenderConfig, ...]:
        """Extenders in the order in which they are called: ignorable ones come last."""
        return tuple(sorted(self.extenders, key=lambda extender: extender.ignorable))

    def profile(self, scheduler_name: str) -> KubeProfile | None:
        return next((profile for profile in self.profiles if profile.scheduler_name == scheduler_name), None)
