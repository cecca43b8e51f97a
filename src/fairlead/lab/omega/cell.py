"""Cell: the machines of an experiment, as a Cluster whose node table holds claims instead of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.core.state.statement import Statement
from fairlead.lab.omega.setup import GIB, MILLI, CellSpec
from fairlead.lab.omega.transactions import TableView

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairlead.core.state.table import ClaimAmounts

RESOURCES = ("cpu", "memory")


class Cell:
    def __init__(self, spec: CellSpec) -> None:
        self.cluster = Cluster()
        self.machines = spec.machines
        allocatable = {"cpu": f"{round(spec.cpus * MILLI)}m", "memory": str(round(spec.mem * GIB)), "pods": "110"}
        for machine in range(spec.machines):
            name = f"machine-{machine}"
            doc = {"metadata": {"name": name, "uid": name}, "status": {"allocatable": allocatable}}
            self.cluster.apply(Change(Happened.ADDED, kinds.NODE, doc))
        self.total = dict.fromkeys(RESOURCES, 0)
        self.recount()
        self.occupied = dict.fromkeys(RESOURCES, 0)
        self.locked = dict.fromkeys(RESOURCES, 0)
        for machine, (cpus, mem) in enumerate(spec.taken):
            amounts = {"cpu": round(cpus * MILLI), "memory": round(mem * GIB)}
            self.claim(np.array([machine]), amounts)

    def recount(self) -> None:
        """Sum up what the nodes have, after some were added."""
        self.total = {name: int(self.cluster.table.allocatable_column(name).sum()) for name in RESOURCES}

    def view(self) -> TableView:
        return TableView(self.cluster.table, RESOURCES)

    def free(self, resource: str) -> int:
        return self.total[resource] - self.occupied[resource] - self.locked[resource]

    # ---- claims ----

    def claim(self, rows: NDArray[np.int64], amounts: Mapping[str, int]) -> None:
        """Take amounts on rows that have room for them."""
        self._apply(rows, amounts)
        self.count(len(rows), amounts)

    def count(self, claims: int, amounts: Mapping[str, int]) -> None:
        """Count claims that a commit made, or with a negative number what ended."""
        for name, amount in amounts.items():
            self.occupied[name] += claims * amount

    def release(self, rows: NDArray[np.int64], amounts: Mapping[str, int]) -> None:
        self.cluster.table.release(rows, amounts)
        self.count(-len(rows), amounts)

    def _apply(self, rows: NDArray[np.int64], amounts: ClaimAmounts) -> None:
        statement = Statement(self.cluster)
        statement.claim(rows, amounts)
        statement.commit()

    # ---- locks ----

    def lock(self, view: TableView) -> None:
        """Claim all that a view has free, so that nobody else can."""
        self._apply(np.arange(self.machines), view.free)
        for name, column in view.free.items():
            self.locked[name] += int(column.sum())

    def unlock(self, free: Mapping[str, NDArray[np.int64]]) -> None:
        self.cluster.table.release(np.arange(self.machines), free)
        for name, column in free.items():
            self.locked[name] -= int(column.sum())
