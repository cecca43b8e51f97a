"""Random DeviceClasses and ResourceSlices: devices of several drivers, on nodes, beside them and in partitions."""

from __future__ import annotations

from random import Random
from typing import Any

Doc = dict[str, Any]

API = "resource.k8s.io/v1"
GPU, NIC = "gpu.example.com", "nic.example.com"
CLASSES = ("gpu", "nic", "any", "big", "h100", "part", "multi")
CARD = "example.com/card"
"""The extended resource that a class serves in some worlds."""
MODELS = ("a100", "h100", "t4")
TAINT_KEYS = ("health", "example.com/maint")
_ZONES = ("z1", "z2", "z3")
_GPU_ATTRIBUTES = f'device.attributes["{GPU}"]'
_MEMORY = f'device.capacity["{GPU}"].memory'
SELECTORS = tuple(
    text.replace("ATTRIBUTES", _GPU_ATTRIBUTES).replace("MEMORY", _MEMORY)
    for text in (
        'ATTRIBUTES.model == "h100"',
        'ATTRIBUTES.model != "t4"',
        "ATTRIBUTES.numa == 1",
        "ATTRIBUTES.slot % 2 == 0",
        'ATTRIBUTES.model.startsWith("h") || ATTRIBUTES.numa == 0',
        '"ecc" in ATTRIBUTES && ATTRIBUTES.ecc',
        "ATTRIBUTES.?ecc.orValue(false)",
        "has(ATTRIBUTES.slices) && ATTRIBUTES.slices >= 2",
        'MEMORY.compareTo(quantity("40Gi")) >= 0',
        'MEMORY.isGreaterThan(quantity("10Gi"))',
        "device.driver.size() > 3",
        'ATTRIBUTES.version.isGreaterThan(semver("1.5.0"))',
        "cel.bind(a, ATTRIBUTES, a.slot in [0, 1, 4])",
        'ATTRIBUTES.all(k, k != "none")',
        "!device.allowMultipleAllocations",
        'ATTRIBUTES.model.matches("^[ah]1")',
        'ATTRIBUTES.model in ["a100", "t4"]',
        "sets.contains([0, 1], [ATTRIBUTES.numa])",
        "ATTRIBUTES.missing == 1",
    )
)


def object_of(kind: str, name: str, *, namespace: str = "", **fields: Any) -> Doc:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": API, "kind": kind, "metadata": metadata, **fields}


def classes(rng: Random) -> list[Doc]:
    """One class of each name. Some carry configurations, and some serve an extended resource."""
    expressions = {
        "gpu": [f'device.driver == "{GPU}"'],
        "nic": [f'device.driver == "{NIC}"'],
        "any": [],
        "big": [f'device.driver == "{GPU}"', f'{_MEMORY}.compareTo(quantity("40Gi")) >= 0'],
        "h100": [f'device.driver == "{GPU}" && {_GPU_ATTRIBUTES}.model == "h100"'],
        "part": [f'device.driver == "{GPU}" && "slices" in {_GPU_ATTRIBUTES}'],
        "multi": [f'device.driver == "{GPU}" && device.allowMultipleAllocations'],
    }
    found = []
    for name, texts in expressions.items():
        spec: Doc = {"selectors": [{"cel": {"expression": text}} for text in texts]} if texts else {}
        if rng.random() < 0.2:
            spec["config"] = [config(rng) for _ in range(rng.randint(1, 2))]
        if name in ("gpu", "big") and rng.random() < 0.4:
            spec["extendedResourceName"] = CARD
        found.append(object_of("DeviceClass", name, spec=spec))
    return found


def config(rng: Random) -> Doc:
    return {"opaque": {"driver": rng.choice([GPU, NIC]), "parameters": {"kind": "Config", "n": rng.randint(1, 9)}}}


