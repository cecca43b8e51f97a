"""A cluster in which Volcano Jobs of `job_cases` live and end, under controllers that a test brings along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from fairlead.cluster.housekeeping import housekeepers
from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import Controller, Doc, DocView, Write
from fairlead.testing.builders import nodes
from fairlead.volcano.config.presets import PRESETS
from fairlead.volcano.family import VOLCANO_CONTROLLERS
from fairlead.volcano.kinds import VC_COMMAND, VC_JOB
from tests.support.job_cases import GONE, Case
from tests.support.volcano import VolcanoHarness

Ends = dict[str, tuple[str, int]]
C = TypeVar("C", bound=Controller)


def volcano_controllers(view: DocView) -> Controller:
    """All of Volcano's controllers, as one."""
    (controller,) = housekeepers(view, names=VOLCANO_CONTROLLERS)
    return controller


class _Harness(VolcanoHarness):
    def __init__(self, perform: Callable[[Store, Controller, Write], Doc], **options: Any) -> None:
        self._carry_out = perform
        super().__init__(PRESETS["shipped"], nodes(8), perform=self._perform, **options)

    def _perform(self, controller: Controller, write: Write) -> Doc:
        return self._carry_out(self.store, controller, write)


class JobCluster(Generic[C]):
    """Eight nodes, a scheduler with the Volcano profile, and `controllers` in the place of the usual ones of Volcano.
    `perform` carries out all writes, if it is given."""

    def __init__(
        self,
        cases: Sequence[Case],
        controllers: Callable[[Store], C],
        *,
        perform: Callable[[Store, Controller, Write], Doc] = lambda store, _, write: store.perform(write),
        **options: Any,
    ) -> None:
        without = ",".join(f"-{name}" for name in VOLCANO_CONTROLLERS)
        self.harness = _Harness(perform, housekeeping=without, **options)
        self.controllers = controllers(self.harness.store)
        self.harness.runtime.add(self.controllers)
        self.harness.run(1)  # queues open
        self._cases = cases
        self._open = {case.name: list(case.commands) for case in cases}

    def live(self) -> Ends:
        """Phase and retries of every Job, once all have ended."""
        for case in self._cases:
            self.harness.apply(case.document("default"))
        for _ in range(400):
            self.harness.run(0.5)
            open_ones = [case for case in self._cases if not self._has_ended(case)]
            if not open_ones:
                break
        self.harness.run(30)
        assert not self.harness.list(VC_COMMAND)
        return {case.name: self._state(case.name) for case in self._cases}

    def _has_ended(self, case: Case) -> bool:
        phase, _ = self._state(case.name)
        waiting = self._open[case.name]
        if waiting and waiting[0][0] == phase:
            self._command(case.name, waiting.pop(0)[1])
        return not waiting and phase == case.ends

    def _state(self, name: str) -> tuple[str, int]:
        job = self.harness.get(VC_JOB, name)
        if job is None:
            return GONE, 0
        status = job.get("status") or {}
        return (status.get("state") or {}).get("phase", ""), int(status.get("retryCount") or 0)

    def _command(self, name: str, action: str) -> None:
        job = self.harness.get(VC_JOB, name)
        assert job is not None
        target = {"apiVersion": VC_JOB.api_version, "kind": "Job", "name": name, "uid": job["metadata"]["uid"]}
        self.harness.apply(
            {
                "apiVersion": VC_COMMAND.api_version,
                "kind": "Command",
                "action": action,
                "target": target,
                "metadata": {"generateName": f"{name}-", "namespace": "default"},
            }
        )
