"""The arguments that Volcano's plugins and actions understand, with the types they must have.

The original takes an argument of another name or type for one that was not given, so a typing mistake leaves a default
in force and nobody knows. Here both are noted. A name that ends in `*` stands for all that begin so.

Invariant: an argument that passes is one that its plugin reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fairlead.config.problems import Path, suggestion
from fairlead.core.model.durations import parse_duration

_BIN_PACKING = {"cpu": "whole", "memory": "whole", "resources": "text", "resources.*": "whole"}
_VERBS = (
    "onSessionOpen", "onSessionClose", "predicate", "prioritize", "preemptable", "reclaimable", "queueOverused",
    "jobEnqueueable", "jobReady", "allocateFunc", "deallocateFunc",
)  # fmt: skip

ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "binpack": {"binpack.weight": "whole", **{f"binpack.{name}": kind for name, kind in _BIN_PACKING.items()}},
    "capacity": {
        "ancestorReclaimLevel": "whole",
        "capacity.DynamicResourceAllocationEnable": "flag",
        "capacity.DRAConsumableCapacityEnable": "flag",
    },
    "cdp": {},
    "conformance": {},
    "deviceshare": {
        **dict.fromkeys(
            (
                "deviceshare.GPUSharingEnable",
                "deviceshare.GPUNumberEnable",
                "deviceshare.VGPUEnable",
                "deviceshare.AscendMindClusterVNPUEnable",
                "deviceshare.AscendHAMiVNPUEnable",
                "deviceshare.NodeLockEnable",
            ),
            "flag",
        ),
        "deviceshare.SchedulePolicy": "text",
        "deviceshare.ScheduleWeight": "whole",
        "deviceshare.KnownGeometriesCMName": "text",
        "deviceshare.KnownGeometriesCMNamespace": "text",
        "deviceshare.GPUExclusiveRules": "list",
    },
    "drf": {},
    "extender": {
        "extender.urlPrefix": "text",
        "extender.httpTimeout": "duration",
        "extender.ignorable": "flag",
        "extender.managedResources": "list",
        **{f"extender.{verb}Verb": "text" for verb in _VERBS},
    },
    "gang": {},
    "network-topology-aware": {
        "weight": "whole",
        **{f"hypernode.binpack.{name}": kind for name, kind in _BIN_PACKING.items()},
        "hypernode.binpack.normal-pod.enable": "flag",
        "hypernode.binpack.normal-pod.fading": "number",
        "hypernode.gradient.evict.max-hypernodes": "whole",
    },
    "nodegroup": {"strict": "flag", "enablePreferredOrder": "flag"},
    "nodeorder": dict.fromkeys(
        (
            "leastrequested.weight",
            "mostrequested.weight",
            "nodeaffinity.weight",
            "podaffinity.weight",
            "balancedresource.weight",
            "tainttoleration.weight",
            "imagelocality.weight",
            "podtopologyspread.weight",
        ),
        "whole",
    ),
    "numa-aware": {"weight": "whole"},
    "overcommit": {"overcommit-factor": "number"},
    "pdb": {},
    "predicates": {
        **dict.fromkeys(
            (
                "predicate.NodeAffinityEnable",
                "predicate.NodePortsEnable",
                "predicate.TaintTolerationEnable",
                "predicate.PodAffinityEnable",
                "predicate.NodeVolumeLimitsEnable",
                "predicate.VolumeZoneEnable",
                "predicate.PodTopologySpreadEnable",
                "predicate.VolumeBindingEnable",
                "predicate.CacheEnable",
                "predicate.DynamicResourceAllocationEnable",
            ),
            "flag",
        ),
        "volumebinding.weight": "whole",
        "volumebinding.bindTimeoutSeconds": "whole",
        "volumebinding.shape": "list",
        "dynamicresources.filterTimeoutSeconds": "whole",
    },
    "priority": {},
    "proportion": {},
    "rescheduling": {"interval": "duration", "metricsPeriod": "duration", "strategies": "list"},
    "resource-strategy-fit": {
        "resourceStrategyFitWeight": "whole",
        "resources": "mapping",
        "sra": "mapping",
        "proportional": "mapping",
    },
    "resourcequota": {},
    "sla": {"sla-waiting-time": "duration"},
    "task-topology": {"task-topology.weight": "whole"},
    "tdm": {"tdm.revocable-zone.*": "text", "tdm.evict.period": "duration"},
    "usage": {"usage.weight": "whole", "cpu.weight": "whole", "memory.weight": "whole", "thresholds": "mapping"},
}
"""By plugin. Every plugin that Volcano registers is listed."""

_CACHE = {"predicateErrorCacheEnable": "flag"}
ACTIONS: Mapping[str, Mapping[str, str]] = {
    "enqueue": {},
    "allocate": _CACHE,
    "backfill": _CACHE,
    "preempt": {
        **_CACHE,
        "enableTopologyAwarePreemption": "flag",
        "topologyAwarePreemptWorkerNum": "whole",
        "minCandidateNodesPercentage": "whole",
        "minCandidateNodesAbsolute": "whole",
        "maxCandidateNodesAbsolute": "whole",
    },
    "reclaim": _CACHE,
    "shuffle": {},
    "gangpreempt": {"maxDomains": "whole", "allowWholeBundle": "flag"},
    "gangreclaim": {"maxDomains": "whole", "allowWholeBundle": "flag"},
}
"""By action."""

METRICS = (
    "type", "address", "interval", "tls.insecureSkipVerify", "elasticsearch.index", "elasticsearch.username",
    "elasticsearch.password", "elasticsearch.hostnameFieldName",
)  # fmt: skip
METRICS_TYPES = ("prometheus", "prometheus_adaptor", "elasticsearch")

_WANTED = {
    "whole": "a whole number",
    "number": "a number",
    "flag": "true or false",
    "text": "a text",
    "duration": 'a duration such as "5m"',
    "list": "a list",
    "mapping": "a mapping",
}

Finding = tuple[Path, str, str]
"""Where, what is wrong, and a hint."""


def misfits(given: Mapping[str, Any], known: Mapping[str, str], path: Path) -> Iterator[Finding]:
    """The arguments that nobody would read."""
    for name, value in given.items():
        kind = _kind_of(name, known)
        if kind is None:
            hint = suggestion(name, known) or _choice(known)
            yield (*path, name), f'unknown argument "{name}"', hint
        elif not _fits(value, kind):
            yield (*path, name), f"must be {_WANTED[kind]}, got {_shown(value)}", _how_to_write(value, kind)


def _kind_of(name: str, known: Mapping[str, str]) -> str | None:
    if name in known:
        return None if name.endswith("*") else known[name]
    return next((kind for key, kind in known.items() if key.endswith("*") and name.startswith(key[:-1])), None)


def _choice(known: Mapping[str, str]) -> str:
    return f"one of: {', '.join(known)}" if known else "it takes no arguments"


def _fits(value: Any, kind: str) -> bool:
    match kind:
        case "whole":
            return type(value) is int
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "flag":
            return isinstance(value, bool) or (isinstance(value, str) and value.lower() in ("true", "false"))
        case "duration":
            return isinstance(value, str) and _is_duration(value)
        case "list":
            return isinstance(value, list)
        case "mapping":
            return isinstance(value, dict)
    return isinstance(value, str)


def _is_duration(text: str) -> bool:
    try:
        parse_duration(text)
    except ValueError:
        return False
    return True


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else str(value)


def _how_to_write(value: Any, kind: str) -> str:
    """What a value of the wrong type was probably meant to be."""
    if kind in ("whole", "number") and isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return ""
        return "without quotes"
    if kind == "whole" and isinstance(value, float):
        return f"write {round(value)}"
    return ""
