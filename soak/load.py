"""Load: pods one by one and in gangs, in both modes at once, and what must have become of them in the end.

Of every sixteen pods four are kube's, four are a gang of kube's, four a gang of Volcano's, and four are Volcano's, each
for itself. Where no Volcano profile is served, all are kube's, one by one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from soak.cluster import GROUPS, PODS, Call, pod, pod_group

if TYPE_CHECKING:
    from soak.stage import Stage

GANG = 4
PATIENCE = 240.0
_MODES = ((False, False), (False, True), (True, True), (True, False))
"""Of each block of pods: whether it is Volcano's, and whether it is a gang."""


@dataclass
class Load:
    stage: Stage
    kube_only: bool = False
    """Whether all pods and gangs are kube's."""
    expected: list[str] = field(default_factory=list)
    """Pods that must have nodes in the end."""
    minimums: dict[str, int] = field(default_factory=dict)
    """Members that each gang needs."""

    def calls(
        self, prefix: str, count: int, *, cpu: str = "100m", priority: str = "", alone: bool = False
    ) -> list[Call]:
        """The requests that make so many pods, in gangs unless `alone`; groups come before their members."""
        groups: list[Call] = []
        pods: list[Call] = []
        for first in range(0, count, GANG):
            names = [f"{prefix}-{at}" for at in range(first, min(count, first + GANG))]
            volcano, together = _MODES[first // GANG % len(_MODES)]
            volcano, together = volcano and not self.kube_only, together and not alone
            self.expected += names
            if not self.stage.volcano or not (volcano or together):
                pods += [("POST", PODS, pod(name, cpu=cpu, priority=priority)) for name in names]
                continue
            group = f"{prefix}-g{first}"
            if together:
                self.minimums[group] = len(names)
                groups.append(("POST", GROUPS, pod_group(group, len(names), priority=priority)))
            for name in names:
                mine = group if together else f"{name}-alone"
                if not together:
                    groups.append(("POST", GROUPS, pod_group(mine, 1, priority=priority)))
                scheduler = "volcano" if volcano else "default-scheduler"
                made = pod(name, cpu=cpu, scheduler=scheduler, group=mine, priority=priority)
                pods.append(("POST", PODS, made))
        return [*groups, *pods]

    def make(self, prefix: str, count: int, *, cpu: str = "100m", priority: str = "", alone: bool = False) -> list[str]:
        """So many pods, at once; their names."""
        before = len(self.expected)
        self.stage.cluster.many(self.calls(prefix, count, cpu=cpu, priority=priority, alone=alone))
        return self.expected[before:]

    def begin(self) -> None:
        """Until the scheduler has placed something, so that it is known to be at work in both scheduling modes."""
        first = self.make("first", len(_MODES) * GANG, cpu="1m")
        self.stage.cluster.wait_bound(first, PATIENCE)

    def settle(self, seconds: float = PATIENCE) -> None:
        """Until all that is expected has nodes, or the patience is over: then the validator says what is missing."""
        try:
            self.stage.cluster.wait_bound(self.expected, seconds)
        except TimeoutError as error:
            self.stage.say(str(error))
        time.sleep(2)
