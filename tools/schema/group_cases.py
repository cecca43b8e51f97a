"""PodGroups and Workloads, right and wrong, in the words of one version of their API: what record_cases.py --groups
sends to a server that has that version and all its gang features on."""

from __future__ import annotations

from collections.abc import Iterator

from builders import Change, Doc, put, thing

GANG: Doc = {"gang": {"minCount": 3}}
ALPHA, BETA = "v1alpha2", "v1beta1"
BAD_CONDITION = [{"type": "x", "status": "Perhaps", "reason": "", "message": "m", "lastTransitionTime": None}]
CONDITION = [{"type": "x", "status": "True", "reason": "R", "message": "m",
              "lastTransitionTime": "2026-01-01T00:00:00Z"}]  # fmt: skip


def group(version: str, name: str = "x", /, **spec: object) -> Doc:
    return thing(f"scheduling.k8s.io/{version}", "PodGroup", name, spec={"schedulingPolicy": GANG, **spec})


def workload(version: str, *templates: Doc, name: str = "x", **spec: object) -> Doc:
    filled = [{"schedulingPolicy": GANG, **template} for template in templates]
    return thing(f"scheduling.k8s.io/{version}", "Workload", name, spec={"podGroupTemplates": filled, **spec})


def reference(version: str, workload: str, template: str) -> Doc:
    if version == ALPHA:
        return {"podGroupTemplateRef": {"workload": {"workloadName": workload, "podGroupTemplateName": template}}}
    return {"workloadRef": {"workloadName": workload, "templateName": template}}


def topology(*keys: str) -> Doc:
    return {"schedulingConstraints": {"topology": [{"key": key} for key in keys]}}


def surroundings(version: str) -> list[Doc]:
    return [
        thing("scheduling.k8s.io/v1", "PriorityClass", "high", value=1000),
        workload(version, {"name": "workers"}, name="known"),
    ]


def created(version: str) -> Iterator[Doc]:
    yield from _good(version)
    yield from _wrong_groups(version)
    yield from _wrong_workloads(version)


def _modes(version: str) -> tuple[object, object]:
    return ("Pod", "PodGroup") if version == ALPHA else ({"single": {}}, {"all": {}})


def _good(version: str) -> Iterator[Doc]:
    yield group(version)
    yield group(version, schedulingPolicy={"basic": {}})
    yield group(version, **topology("example.com/rack"))
    yield group(version, priorityClassName="high")
    yield group(version, priorityClassName="high", priority=1000)
    yield group(version, priorityClassName="system-node-critical")
    yield group(version, priority=0)
    for mode in _modes(version):
        yield group(version, disruptionMode=mode)
        yield workload(version, {"name": "a", "disruptionMode": mode})
    yield group(version, **reference(version, "known", "workers"))
    yield group(version, resourceClaims=[{"name": "c", "resourceClaimName": "claim"}])
    yield workload(version, {"name": "a"}, {"name": "b", "schedulingPolicy": {"basic": {}}})
    yield workload(version, {"name": "a", "priorityClassName": "high", "priority": 5})
    yield workload(version, {"name": "a", **topology("example.com/rack")})
    yield workload(version, {"name": "a"}, controllerRef={"apiGroup": "batch", "kind": "Job", "name": "j"})
    if version == BETA:
        yield group(version, preemptionPolicy="Never")
        yield group(version, parentCompositePodGroupName="parent")
        yield workload(version, {"name": "a", "preemptionPolicy": "Never"})
        nested = {
            "name": "c",
            "schedulingPolicy": {"basic": {}},
            "podGroupTemplates": [{"name": "d", "schedulingPolicy": {"basic": {}}}],
        }
        yield workload(version, {"name": "a"}, compositePodGroupTemplates=[nested])


def _wrong_groups(version: str) -> Iterator[Doc]:
    yield group(version, schedulingPolicy={})
    yield group(version, schedulingPolicy={"basic": {}, **GANG})
    yield group(version, schedulingPolicy={"gang": {}})
    yield group(version, schedulingPolicy={"gang": {"minCount": -1}})
    yield group(version, schedulingPolicy={"gang": {"minCount": "x"}})
    yield thing(f"scheduling.k8s.io/{version}", "PodGroup", spec={})
    yield group(version, "A_")
    yield group(version, **topology("a/b", "c/d"))
    yield group(version, **topology("not a key"))
    yield group(version, **topology(""))
    yield group(version, priorityClassName="none")
    yield group(version, priorityClassName="A_")
    yield group(version, priorityClassName="high", priority=7)
    yield group(version, priority=7)
    yield group(version, priority=2_000_000_000)
    yield group(version, unheardOf=1)
    yield group(version, **reference(version, "unknown", "workers"))
    yield group(version, **reference(version, "known", "nobody"))
    yield group(version, **reference(version, "", ""))
    yield group(version, **reference(version, "A_", "B_"))
    if version == ALPHA:
        yield group(version, disruptionMode="X")
        yield group(version, disruptionMode={"all": {}})
        yield group(version, podGroupTemplateRef={})
    else:
        yield group(version, disruptionMode={})
        yield group(version, disruptionMode={"single": {}, "all": {}})
        yield group(version, disruptionMode="PodGroup")
        yield group(version, workloadRef={})


