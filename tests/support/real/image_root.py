"""The steps of deploy/Dockerfile in an empty root, and pods that run there: no image can be built without a registry.

The base image is this machine's Python and C library, mounted read-only, with the libraries of the test's environment:
those are not fetched again, which would take longer than all other tests. A pod has a mount namespace in which its root
is read-only, and a network namespace of its own, with a relay to the API server of the test; it runs as the user of the
image, without capabilities. Needs root.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dockerfile_parse import DockerfileParser

HOUSE = Path(__file__).resolve().parents[3]
LIBRARIES = sysconfig.get_path("purelib")
BASE = ("/usr", sys.base_prefix, LIBRARIES)
LINKS = {"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"}
ACCOUNT = "var/run/secrets/kubernetes.io/serviceaccount"

RELAY = """
import asyncio, sys
where, port, path = sys.argv[1:]
async def copy(a, b):
    try:
        while data := await a.read(65536):
            b.write(data)
            await b.drain()
    except OSError:
        pass
    finally:
        b.close()
async def serve(reader, writer):
    far = asyncio.open_unix_connection(path) if where == "inside" else asyncio.open_connection("127.0.0.1", int(port))
    try:
        back, forth = await far
    except OSError:
        return writer.close()
    await asyncio.gather(copy(reader, forth), copy(back, writer))
async def main():
    if where == "inside":
        server = await asyncio.start_server(serve, "127.0.0.1", int(port))
    else:
        server = await asyncio.start_unix_server(serve, path)
    await server.serve_forever()
asyncio.run(main())
"""
"""One half of the way from a pod to the API server: a port inside, a Unix socket between, a connection outside."""


@dataclass
class Image:
    """What the steps left behind."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    directory: str = "/"
    entrypoint: list[str] = field(default_factory=list)


def run_steps(dockerfile: Path, scratch: Path) -> Image:
    """Every step of the file, stage by stage; returns the last stage."""
    stages: dict[str, Image] = {}
    image = Image(scratch)
    for step in DockerfileParser(str(dockerfile)).structure:
        what, value = step["instruction"], step["value"]
        if what == "FROM":
            image = stages[value.partition(" AS ")[2] or "last"] = Image(_empty_root(scratch / f"stage-{len(stages)}"))
        elif what == "WORKDIR":
            image.directory = value
            _within(image.root, value).mkdir(parents=True, exist_ok=True)
        elif what == "COPY":
            _copy(value, image, stages)
        elif what == "RUN":
            _run(value, image)
        elif what == "ENV":
            image.environment |= dict(pair.split("=", 1) for pair in shlex.split(value))
        elif what == "USER":
            image.user = value
        elif what == "ENTRYPOINT":
            image.entrypoint = json.loads(value)
        else:
            assert what in ("COMMENT", "ARG", "EXPOSE", "CMD"), f"{what} is not known here"
    return image


def _within(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def _empty_root(root: Path) -> Path:
    for name in ("proc", "dev", "etc", "tmp", "opt/wheels", *BASE):
        _within(root, name).mkdir(parents=True)
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    # pip finds these libraries in the environment that the steps make, and fetches none of them.
    packages = _within(root, sysconfig.get_path("purelib", vars={"base": "/opt/fairlead"}))
    packages.mkdir(parents=True)
    (packages / "libraries.pth").write_text(LIBRARIES + "\n")
    return root


def _copy(value: str, image: Image, stages: Mapping[str, Image]) -> None:
    words = value.split()
    source = HOUSE
    if words[0].startswith("--from="):
        source = stages[words.pop(0).removeprefix("--from=")].root
    *names, target = words
    for name in names:
        found = _within(source, name)
        into = _within(image.root, target if target.startswith("/") else f"{image.directory}/{target}")
        if found.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(found, into, symlinks=True, dirs_exist_ok=True, ignore=ignored)
        else:
            shutil.copy2(found, into)


def _mounts(root: Path) -> list[str]:
    """Shell lines that put the base image below a root."""
    lines = [f"mount --bind {path} {_within(root, path)}" for path in BASE]
    return [*lines, f"mount --rbind /dev {root}/dev", f"mount -t proc proc {root}/proc"]


def _run(command: str, image: Image) -> None:
    """A RUN step, in a root of its own, with the package index of this machine."""
    more = [f"mount --bind {path} {image.root}{path}" for path in ("/etc", "/opt/wheels") if Path(path).exists()]
    script = [*_mounts(image.root), *more, f"cd {image.root}{image.directory}"]
    inner = f"cd {image.directory} && {command}"
    script.append(f"exec chroot {image.root} /bin/sh -c {shlex.quote(inner)}")
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or "proxy" in name.lower()}
    path = f"{sys.base_prefix}/bin:/usr/bin:/bin"
    _unshared(script, ["-m"], env={"PATH": f"{path}:/usr/sbin", "HOME": "/tmp", **kept})


