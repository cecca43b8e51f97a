"""What a configuration or `--feature-gates` may say and nothing acts on, each with what happens whatever it says.

kube-scheduler takes these gates and fields, so they are no errors; `config check` and the log at the start name those
that differ from the default, because who moves a switch expects something of it. A test walks all gates and all fields
and finds for each either what reads it or its line here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from fairlead.core.family import families, tables
from fairlead.kube.config.document import to_document
from fairlead.kube.config.gates import DEFAULT_GATES, KNOWN_GATES, OWN_GATES
from fairlead.kube.config.records import KubeConfig

if TYPE_CHECKING:
    from fairlead.kube.config.gates import Gates

_ALWAYS = "it is always on"
_NOT_THERE = "it is always off"

GATES_WITHOUT_EFFECT: Mapping[str, str] = {
    "ClearingNominatedNodeNameAfterBinding": "the API server clears nominatedNodeName, no scheduler does",
    "ComponentFlagz": "/flagz is not served; `--write-config-to` and `fairlead config effective` show what is in force",
    "ComponentStatusz": "/statusz is not served; `fairlead status` shows it",
    "CoordinatedLeaderElection": "the first to get the Lease leads, and no LeaseCandidate is written",
    "DRAConsumableCapacity": _ALWAYS,
    "DRADeviceTaintRules": f"{_NOT_THERE}: taints of devices are read from ResourceSlices alone",
    "DRADeviceTaints": _ALWAYS,
    "DRAExtendedResource": _ALWAYS,
    "DRAListTypeAttributes": f"{_NOT_THERE}: attributes of devices have one value",
    "DRANodeAllocatableResources": _NOT_THERE,
    "DRAPartitionableDevices": _ALWAYS,
    "DRAPrioritizedList": _ALWAYS,
    "DRAWorkloadResourceClaims": f"{_NOT_THERE}: claims belong to pods",
    "GenericWorkload": "PodGroups are read in any case, and GangScheduling is what makes their pods start together",
    "InPlacePodLevelResourcesVerticalScaling": f"{_ALWAYS}: what the status says is counted",
    "InPlacePodVerticalScalingInitContainers": "it is the API server's and the kubelet's",
    "MatchLabelKeysInPodTopologySpread": _ALWAYS,
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": "it is the API server's, and either form is understood",
    "NominatedNodeNameForExpectation": _ALWAYS,
    "OpportunisticBatching": "equal pods share one search in any case, which changes no decision",
    "PodLevelResources": _ALWAYS,
    "SchedulerAsyncAPICalls": "no attempt waits for an answer of the API in any case",
    "SchedulerAsyncPreemption": f"{_ALWAYS}: victims are deleted while other pods are tried",
    "TaintTolerationComparisonOperators": f"{_NOT_THERE}: a toleration with Gt or Lt tolerates nothing",
    "VolumeLimitScaling": f"{_NOT_THERE}: a driver that a node lacks refuses no pod there",
    "WorkloadWithJob": "it is the Job controller's, which makes no Workloads here",
}
"""Gates of kube-scheduler that nothing reads; families name theirs."""

FIELDS_WITHOUT_EFFECT: Mapping[str, str] = {
    "parallelism": "all nodes are judged at once, in one thread",
    "enableProfiling": "no profiling endpoints are served",
    "enableContentionProfiling": "no profiling endpoints are served",
    "clientConnection.acceptContentTypes": "requests and answers are JSON",
    "clientConnection.contentType": "requests and answers are JSON",
}
"""Fields of KubeSchedulerConfiguration that nothing reads."""


def moved_without_effect(config: KubeConfig) -> tuple[str, ...]:
    """A remark for each gate and each field that was moved and that nothing reads."""
    return (*_gates(config.gates), *_fields(config))


@cache
def gates_without_effect() -> Mapping[str, str]:
    """All gates that nothing reads, each with what happens whatever it says."""
    return {**GATES_WITHOUT_EFFECT, **tables("gates_without_effect")}


def _gates(gates: Gates) -> Iterator[str]:
    usual = DEFAULT_GATES | (gates & OWN_GATES)
    for name, why in gates_without_effect().items():
        if (name in gates) is not (name in usual):
            yield f"--feature-gates: {name}={json.dumps(name in gates)} has no effect: {why}"


def _fields(config: KubeConfig) -> Iterator[str]:
    said, usual = to_document(config), to_document(KubeConfig(profiles=()))
    for path, why in FIELDS_WITHOUT_EFFECT.items():
        value = _at(said, path)
        if value != _at(usual, path):
            yield f"{path}: {json.dumps(value)} has no effect: {why}"


def _at(document: Mapping[str, object], path: str) -> object:
    found: object = document
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def gates_table(gates: Gates) -> list[tuple[str, str, str, str]]:
    """Every gate: its name, whether it is on, its stage or the family it is of, and whether anything acts on it."""
    kinds = {name: gate.stage for name, gate in sorted(KNOWN_GATES.items())}
    kinds |= {gate: family.name for family in families() for gate in sorted(family.gates)}
    return [(name, "on" if name in gates else "off", kind, _effect(name)) for name, kind in kinds.items()]


def _effect(name: str) -> str:
    gate, idle = KNOWN_GATES.get(name), gates_without_effect().get(name)
    if idle is not None:
        return f"no effect: {idle}"
    return "locked" if gate is not None and gate.locked else "obeyed"
