"""The job plugin `svc`: pods of a Job find each other by name, and get all names.

A headless Service gives every pod an address `<hostname>.<subdomain>`; a ConfigMap lists the addresses task by task,
as files under /etc/volcano and as variables; a NetworkPolicy keeps others out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fairlead.core.model.kinds import CONFIG_MAP, NETWORK_POLICY, SERVICE
from fairlead.volcano.jobs.job_plugins.job_plugin import (
    Beside,
    JobPlugin,
    PluginFlags,
    PluginMeans,
    add_env,
    addresses_of,
    containers_of,
    owned_by,
    too_many_hosts,
)
from fairlead.volcano.jobs.job_pods import JOB_NAME, JOB_NAMESPACE

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

_MOUNT_PATH = "/etc/volcano"


def hosts_of(job: Doc) -> dict[str, str]:
    """What the ConfigMap holds: the addresses of every task, and how many they are."""
    data = {}
    for key, task in keys_of(job).items():
        hosts = addresses_of(job, task)
        data[f"{key}.host"] = "\n".join(hosts)
        data[f"VC_{key.upper()}_HOSTS"] = ",".join(hosts)
        data[f"VC_{key.upper()}_NUM"] = str(len(hosts))
    return data


def keys_of(job: Doc) -> dict[str, Doc]:
    """The tasks of a Job by the names that they have in the ConfigMap."""
    return {(task.get("name") or "").replace("-", "_"): task for task in job["spec"].get("tasks") or ()}


class ServicePlugin(JobPlugin):
    name = "svc"

    def __init__(self, arguments: Sequence[str], means: PluginMeans) -> None:
        super().__init__(arguments, means)
        flags = PluginFlags(arguments, publish_not_ready_addresses=False, disable_network_policy=False)
        self._publishes_early = flags.switch("publish-not-ready-addresses")
        self._keeps_others_out = not flags.switch("disable-network-policy")

    def outgrows(self, job: Doc) -> str:
        return too_many_hosts(job, job["spec"].get("tasks") or ())

    def on_pod_create(self, pod: Doc, job: Doc) -> None:
        spec, name = pod["spec"], _config_map_name(job)
        spec["hostname"] = spec.get("hostname") or pod["metadata"]["name"]
        spec["subdomain"] = spec.get("subdomain") or job["metadata"]["name"]
        spec["volumes"] = [*(spec.get("volumes") or ()), {"name": name, "configMap": {"name": name}}]
        variables = [f"VC_{key.upper()}_{what}" for key in keys_of(job) for what in ("HOSTS", "NUM")]
        for container in containers_of(pod, init=True):
            for key in variables:
                source = {"configMapKeyRef": {"name": name, "key": key}}
                add_env(container, {"name": key, "valueFrom": source})
            mount = {"name": name, "mountPath": _MOUNT_PATH}
            container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]

    def names_beside(self, job: Doc) -> Sequence[tuple[Kind, str]]:
        name = job["metadata"]["name"]
        policy = [(NETWORK_POLICY, name)] if self._keeps_others_out else []
        return [(CONFIG_MAP, _config_map_name(job)), (SERVICE, name), *policy]

    def objects(self, job: Doc) -> Iterator[Beside]:
        yield from self.refreshed(job)
        name = job["metadata"]["name"]
        selector = {JOB_NAME: name, JOB_NAMESPACE: job["metadata"]["namespace"]}
        service: Doc = {"clusterIP": "None", "selector": selector}
        if self._publishes_early:
            service["publishNotReadyAddresses"] = True
        yield owned_by(job, SERVICE, name, spec=service)
        if self._keeps_others_out:
            selected = {"matchLabels": selector}
            ingress = [{"from": [{"podSelector": selected}]}]
            policy = {"podSelector": selected, "ingress": ingress, "policyTypes": ["Ingress"]}
            yield owned_by(job, NETWORK_POLICY, name, spec=policy)

    def refreshed(self, job: Doc) -> Iterator[Beside]:
        yield owned_by(job, CONFIG_MAP, _config_map_name(job), data=hosts_of(job))


def _config_map_name(job: Doc) -> str:
    return f"{job['metadata']['name']}-svc"
