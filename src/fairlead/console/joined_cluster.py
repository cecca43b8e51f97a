"""How `fairlead controllers` and `fairlead descheduler` reach a cluster: connection, lease and pace of requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fairlead.client.credentials import Connection
    from fairlead.client.retry import Throttle
    from fairlead.console.roles.needs import Tasks
    from fairlead.core.model.flow import Controller
    from fairlead.runtime.leader import Elector
    from fairlead.runtime.worlds import Remote


class JoinFlags(NamedTuple):
    """Kubeconfig and context; namespace and name of the lease, if there is an election; requests a second and at
    once, no limit if not positive."""

    kubeconfig: Path | None
    context: str | None
    lease: tuple[str, str] | None
    qps: float
    burst: int

    def throttle(self) -> Throttle | None:
        from fairlead.client.retry import Throttle

        return Throttle(self.qps, max(1, self.burst)) if self.qps > 0 else None


class JoinedCluster(NamedTuple):
    """A cluster that controllers can act on; what is put into `opened` is closed with it."""

    world: Remote
    elector: Elector | None
    opened: AsyncExitStack
    connection: Connection
    lease: tuple[str, str] | None

    def review(self, tasks: Tasks, controllers: Iterable[Controller]) -> None:
        """Have the log say which rights this process lacks for what it does."""
        from fairlead.console.leading import in_background
        from fairlead.console.roles.review import review_rights

        needs = tasks.needs(watch for one in controllers for watch in one.watches)
        in_background(self.opened, review_rights(self.connection, needs, [self.lease] if self.lease else []))


@asynccontextmanager
async def joined(cluster: JoinFlags) -> AsyncIterator[JoinedCluster]:
    """Connect to a cluster. Writes go out only while the lease is held."""
    from fairlead.client.client import KubeApi
    from fairlead.client.credentials import connect
    from fairlead.console.leading import may_write_of
    from fairlead.runtime.leader import Election, Elector
    from fairlead.runtime.worlds import Remote
    from fairlead.runtime.writers import SendingRules

    connection = connect(None if cluster.kubeconfig is None else str(cluster.kubeconfig), cluster.context)
    async with AsyncExitStack() as opened:
        elector: Elector | None = None
        if cluster.lease is not None:
            own = KubeApi(connection)
            opened.push_async_callback(own.close)
            namespace, name = cluster.lease
            elector = Elector(own, Election(name, namespace))
        may_write, throttle = may_write_of(elector), cluster.throttle()
        api = KubeApi(connection, throttle=throttle, may_write=may_write)
        opened.push_async_callback(api.close)
        world = Remote(api, rules=SendingRules(may_write, throttle, cluster.throttle()))
        yield JoinedCluster(world, elector, opened, connection, cluster.lease)
