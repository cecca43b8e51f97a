"""Builders for the workloads that keep names, nodes or times: StatefulSets, DaemonSets, CronJobs; and their budgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from fairlead.core.model import kinds
from fairlead.testing.builders import Builder, JobBuilder, PodBuilder, ReplicatedBuilder


class StatefulSetBuilder(ReplicatedBuilder):
    """A StatefulSet."""

    kind = kinds.STATEFUL_SET

    def __init__(self, name: str, namespace: str = "default") -> None:
        super().__init__(name, namespace)
        self._doc["spec"]["serviceName"] = name

    def in_parallel(self) -> Self:
        """Its pods are made all at once."""
        return self.having(podManagementPolicy="Parallel")

    def updating_from(self, partition: int) -> Self:
        """Only pods with this number or a higher one are updated."""
        return self.having(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": partition}})

    def claiming(self, storage: str, *, name: str = "data", storage_class: str | None = None) -> Self:
        """With a claim of its own for each pod."""
        spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
        if storage_class is not None:
            spec["storageClassName"] = storage_class
        template = {"metadata": {"name": name}, "spec": spec}
        return self.having(volumeClaimTemplates=[*self.doc()["spec"].get("volumeClaimTemplates", ()), template])


class DaemonSetBuilder(ReplicatedBuilder):
    """A DaemonSet."""

    kind = kinds.DAEMON_SET

    def rolling(self, *, surge: int | str = 0, unavailable: int | str = 1) -> Self:
        """Updated node by node, with so many more and so many fewer than wanted meanwhile."""
        rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
        return self.having(updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})


class CronJobBuilder(Builder):
    """A CronJob."""

    kind = kinds.CRON_JOB

    def __init__(self, name: str, schedule: str, namespace: str = "default") -> None:
        super().__init__(name, namespace)
        self._doc["spec"] = {"schedule": schedule, "jobTemplate": {"spec": JobBuilder(name).doc()["spec"]}}

    def of(self, template: PodBuilder) -> Self:
        """Jobs of one pod like this."""
        return self.having(jobTemplate={"spec": JobBuilder("job").of(template).doc()["spec"]})


class BudgetBuilder(Builder):
    """A PodDisruptionBudget."""

    kind = kinds.POD_DISRUPTION_BUDGET

    def selecting(self, labels: Mapping[str, str]) -> Self:
        """For pods with these labels."""
        return self.having(selector={"matchLabels": dict(labels)})


def stateful_set(name: str, namespace: str = "default") -> StatefulSetBuilder:
    """A StatefulSet of one pod."""
    return StatefulSetBuilder(name, namespace)


def daemon_set(name: str, namespace: str = "default") -> DaemonSetBuilder:
    """A DaemonSet."""
    return DaemonSetBuilder(name, namespace)


def cron_job(name: str, schedule: str, namespace: str = "default") -> CronJobBuilder:
    """A CronJob with a schedule as cron writes it."""
    return CronJobBuilder(name, schedule, namespace)


def disruption_budget(name: str, namespace: str = "default") -> BudgetBuilder:
    """A PodDisruptionBudget; `having(minAvailable=2)` or the like says what it protects."""
    return BudgetBuilder(name, namespace)