def _wrong_workloads(version: str) -> Iterator[Doc]:
    yield workload(version)
    yield thing(f"scheduling.k8s.io/{version}", "Workload", spec={})
    yield workload(version, *({"name": f"t{number}"} for number in range(9)))
    yield workload(version, {"name": "a"}, {"name": "a"})
    yield workload(version, {"name": ""})
    yield workload(version, {"name": "A_"})
    yield workload(version, {"name": "a", "schedulingPolicy": {}})
    yield workload(version, {"name": "a", "schedulingPolicy": {"basic": {}, **GANG}})
    yield workload(version, {"name": "a", **topology("a/b", "c/d")})
    yield workload(version, {"name": "a", "priority": 2_000_000_000})
    yield workload(version, {"name": "a", "priorityClassName": "A_"})
    yield workload(version, {"name": "a", "priorityClassName": "high"}, {"name": "b"})
    yield workload(version, {"name": "a"}, controllerRef={"kind": "", "name": ""})
    yield workload(version, {"name": "a"}, controllerRef={"apiGroup": "A_", "kind": "a/b", "name": "c/d"})
    yield workload(version, {"name": "a", "disruptionMode": "X" if version == ALPHA else {}})


def updated(version: str) -> Iterator[tuple[Doc, list[tuple[str, Change]]]]:
    single, whole = _modes(version)
    plain = group(
        version,
        "u",
        priorityClassName="high",
        disruptionMode=whole,
        **topology("example.com/rack"),
        **reference(version, "known", "workers"),
    )
    referring = next(iter(reference(version, "known", "workers")))
    name = "podGroupTemplateRef.workload.podGroupTemplateName" if version == ALPHA else "workloadRef.templateName"
    yield (
        plain,
        [
            ("", put("metadata.labels", {"a": "b"})),
            ("", put("spec.schedulingPolicy.gang.minCount", 4)),
            ("", put("spec.schedulingPolicy.gang.minCount", 0)),
            ("", put("spec.schedulingPolicy", {"basic": {}})),
            ("", put("spec.schedulingConstraints.topology.0.key", "example.com/row")),
            ("", put("spec.schedulingConstraints", None)),
            ("", put("spec.priority", 7)),
            ("", put("spec.priority", None)),
            ("", put("spec.priorityClassName", "other")),
            ("", put("spec.disruptionMode", single)),
            ("", put("spec.disruptionMode", None)),
            ("", put(f"spec.{referring}", None)),
            ("", put(f"spec.{name}", "other")),
            ("", put("metadata.resourceVersion", None)),
            ("status", put("status.conditions", CONDITION)),
            ("status", put("status.conditions", BAD_CONDITION)),
            ("status", put("spec.schedulingPolicy.gang.minCount", 4)),
            ("status", put("metadata.labels", {"a": "b"})),
        ],
    )
    yield (
        group(version, "v", schedulingPolicy={"basic": {}}),
        [
            ("", put("spec.schedulingPolicy", GANG)),
            ("", put("spec.disruptionMode", whole)),
            ("", put("spec.schedulingConstraints", topology("example.com/rack")["schedulingConstraints"])),
        ],
    )
    yield (
        workload(version, {"name": "a"}, {"name": "b"}, name="u"),
        [
            ("", put("metadata.labels", {"a": "b"})),
            ("", put("spec.podGroupTemplates.0.schedulingPolicy.gang.minCount", 4)),
            ("", put("spec.podGroupTemplates.0.schedulingPolicy", {"basic": {}})),
            ("", put("spec.podGroupTemplates.0.name", "c")),
            ("", put("spec.podGroupTemplates.1", None)),
            ("", put("spec.podGroupTemplates.0.disruptionMode", whole)),
            ("", put("spec.controllerRef", {"apiGroup": "batch", "kind": "Job", "name": "j"})),
            ("", put("metadata.resourceVersion", None)),
        ],
    )
    owned = {"apiGroup": "batch", "kind": "Job", "name": "j"}
    yield (
        workload(version, {"name": "a"}, name="v", controllerRef=owned),
        [
            ("", put("spec.controllerRef.name", "k")),
            ("", put("spec.controllerRef", None)),
        ],
    )
