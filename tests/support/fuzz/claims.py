"""Random clusters with devices, and pods that claim them. What the API server would not store is left out.

A family says what the pods of a world have: claims of their own and templates, alternatives, counts and constraints,
extended resources, or priorities and victims. The devices of a world (devices.py) are drawn in the same way for all.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tests.support.fuzz.devices import CARD, CLASSES, GPU, SELECTORS, TAINT_KEYS, Slices, classes, config, object_of
from tests.support.fuzz.worlds import FuzzCluster

Doc = dict[str, Any]

CLAIM_FAMILIES = ("claims", "constraints", "alternatives", "shared", "extended", "evicting")
_ATTRIBUTES = (f"{GPU}/numa", f"{GPU}/model", "example.com/rack", f"{GPU}/version", f"{GPU}/slot")


def make_claim_world(seed: int, family: str) -> FuzzCluster:
    return _ClaimMaker(seed, family).world()


class _ClaimMaker:
    def __init__(self, seed: int, family: str) -> None:
        self._rng = Random(f"claims/{seed}/{family}")
        self._family = family
        self._made = FuzzCluster(seed, family)

    def world(self) -> FuzzCluster:
        rng, made = self._rng, self._made
        names = [f"n{at:02}" for at in range(rng.randint(2, 5))]
        made.nodes = [self._node(name) for name in names]
        slices = Slices(rng, names).all()
        made.objects = [*classes(rng), *slices]
        self._allocate_some(slices)
        if self._family == "evicting":
            made.existing = [self._victim(f"e{at:02}", rng.choice(names)) for at in range(rng.randint(2, 8))]
        count = 1 if self._family == "evicting" else rng.randint(3, 7)
        made.pods = [self._pod(f"p{at:02}") for at in range(count)]
        return made

    def _node(self, name: str) -> Doc:
        rng = self._rng
        offered = {"cpu": rng.choice(["4", "8"]), "memory": rng.choice(["8Gi", "16Gi"]), "pods": "20"}
        if self._family == "extended" and rng.random() < 0.3:
            offered[CARD] = rng.choice(["0", "2"])
        labels = {"kubernetes.io/hostname": name, "zone": rng.choice(["z1", "z2", "z3"])}
        spec = {"taints": [{"key": "own", "effect": "NoSchedule"}]} if rng.random() < 0.1 else {}
        status = {"capacity": offered, "allocatable": offered}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": status,
        }

    # ---- pods ----

    def _victim(self, name: str, node: str) -> Doc:
        rng = self._rng
        made = _pod(name, {"cpu": rng.choice(["1", "2", "3"])})
        made["spec"] |= {"nodeName": node, "priorityClassName": rng.choice(["p0", "p10", "p100"])}
        return made

    def _pod(self, name: str) -> Doc:
        rng = self._rng
        made = _pod(name, {"cpu": rng.choice(["100m", "500m", "1", "3"])} if rng.random() < 0.7 else {})
        spec = made["spec"]
        if self._family == "evicting":
            spec["priorityClassName"] = rng.choice(["p100", "p1000"])
            spec["containers"][0]["resources"]["requests"] = {"cpu": rng.choice(["3", "4", "6"])}
        if rng.random() < 0.1:
            spec["nodeSelector"] = {"zone": rng.choice(["z1", "z2"])}
        if self._family == "extended" and rng.random() < 0.9:
            self._ask_for_cards(spec)
            if rng.random() < 0.6:
                return made
        entries = []
        for at in range(rng.choice([1, 1, 1, 2])):
            entry = f"c{at}"
            entries.append({"name": entry, **self._claim_for(f"{name}-{entry}")})
        spec["resourceClaims"] = entries
        spec["containers"][0]["resources"]["claims"] = [{"name": entry["name"]} for entry in entries]
        return made

    def _ask_for_cards(self, spec: Doc) -> None:
        rng = self._rng
        resource = rng.choice([CARD, CARD, "deviceclass.resource.kubernetes.io/gpu"])

        def limits() -> Doc:
            return {"limits": {resource: str(rng.randint(1, 2))}}

        spec["containers"][0]["resources"] |= limits()
        if rng.random() < 0.3:
            spec["containers"].append({"name": "second", "image": "i", "resources": limits()})
        if rng.random() < 0.3:
            first = {"name": "first", "image": "i", "resources": {"limits": {resource: str(rng.randint(1, 3))}}}
            if rng.random() < 0.4:
                first["restartPolicy"] = "Always"
            spec["initContainers"] = [first]

    # ---- claims ----

    def _claim_for(self, name: str) -> Doc:
        """An entry that names a claim of its own, one that others have too, or a template."""
        rng, made = self._rng, self._made
        known = [doc["metadata"]["name"] for doc in made.objects if doc["kind"] == "ResourceClaim"]
        if known and rng.random() < (0.6 if self._family == "shared" else 0.1):
            return {"resourceClaimName": rng.choice(known)}
        if rng.random() < 0.5:
            spec = {"spec": self._spec()}
            made.objects.append(object_of("ResourceClaimTemplate", name, namespace="default", spec=spec))
            return {"resourceClaimTemplateName": name}
        made.objects.append(object_of("ResourceClaim", name, namespace="default", spec=self._spec()))
        return {"resourceClaimName": name}

    def _allocate_some(self, slices: list[Doc]) -> None:
        """Claims that have devices already, reserved for nobody."""
        rng = self._rng
        local = [doc for doc in slices if doc["spec"].get("nodeName") and doc["spec"].get("devices")]
        for at in range(rng.choice([0, 0, 1, 2, 3] if self._family == "shared" else [0, 0, 0, 1, 2])):
            if not local:
                return
            spec = rng.choice(local)["spec"]
            device = rng.choice(spec["devices"])
            if device.get("allowMultipleAllocations"):
                continue
            result = {"request": "a", "driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
            only = {"key": "metadata.name", "operator": "In", "values": [spec["nodeName"]]}
            allocation: Doc = {
                "devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [only]}]},
            }  # fmt: skip
            if rng.random() < 0.9:
                allocation["allocationTimestamp"] = "2026-11-01T00:00:00Z"
            claim = {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "any"}}]}}
            self._made.objects.append(
                object_of(
                    "ResourceClaim",
                    f"given-{at}",
                    namespace="default",
                    spec=claim,
                    status={"allocation": allocation},
                )
            )

    def _spec(self) -> Doc:
        rng = self._rng
        requests: list[Doc] = []
        for name in ("a", "b", "c")[
            : rng.choice([1, 1, 1, 2, 2, 3] if self._family == "constraints" else [1, 1, 1, 2])
        ]:
            if rng.random() < (0.7 if self._family == "alternatives" else 0.1):
                choices = [{"name": f"s{at}", **self._wish(alternative=True)} for at in range(rng.randint(1, 3))]
                requests.append({"name": name, "firstAvailable": choices})
            else:
                requests.append({"name": name, "exactly": self._wish()})
        devices: Doc = {"requests": requests}
        names = [request["name"] for request in requests]
        if rng.random() < (0.85 if self._family == "constraints" else 0.1):
            devices["constraints"] = [self._constraint(names) for _ in range(rng.choice([1, 1, 2]))]
        if rng.random() < 0.15:
            named = {"requests": rng.sample(names, 1)} if rng.random() < 0.5 else {}
            devices["config"] = [{**named, **config(rng)}]
        return {"devices": devices}

    def _wish(self, *, alternative: bool = False) -> Doc:
        rng = self._rng
        wish: Doc = {"deviceClassName": rng.choice(("gpu", "gpu", "gpu", *CLASSES))}
        if rng.random() < 0.4:
            texts = rng.sample(SELECTORS[:-1] if rng.random() < 0.97 else SELECTORS, rng.choice([1, 1, 2]))
            wish["selectors"] = [{"cel": {"expression": text}} for text in texts]
        if rng.random() < 0.08:
            wish["allocationMode"] = "All"
        else:
            wish["count"] = rng.choice([1, 1, 1, 2, 2, 3, 4])
        if not alternative and rng.random() < 0.05:
            wish["adminAccess"] = True
        if rng.random() < 0.2:
            wish["tolerations"] = [{"key": rng.choice(TAINT_KEYS), "operator": "Exists"}]
        if rng.random() < 0.2:
            wish["capacity"] = {"requests": {"memory": rng.choice(["1Gi", "3Gi", "2500Mi", "10Gi", "20Gi"])}}
        return wish

    def _constraint(self, names: list[str]) -> Doc:
        rng = self._rng
        kind = rng.choice(["matchAttribute", "matchAttribute", "distinctAttribute"])
        constraint: Doc = {kind: rng.choice(_ATTRIBUTES)}
        if rng.random() < 0.4:
            constraint["requests"] = rng.sample(names, rng.randint(1, len(names)))
        return constraint


def _pod(name: str, requests: Doc) -> Doc:
    container = {"name": "main", "image": "i", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
