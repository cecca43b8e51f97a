"""A cluster that is scheduled with the Volcano profile, on virtual time: nodes, queues, gangs, and what each queue
holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from fairlead.assembly.presets import first_profile
from fairlead.core.engine.scheduler import Options, Scheduler
from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from fairlead.core.model.kinds import Kind
from fairlead.core.model.quota import has_ended, pod_amounts
from fairlead.core.model.usage import UsageBoard
from fairlead.core.state.cluster import PodPlace
from fairlead.testing.builders import Builder, NodeBuilder, PodBuilder, podgroup
from fairlead.testing.builders import pod as pod_builder
from fairlead.testing.harness import Harness
from fairlead.volcano.config.build import profile_of_volcano
from fairlead.volcano.config.options import VolcanoOptions
from fairlead.volcano.config.reading import load_volcano_config
from fairlead.volcano.kinds import VC_POD_GROUP
from fairlead.volcano.mode import RoundMode
from fairlead.volcano.queues.controller import FirstQueues
from fairlead.volcano.records.amounts import Amounts
from fairlead.volcano.rounds.driver import RoundDriver
from fairlead.volcano.topology.controller import SYSTEM_NAMESPACE
from tests.support.documents import GROUP


def conf(actions: str, *tiers: str) -> str:
    """Plugins of a tier are separated by `;`, their switches and arguments in YAML's flow style after the name."""
    lines = [f'actions: "{actions}"', "tiers:"]
    for tier in tiers:
        lines.append("- plugins:")
        for plugin in tier.split(";"):
            name, _, body = plugin.strip().partition(" ")
            lines.append(f"  - {{name: {name}{', ' + body if body else ''}}}")
    return "\n".join(lines) + "\n"


def config_map(name: str, key: str, document: Any) -> list[Doc]:
    """The namespace of Volcano's controllers, and in it a ConfigMap with a document under one key."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}
    data = {key: document if isinstance(document, str) else yaml.safe_dump(document)}
    metadata = {"name": name, "namespace": SYSTEM_NAMESPACE}
    return [space, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}]


def round_drivers(scheduler: Scheduler) -> list[RoundDriver]:
    """The drivers of the scheduler's profiles that work in rounds."""
    modes = [mode for mode in scheduler.modes if isinstance(mode, RoundMode)]
    return [driver for mode in modes for driver in mode.drivers]


class VolcanoHarness(Harness):
    """`scheduler` serves the default kube profile and the configuration's, as one. `flags` are further options of
    a Volcano profile."""

    def __init__(
        self,
        text: str,
        nodes: Iterable[NodeBuilder],
        *,
        queues: Iterable[Builder] = (),
        compatible: bool = False,
        seed: int = 1,
        slice: int | None = None,
        flags: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.usage = UsageBoard()
        profile = profile_of_volcano(
            load_volcano_config(text, compatible=compatible),
            VolcanoOptions(slice=slice, usage=self.usage, documents=self._document, **(flags or {})),
        )
        self.scheduler = Scheduler([first_profile(), profile], Options(seed=seed))
        super().__init__(
            nodes=list(nodes), schedulers=[lambda _: self.scheduler], controllers=[FirstQueues], seed=seed, **options
        )
        self.apply(*queues)
        self.run(1)

    def _document(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        return self.store.get(kind, namespace, name)

    # ---- work ----

    def gang(
        self,
        name: str,
        minimum: int,
        *,
        queue: str = "default",
        members: int | None = None,
        asks: Mapping[str, str] | None = None,
        needs: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        """A group and its pods at once. `needs` are its minResources; `more` goes to `member`."""
        group = podgroup(name, minimum).in_queue(queue)
        if needs is not None:
            group = group.having(minResources=dict(needs))
        if class_name := more.pop("priority_class", ""):
            group = group.having(priorityClassName=class_name)
        self.apply(group)
        self.apply(*(self.member(name, at, asks, **more) for at in range(members or minimum)))

    def member(
        self, group: str, at: int, asks: Mapping[str, str] | None = None, *, run_time: str = "", pod_class: str = ""
    ) -> PodBuilder:
        built = pod_builder(f"{group}-w-{at}").annotated({GROUP: group}).scheduled_by("volcano")
        built = built.asks(dict(asks or {})) if asks else built
        built = built.running_for(run_time).restarting("Never") if run_time else built
        return built.of_priority(pod_class) if pod_class else built

    # ---- looking ----

    def group(self, name: str) -> Doc:
        found = self.get(VC_POD_GROUP, name)
        assert found is not None
        return found

    def phase(self, name: str) -> str:
        return str((self.group(name).get("status") or {}).get("phase", ""))

    def running(self, prefix: str = "") -> Counter[str]:
        """By group, the pods that hold a place and are not on their way out."""
        counts: Counter[str] = Counter()
        for pod in self.list(kinds.POD):
            metadata = pod["metadata"]
            if pod["spec"].get("nodeName") and not has_ended(pod) and not metadata.get("deletionTimestamp"):
                group = (metadata.get("annotations") or {}).get(GROUP, "")
                if group and group.startswith(prefix):
                    counts[group] += 1
        return counts

    def held(self) -> dict[str, Amounts]:
        """By queue, what its pods hold on nodes: those being bound and those on their way out included."""
        queues = {
            f"{group.namespace}/{group.name}": group.queue or "default"
            for group in self.scheduler.cluster.object_index.of(VC_POD_GROUP).values()
        }
        held: dict[str, Amounts] = {}
        for pod_state in self.scheduler.cluster.pods.values():
            if pod_state.place not in (PodPlace.PENDING,) and pod_state.seen.annotations.get(GROUP):
                queue = queues.get(f"{pod_state.seen.namespace}/{pod_state.seen.annotations[GROUP]}")
                if queue is not None:
                    held.setdefault(queue, Amounts()).add(Amounts.of(dict(pod_state.seen.request)))
        return held

    def held_cpu(self, queue: str) -> float:
        """In cores, of pods that are not on their way out, as the API shows it."""
        total = 0
        for pod in self.list(kinds.POD):
            name = (pod["metadata"].get("annotations") or {}).get(GROUP, "")
            group = self.get(VC_POD_GROUP, name) if name else None
            if group is None or not pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
                continue
            if (group["spec"].get("queue") or "default") == queue and not has_ended(pod):
                total += pod_amounts(pod["spec"], "requests").get("cpu", 0)
        return total / 10**9

    def evictions(self) -> int:
        return sum(event.get("reason") == "Evict" for event in self.list(kinds.EVENT))
