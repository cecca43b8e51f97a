"""The job plugin `ssh`: pods of a Job log in to each other without passwords.

A Secret holds one key for the whole Job and a configuration that knows every pod by its short name. It is mounted where
the ssh client looks for it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fairlead.core.model.kinds import SECRET
from fairlead.volcano.jobs.job_plugins.job_plugin import (
    Beside,
    JobPlugin,
    PluginFlags,
    PluginMeans,
    addresses_of,
    containers_of,
    owned_by,
    too_many_hosts,
)
from fairlead.volcano.records.keys import KeyPair

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

_USUAL_PATH, _FOLDER = "/root/.ssh", ".ssh"
_PORT, _HIGHEST_PORT = 22, 65535
_FILES = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")


class SshPlugin(JobPlugin):
    name = "ssh"

    def __init__(self, arguments: Sequence[str], means: PluginMeans) -> None:
        super().__init__(arguments, means)
        flags = PluginFlags(
            arguments, ssh_key_file_path=_USUAL_PATH, ssh_private_key="", ssh_public_key="", ssh_port=_PORT
        )
        self._path = flags.text("ssh-key-file-path")
        self._given = KeyPair(flags.text("ssh-private-key"), flags.text("ssh-public-key"))
        port = flags.number("ssh-port")
        self._port = port if 0 < port <= _HIGHEST_PORT else _PORT

    def outgrows(self, job: Doc) -> str:
        return too_many_hosts(job, job["spec"].get("tasks") or ())

    def on_pod_create(self, pod: Doc, job: Doc) -> None:
        name = _secret_name(job)
        items = [{"key": file, "path": f"{_FOLDER}/{file}"} for file in _FILES]
        mode = 0o600 if self._path == _USUAL_PATH else 0o644
        volume = {"name": name, "secret": {"secretName": name, "items": items, "defaultMode": mode}}
        pod["spec"]["volumes"] = [*(pod["spec"].get("volumes") or ()), volume]
        for container in containers_of(pod, init=True):
            mount = {"name": name, "mountPath": self._path, "subPath": _FOLDER}
            container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]

    def names_beside(self, job: Doc) -> Sequence[tuple[Kind, str]]:
        return [(SECRET, _secret_name(job))]

    def objects(self, job: Doc) -> Iterator[Beside]:
        keys = self._given if self._given.private else self.means.make_keys()
        contents = (keys.private, keys.public, keys.public, self._config(job))
        data = {file: b64encode(text.encode()).decode() for file, text in zip(_FILES, contents, strict=True)}
        yield owned_by(job, SECRET, _secret_name(job), type="Opaque", data=data)

    def _config(self, job: Doc) -> str:
        lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
        for task in job["spec"].get("tasks") or ():
            for address in addresses_of(job, task):
                lines += [f"Host {address.partition('.')[0]}", f"  HostName {address}", f"  Port {self._port}"]
        return "\n".join(lines) + "\n"


def _secret_name(job: Doc) -> str:
    return f"{job['metadata']['name']}-ssh"
