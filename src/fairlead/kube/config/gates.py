"""Feature gates: which of the original's switchable features are on, as kube-scheduler's `--feature-gates` sets them.

Only gates that kube-scheduler reads are known. The table is that of Kubernetes 1.36, with one gate that only the rounds
of another family read; gates that families add come from their records. A set of gates is the frozen set of the names
that are on. A gate that is known and changes nothing is in kube/config/without_effect.py, with the reason; a test reads
the sources for gates that are neither read nor there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlead.config.problems import suggestion
from fairlead.core.family import families
from fairlead.errors import ConfigError

Gates = frozenset[str]
KUBE_COMPATIBLE = "KubeCompatible"
"""On with `--kube-compatible`, which keeps bugs of kube-scheduler that are mended otherwise. It is no gate of the
original, and `--feature-gates` does not know it."""


@dataclass(frozen=True, slots=True)
class Gate:
    """`stage` is alpha, beta or GA. A locked gate cannot be moved."""

    stage: str
    on: bool
    locked: bool = False
    needs: tuple[str, ...] = ()


_LOCKED, _GA = Gate("GA", on=True, locked=True), Gate("GA", on=True)
_BETA, _BETA_OFF, _ALPHA = Gate("beta", on=True), Gate("beta", on=False), Gate("alpha", on=False)
_WORKLOAD = Gate("alpha", on=False, needs=("GenericWorkload",))

KNOWN_GATES: Mapping[str, Gate] = {
    "ClearingNominatedNodeNameAfterBinding": _BETA,
    "ComponentFlagz": _BETA,
    "ComponentStatusz": _BETA,
    "CoordinatedLeaderElection": _BETA_OFF,
    "DRAAdminAccess": _LOCKED,
    "DRAConsumableCapacity": _BETA,
    "DRADeviceBindingConditions": _BETA,
    "DRADeviceTaintRules": _BETA_OFF,
    "DRADeviceTaints": _BETA,
    "DRAExtendedResource": _BETA,
    "DRAListTypeAttributes": _ALPHA,
    "DRANodeAllocatableResources": _ALPHA,
    "DRAPartitionableDevices": _BETA,
    "DRAPrioritizedList": _GA,
    "DRAResourceClaimDeviceStatus": _BETA,
    "DRASchedulerFilterTimeout": _BETA,
    "DRAWorkloadResourceClaims": _ALPHA,
    "DynamicResourceAllocation": _LOCKED,
    "GangScheduling": _WORKLOAD,
    "GenericWorkload": _ALPHA,
    "InPlacePodLevelResourcesVerticalScaling": _BETA,
    "InPlacePodVerticalScaling": _LOCKED,
    "InPlacePodVerticalScalingInitContainers": _BETA,
    "MatchLabelKeysInPodAffinity": _LOCKED,
    "MatchLabelKeysInPodTopologySpread": _BETA,
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": _BETA,
    "MutableCSINodeAllocatableCount": _LOCKED,
    "NodeDeclaredFeatures": _BETA,
    "NodeInclusionPolicyInPodTopologySpread": _LOCKED,
    "NominatedNodeNameForExpectation": _BETA,
    "OpportunisticBatching": _BETA,
    "PodLevelResources": _BETA,
    "PodSchedulingReadiness": _LOCKED,
    "SchedulerAsyncAPICalls": _BETA_OFF,
    "SchedulerAsyncPreemption": _BETA,
    "SchedulerPopFromBackoffQ": _BETA,
    "SchedulerQueueingHints": _LOCKED,
    "SchedulingGatesQueueAdmission": _ALPHA,
    "SidecarContainers": _LOCKED,
    "StorageCapacityScoring": _ALPHA,
    "TaintTolerationComparisonOperators": _ALPHA,
    "TopologyAwareWorkloadScheduling": _WORKLOAD,
    "VolumeAttributesClass": _LOCKED,
    "VolumeLimitScaling": _ALPHA,
    "WorkloadAwarePreemption": _WORKLOAD,
    "WorkloadWithJob": _WORKLOAD,
}
DEFAULT_GATES: Gates = frozenset(name for name, gate in KNOWN_GATES.items() if gate.on)
OWN_GATES: Gates = DEFAULT_GATES | {
    "GenericWorkload",
    "GangScheduling",
    "TopologyAwareWorkloadScheduling",
    "WorkloadAwarePreemption",
}
"""What is on in our own clusters, whose API has groups in any case."""
_BOOLEANS = dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True)
_BOOLEANS |= dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False)
_WHOLE_STAGES = {"AllAlpha": "alpha", "AllBeta": "beta"}


def parse_feature_gates(text: str, *, defaults: Gates = DEFAULT_GATES) -> Gates:
    """`A=true,B=false` over the defaults. Raises ConfigError in the original's words."""
    settings = dict(_setting(part.strip()) for part in text.split(",") if part.strip())
    on = set(defaults)
    for stage in _WHOLE_STAGES.keys() & settings.keys():
        members = {name for name, gate in KNOWN_GATES.items() if gate.stage == _WHOLE_STAGES[stage]}
        on = on | members if settings[stage] else on - members
    for name, is_on in settings.items():
        if name not in _WHOLE_STAGES:
            on = on | {name} if is_on else on - {name}
    for name in sorted(on):
        gate = KNOWN_GATES.get(name)
        missing = [needed for needed in gate.needs if needed not in on] if gate is not None else []
        if missing:
            raise ConfigError(f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]")
    return frozenset(on)


def _setting(part: str) -> tuple[str, bool]:
    name, given, value = part.partition("=")
    name, value = name.strip(), value.strip()
    if not given:
        raise ConfigError(f"missing bool value for {name}")
    if value not in _BOOLEANS:
        raise ConfigError(f'invalid value of {name}={value}, err: strconv.ParseBool: parsing "{value}": invalid syntax')
    known = (*KNOWN_GATES, *_WHOLE_STAGES, *sorted(gate for family in families() for gate in family.gates))
    if name not in known:
        hint = suggestion(name, known)
        raise ConfigError(f"unrecognized feature gate: {name}", hint=hint)
    gate = KNOWN_GATES.get(name)
    if gate is not None and gate.locked and gate.on is not _BOOLEANS[value]:
        locked = str(gate.on).lower()
        raise ConfigError(f"cannot set feature gate {name} to {value}, feature is locked to {locked}")
    return name, _BOOLEANS[value]