class Slices:
    """The slices of one world."""

    def __init__(self, rng: Random, nodes: list[str]) -> None:
        self._rng = rng
        self._nodes = nodes
        self._found: list[Doc] = []
        self._partitions = rng.random() < 0.3
        self._sharing = rng.random() < 0.35
        self._tainted = rng.random() < 0.35
        self._per_device = rng.random() < 0.15

    def all(self) -> list[Doc]:
        rng = self._rng
        for node in self._nodes:
            if rng.random() < 0.9:
                self._on_node(node)
            if rng.random() < 0.5:
                nics = [self._nic(at) for at in range(rng.randint(1, 3))]
                self._add(NIC, node, {"nodeName": node}, [nics])
        if self._partitions:
            for node in rng.sample(self._nodes, rng.randint(1, len(self._nodes))):
                self._partitioned(node)
        if rng.random() < 0.3:
            self._beside_nodes()
        if self._per_device:
            self._selected_one_by_one()
        return self._found

    def _add(self, driver: str, pool: str, where: Doc, parts: list[list[Doc]], **more: Any) -> None:
        """A pool in so many parts. Now and then one is missing, or of an older generation."""
        rng = self._rng
        generation, count = rng.choice([1, 1, 1, 3]), len(parts) + ("sharedCounters" in more)
        if rng.random() < 0.04:
            count += 1  # a part that never comes
        head = {"driver": driver, "pool": {"name": pool, "generation": generation, "resourceSliceCount": count}}
        name = f"{pool}-{driver.partition('.')[0]}-{len(self._found):02}"
        if more:
            self._found.append(object_of("ResourceSlice", f"{name}-counters", spec={**head, **where, **more}))
        for at, devices in enumerate(parts):
            spec = {**head, **where, "devices": devices}
            self._found.append(object_of("ResourceSlice", f"{name}-{rng.choice('abc')}{at}", spec=spec))
        if generation > 1 and rng.random() < 0.5:
            old = {**head, "pool": {**head["pool"], "generation": generation - 1, "resourceSliceCount": 1}}
            spec = {**old, **where, "devices": [self._gpu(9, name="old")]}
            self._found.append(object_of("ResourceSlice", f"{name}-old", spec=spec))

    def _on_node(self, node: str) -> None:
        rng = self._rng
        devices = [self._gpu(at) for at in range(rng.randint(1, 6))]
        cut = rng.randint(1, len(devices)) if rng.random() < 0.2 else len(devices)
        parts = [part for part in (devices[:cut], devices[cut:]) if part]
        self._add(GPU, node, {"nodeName": node}, parts)

    def _gpu(self, at: int, *, name: str = "") -> Doc:
        rng = self._rng
        attributes: Doc = {
            "model": {"string": rng.choice(MODELS)},
            "numa": {"int": rng.randint(0, 1)},
            f"{GPU}/slot": {"int": at},
            "version": {"version": rng.choice(["1.2.3", "1.10.0", "2.0.0-rc.1"])},
        }
        if rng.random() < 0.7:
            attributes["ecc"] = {"bool": rng.random() < 0.5}
        if rng.random() < 0.8:
            attributes["example.com/rack"] = {"string": rng.choice(["r1", "r2"])}
        memory: Doc = {"value": rng.choice(["16Gi", "40Gi", "80Gi"])}
        device: Doc = {"name": name or f"gpu-{at}", "attributes": attributes, "capacity": {"memory": memory}}
        if self._sharing and rng.random() < 0.6:
            device["allowMultipleAllocations"] = True
            if rng.random() < 0.6:
                memory["requestPolicy"] = rng.choice([
                    {"default": "4Gi", "validRange": {"min": "1Gi", "max": "12Gi", "step": "1Gi"}},
                    {"default": "2Gi", "validValues": ["2Gi", "8Gi", "16Gi"]},
                    {"default": "4Gi", "validRange": {"min": "2Gi"}},
                ])  # fmt: skip
        if self._tainted and rng.random() < 0.4:
            effect = rng.choice(["NoSchedule", "NoExecute", "None"])
            device["taints"] = [{"key": rng.choice(TAINT_KEYS), "value": rng.choice(["bad", "now"]), "effect": effect}]
        return device

    def _nic(self, at: int) -> Doc:
        rng = self._rng
        attributes = {
            "numa": {"int": rng.randint(0, 1)}, "speed": {"int": rng.choice([25, 100])},
            "example.com/rack": {"string": rng.choice(["r1", "r2"])},
        }  # fmt: skip
        return {"name": f"nic-{at}", "attributes": attributes, "capacity": {"bandwidth": {"value": "10G"}}}

    def _partitioned(self, node: str) -> None:
        """Cards of which whole, halves or sevenths can be had."""
        rng = self._rng
        cards = rng.randint(1, 2)
        counters = [
            {"name": f"card{card}", "counters": {"memory": {"value": "80Gi"}, "slices": {"value": "7"}}}
            for card in range(cards)
        ]
        devices = []
        for card in range(cards):
            for at, (slices, memory) in enumerate([(7, "80Gi"), (3, "40Gi"), (3, "40Gi"), (1, "10Gi"), (1, "10Gi")]):
                used = {"memory": {"value": memory}, "slices": {"value": str(slices)}}
                devices.append(
                    {
                        "name": f"mig-{card}-{at}",
                        "attributes": {
                            "slices": {"int": slices},
                            "card": {"int": card},
                            "model": {"string": "h100"},
                            "numa": {"int": card},
                            "slot": {"int": at},
                        },
                        "capacity": {"memory": {"value": memory}},
                        "consumesCounters": [{"counterSet": f"card{card}", "counters": used}],
                    }
                )
        rng.shuffle(devices)
        self._add(GPU, f"{node}-mig", {"nodeName": node}, [devices], sharedCounters=counters)

    def _beside_nodes(self) -> None:
        """A pool that all nodes can use, or those of some zones."""
        rng = self._rng
        where: Doc = {"allNodes": True}
        if rng.random() < 0.6:
            expression = {"key": "zone", "operator": "In", "values": rng.sample(_ZONES, rng.randint(1, 2))}
            where = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        devices = [self._gpu(at, name=f"far-{at}") for at in range(rng.randint(1, 4))]
        if rng.random() < 0.2:
            devices[0]["bindsToNode"] = True
        self._add(GPU, rng.choice(["a-far", "z-far"]), where, [devices])

    def _selected_one_by_one(self) -> None:
        rng = self._rng
        devices = []
        for at in range(rng.randint(2, 4)):
            expression = {"key": "zone", "operator": "In", "values": [rng.choice(_ZONES)]}
            selected = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
            where: Doc = rng.choice([{"nodeName": rng.choice(self._nodes)}, {"allNodes": True}, selected])
            devices.append({**self._gpu(at, name=f"each-{at}"), **where})
        self._add(GPU, "each", {"perDeviceNodeSelection": True}, [devices])
