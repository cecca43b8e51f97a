"""What a scheduler with Koordinator's plugins, and its descheduler, write on a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.console.roles.grants import PLUGINS, Grant, table

DESCHEDULING = "descheduling"
GRANTS: Mapping[str, tuple[Grant, ...]] = {
    PLUGINS: table({
        "- pods patch": "pods do not learn which CPUs, devices or reservation they got, so they are not bound",
        "- pods/eviction create": "quotas that use more than they are granted are not brought back (monitorAllQuotas)",
        "scheduling.koordinator.sh reservations patch": "reservations of CPUs and devices are not made",
        "scheduling.koordinator.sh reservations delete": "reservations that have ended stay",
        "scheduling.koordinator.sh reservations/status patch": "reservations are never available",
        "scheduling.sigs.k8s.io elasticquotas patch": "quotas do not say what they use and are granted",
        "scheduling.sigs.k8s.io podgroups patch": "groups do not say how many of their pods run",
    }),
    DESCHEDULING: table({
        "scheduling.koordinator.sh podmigrationjobs create patch": "nobody is moved off overloaded nodes",
        "scheduling.koordinator.sh podmigrationjobs delete": "migration jobs that have ended stay",
        "scheduling.koordinator.sh podmigrationjobs/status patch": "migration jobs do not move on",
        "scheduling.koordinator.sh reservations create delete": "only migration jobs that evict directly work",
        "- pods/eviction create": "pods are not evicted",
        "- pods delete": "pods whose eviction policy is Delete are not moved",
        "- pods patch": "pods whose eviction policy is SoftEviction are not marked for eviction",
        "- nodes patch": "nodes that are drained are not cordoned (autoCordon)",
        "- events create": "there are no events about migrations",
    }),
}  # fmt: skip
