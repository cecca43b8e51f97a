"""LicensePools: writes into the status of each pool how many of its seats are used."""

from collections.abc import Iterable

from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import patch_status
from fairlead.core.model.flow import Change, Watch, Write
from fairlead.core.model.kinds import POD
from license_seats.kinds import LICENSE_POOL, POOL_LABEL


class LicensePools(Reconciler[str]):
    name = "license-pool-controller"
    watches = (Watch(LICENSE_POOL), Watch(POD))

    def observe(self, change: Change) -> None:
        metadata = change.doc["metadata"]
        pool = metadata["name"] if change.kind is LICENSE_POOL else (metadata.get("labels") or {}).get(POOL_LABEL)
        if pool:
            self.queue.add(pool)

    def visit(self, key: str, now: float) -> Iterable[Write]:
        pool = self.view.get(LICENSE_POOL, "", key)
        if pool is None:
            return
        used = sum(_takes_seat(pod, key) for pod in self.view.list(POD))
        if (pool.get("status") or {}).get("used") != used:
            yield patch_status(LICENSE_POOL, pool, {"used": used})


def _takes_seat(pod: dict, pool: str) -> bool:
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    placed = bool(pod["spec"].get("nodeName"))
    return placed and not ended and (pod["metadata"].get("labels") or {}).get(POOL_LABEL) == pool
