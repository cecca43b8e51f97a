"""The job plugin `pytorch`: what torch.distributed reads from the environment to find the master and its own rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.volcano.jobs.job_plugins.job_plugin import (
    JobPlugin,
    PluginFlags,
    PluginMeans,
    add_env,
    address_of,
    containers_of,
    find_task,
    index_of,
    open_port,
    replicas_of,
    task_of,
)

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_WAITER = "wait-for-master"
# To the letter what the original runs: pods are compared with recorded ones.
_WAIT = """\
echo "Waiting for master node {host}:{port} to be ready..."
TIMEOUT={timeout}
ELAPSED=0
until {{ nc -z {host} {port} || echo > /dev/tcp/{host}/{port}; }} 2>/dev/null; do
  if [ $ELAPSED -ge $TIMEOUT ]; then
    echo "Timeout waiting for master after ${{TIMEOUT}} seconds"
    exit 1
  fi
  echo "Master not ready yet, retrying in 2 seconds... (elapsed: ${{ELAPSED}}s)"
  sleep 2
  ELAPSED=$((ELAPSED + 2))
done
echo "Master node is ready!\""""


class PytorchPlugin(JobPlugin):
    name = "pytorch"

    def __init__(self, arguments: Sequence[str], means: PluginMeans) -> None:
        super().__init__(arguments, means)
        flags = PluginFlags(
            arguments,
            master="master",
            worker="worker",
            port=23456,
            wait_master_enabled=False,
            wait_master_timeout=300,
            wait_master_image="busybox:1.36.1",
        )
        self._master, self._worker, self._port = flags.text("master"), flags.text("worker"), flags.number("port")
        self._waits = flags.switch("wait-master-enabled")
        self._timeout, self._image = flags.number("wait-master-timeout"), flags.text("wait-master-image")

    def on_pod_create(self, pod: Doc, job: Doc) -> None:
        master = find_task(job, self._master)
        if master is None:
            return
        host = address_of(job, master, 0)
        world = replicas_of(master) + replicas_of(find_task(job, self._worker))
        if self._master == self._worker:
            world = replicas_of(master)
        if task_of(pod) == self._worker:
            self._wait_for_master(pod, host)
        rank = self._rank(pod, master)
        variables = {"MASTER_ADDR": host, "MASTER_PORT": str(self._port), "WORLD_SIZE": str(world)}
        if rank is not None:
            variables["RANK"] = str(rank)
        for container in containers_of(pod):
            open_port(container, "pytorchjob-port", self._port)
            add_env(container, *({"name": name, "value": value} for name, value in variables.items()))

    def _rank(self, pod: Doc, master: Doc) -> int | None:
        """Masters come first, and workers after them; pods of other tasks have no rank."""
        index, as_original = index_of(pod), self.means.quirks.every_master_is_rank_0
        if task_of(pod) == self._worker:
            return index + (1 if as_original else replicas_of(master))
        if task_of(pod) == self._master:
            return 0 if as_original else index
        return None

    def _wait_for_master(self, pod: Doc, host: str) -> None:
        known = pod["spec"].get("initContainers") or []
        if not self._waits or any(container["name"] == _WAITER for container in known):
            return
        script = _WAIT.format(host=host, port=self._port, timeout=self._timeout)
        waiter = {"name": _WAITER, "image": self._image, "command": ["sh", "-c", script]}
        pod["spec"]["initContainers"] = [*known, waiter]