def _unshared(script: Sequence[str], namespaces: Sequence[str], env: Mapping[str, str]) -> None:
    command = ["unshare", *namespaces, "--propagation", "private", "/bin/sh", "-ec", "\n".join(script)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=580, check=False)
    assert done.returncode == 0, f"{script[-1]}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


class Pod:
    """One pod of a workload as the API server has it, as a process. `files` are what its volumes hold."""

    def __init__(
        self,
        image: Image,
        spec: dict[str, object],
        scratch: Path,
        files: Mapping[str, Mapping[str, str]],
        server: str,
        *,
        secrets: Sequence[str] = (),
    ) -> None:
        """`secrets` are names of files that only root may read, as the node has them."""
        self.log = scratch / "log"
        scratch.mkdir()
        port = server.rpartition(":")[2]
        socket = scratch / "relay"
        self._outside = subprocess.Popen([sys.executable, "-c", RELAY, "outside", port, str(socket)])
        script = self._script(image, spec, scratch, files, port, socket, secrets)
        (scratch / "pod.sh").write_text("\n".join(script))
        with self.log.open("wb") as log:
            command = ["unshare", "-m", "-n", "-p", "--fork", "--kill-child", "--propagation", "private"]
            command += ["/bin/sh", "-e", str(scratch / "pod.sh")]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def _script(
        self,
        image: Image,
        spec: dict[str, object],
        scratch: Path,
        files: Mapping[str, Mapping[str, str]],
        port: str,
        socket: Path,
        secrets: Sequence[str],
    ) -> list[str]:
        (container,) = spec["containers"]  # type: ignore[misc]
        context = {**spec["securityContext"], **container.get("securityContext", {})}  # type: ignore[dict-item]
        user = f"{context['runAsUser']}:{context['runAsGroup']}" if "runAsUser" in context else image.user
        root = scratch / "root"
        root.mkdir()
        lines = [
            f"mount --bind {image.root} {root}",
            f"mount -t tmpfs -o mode=1777,size=16m tmpfs {root}/tmp",
            *(f"mkdir -p {_within(root, path)}" for path in BASE),  # a checkout below /tmp has its libraries there
            *_mounts(root),
        ]
        for at, (mount, contents) in enumerate(files.items()):
            held = scratch / f"volume-{at}"
            held.mkdir()
            for name, text in contents.items():
                (held / name).write_text(text)
            _within(image.root, mount).mkdir(parents=True, exist_ok=True)
            lines.append(f"mount --bind -o ro {held} {_within(root, mount)}")
        lines += [
            *(f"mount -o remount,bind,ro {_within(root, path)}" for path in (*BASE, "/")),
            *(["chmod 600 " + " ".join(f"{scratch}/volume-*/{name}" for name in secrets)] if secrets else []),
            "ip link set lo up",
            f"{sys.executable} -c {shlex.quote(RELAY)} inside {port} {socket} &",
        ]
        environment = {
            **image.environment, "PATH": "/opt/fairlead/bin:/usr/bin", "HOME": "/tmp",
            "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port,
        }  # fmt: skip
        words = [f"{name}={value}" for name, value in environment.items()]
        command = ["env", "-i", *words, "/usr/sbin/chroot", f"--userspec={user}", "--groups=", str(root)]
        program = container.get("command") or [*image.entrypoint, *container["args"]]
        lines.append("exec " + shlex.join([*command, *program]))
        return lines

    def inside(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run something in the pod's network, as the test's user."""
        words = ["nsenter", "-t", str(self.process.pid), "-n", *command]
        return subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._outside.kill()
        self._outside.wait()
