"""The real Kubernetes control plane as child processes: etcd, kube-apiserver, and on request the rest.

Binaries come from the directory in FAIRLEAD_REAL, which `tools/real/build.sh` prints. Everything listens on loopback
and lives in one temporary directory; logs are kept there and their last lines are shown when a part does not start.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import ssl
import subprocess
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

MISSING = (
    "FAIRLEAD_REAL is not set: these tests need the real control plane. "
    "Run `make test-kube`, or set FAIRLEAD_REAL=$(tools/real/build.sh), or deselect them with -m 'not kube'."
)


def real_binary(name: str) -> str:
    """The path of a real program; fails the test when there is none."""
    directory = os.environ.get("FAIRLEAD_REAL")
    if not directory:
        pytest.fail(MISSING, pytrace=False)
    path = Path(directory) / name
    if not os.access(path, os.X_OK):
        pytest.fail(f"{path} is missing: run tools/real/build.sh {name}", pytrace=False)
    return str(path)


def free_port() -> int:
    """A port that nobody listens on and that no other test of this machine is given while this process runs. It lies
    below those that Linux gives to outgoing connections, one of which could otherwise take it before the process that
    it is for listens there."""
    while True:
        port = 10_000 + secrets.randbelow(22_000)
        with socket.socket(socket.AF_UNIX) as claim, socket.socket() as probe:
            try:
                # A name without a file, which the kernel gives once: another worker takes another port.
                claim.bind(f"\0fairlead-tests/port/{port}")
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            claim.detach()  # it stays open until the process ends
            return port


@dataclass
class ControlPlane:
    """Start it, use `server`, `token` and `ca`, stop it. Stopping is safe at any point."""

    directory: Path
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    server: str = ""
    etcd: str = ""
    gates: str = ""
    """Feature gates of server and scheduler, besides our own."""
    runtime_config: str = ""
    suffix: str = ""
    """`-next`: server and scheduler of the Kubernetes after the one that everything else is held to."""
    users: tuple[str, ...] = ()
    """Further administrators, each with a kubeconfig; what they write stands in `audit_log` under their names."""
    accounts: tuple[str, ...] = ()
    """Further users. Each has the token NAME-token and a kubeconfig of its own."""
    audited: bool = False
    """Whether the server writes every request to `audit_log`."""
    _running: list[tuple[str, subprocess.Popen[bytes]]] = field(default_factory=list)

    @property
    def ca(self) -> str:
        """The certificate that the API server made for itself."""
        return (self.directory / "certs" / "apiserver.crt").read_text()

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        return self.directory / "audit.log"

    def kubeconfig_of(self, user: str) -> Path:
        return self.directory / f"{user}.kubeconfig"

    def start(self) -> None:
        self.etcd = self._start_etcd()
        self._start_api_server(self.etcd)
        self._write_kubeconfig(self.kubeconfig, self.token)
        for user in self.users:
            self._write_kubeconfig(self.kubeconfig_of(user), f"{self.token}-{user}")
        for account in self.accounts:
            self._write_kubeconfig(self.kubeconfig_of(account), f"{account}-token")

    def start_scheduler(self, *arguments: str) -> None:
        self._run(
            "kube-scheduler" + self.suffix,
            "--kubeconfig",
            str(self.kubeconfig),
            "--leader-elect=false",
            "--secure-port=0",
            *arguments,
        )

    def start_controllers(self, *arguments: str) -> None:
        key = str(self.directory / "sa.key")
        self._run(
            "kube-controller-manager",
            "--kubeconfig",
            str(self.kubeconfig),
            "--leader-elect=false",
            "--secure-port=0",
            "--service-account-private-key-file",
            key,
            "--use-service-account-credentials=false",
            *arguments,
        )

    def restart_api_server(self) -> None:
        """Pull the plug, then the same server again, on the same port and the same etcd."""
        _, process = self._running[-1]
        process.kill()
        process.wait()
        self._running.pop()
        self._start_api_server(self.etcd, int(self.server.rpartition(":")[2]))

    def signal(self, name: str, number: int) -> None:
        """Stop a program for a while (SIGSTOP), or let it go on (SIGCONT)."""
        next(process for running, process in self._running if running == name).send_signal(number)

    def compact(self, revision: int) -> None:
        """Let etcd forget everything before a revision, as it does by itself every five minutes."""
        body = json.dumps({"revision": str(revision), "physical": True}).encode()
        with urllib.request.urlopen(f"{self.etcd}/v3/kv/compaction", data=body, timeout=10):
            pass

    def stop(self) -> None:
        """The last started goes first; who does not listen is killed."""
        while self._running:
            _, process = self._running.pop()
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start_etcd(self) -> str:
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self._run(
            "etcd",
            "--data-dir",
            str(self.directory / "etcd"),
            "--unsafe-no-fsync",
            "--log-level=warn",
            "--listen-client-urls",
            client,
            "--advertise-client-urls",
            client,
            "--listen-peer-urls",
            peer,
            "--initial-advertise-peer-urls",
            peer,
            "--initial-cluster",
            f"default={peer}",
        )
        self._wait_for("etcd", client + "/health")
        return client

    def _start_api_server(self, etcd: str, port: int = 0) -> None:
        key = self.directory / "sa.key"
        if not key.exists():
            key.write_bytes(_private_key())
        tokens = self.directory / "tokens.csv"
        known = {"admin": self.token, **{user: f"{self.token}-{user}" for user in self.users}}
        tokens.write_text("".join(f"{token},{user},{user},system:masters\n" for user, token in known.items()))
        with tokens.open("a") as file:
            file.writelines(f"{name}-token,{name},{name}\n" for name in self.accounts)
        tokens.chmod(0o600)
        port = port or free_port()
        self.server = f"https://127.0.0.1:{port}"
        self._run(
            "kube-apiserver" + self.suffix,
            "--etcd-servers",
            etcd,
            "--secure-port",
            str(port),
            "--bind-address=127.0.0.1",
            "--cert-dir",
            str(self.directory / "certs"),
            "--token-auth-file",
            str(tokens),
            "--service-account-key-file",
            str(key),
            "--service-account-signing-key-file",
            str(key),
            "--service-account-issuer=https://kubernetes.default.svc",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            # Nobody makes service accounts here, and nodes are made by hand, Ready at once.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            # Old moments are read from etcd and not from a cache, so that a compaction shows at once.
            f"--feature-gates=ListFromCacheSnapshot=false{',' + self.gates if self.gates else ''}",
            *([f"--runtime-config={self.runtime_config}"] if self.runtime_config else []),
            *(self._audit_flags() if self.users or self.audited else []),
        )
        self._wait_for("kube-apiserver" + self.suffix, self.server + "/readyz")

    def _audit_flags(self) -> list[str]:
        policy = self.directory / "audit-policy.json"
        writes = {"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"]}
        rules = [{"level": "Metadata"}] if self.audited else [writes, {"level": "None"}]
        stages = ["RequestReceived", "ResponseStarted"]
        body = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": stages, "rules": rules}
        policy.write_text(json.dumps(body))
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self.audit_log}"]

    def _run(self, name: str, *arguments: str) -> None:
        binary = real_binary(name)
        with (self.directory / f"{name}.log").open("wb") as log:
            process = subprocess.Popen([binary, *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._running.append((name, process))

    def _wait_for(self, name: str, url: str, *, patience: float = 180.0) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {self.token}"})
        ends = time.monotonic() + patience
        while time.monotonic() < ends and self._running[-1][1].poll() is None:
            try:
                with urllib.request.urlopen(request, timeout=2, context=context):
                    return
            except OSError:
                time.sleep(0.1)
        tail = "\n".join((self.directory / f"{name}.log").read_text(errors="replace").splitlines()[-15:])
        pytest.fail(f"{name} did not become ready; the end of its log:\n{tail}", pytrace=False)

    def _write_kubeconfig(self, path: Path, token: str) -> None:
        cluster = {"server": self.server, "certificate-authority": str(self.directory / "certs" / "apiserver.crt")}
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "real",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
        }  # fmt: skip
        path.write_text(json.dumps(config))
        path.chmod(0o600)


def _private_key() -> bytes:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def define_volcano_kinds(kubeconfig: Path) -> None:
    """Volcano's definitions on a real API server, once it serves them all."""
    _define(kubeconfig, Path(real_binary("vc-scheduler")).parent / "volcano-definitions")


def define_koordinator_kinds(kubeconfig: Path) -> None:
    """Koordinator's definitions on a real API server, once it serves them all."""
    _define(kubeconfig, Path(real_binary("kubectl")).parent / "koordinator-definitions")


def _define(kubeconfig: Path, definitions: Path, *, patience: float = 180.0) -> None:
    assert definitions.is_dir(), f"{definitions} is missing: run tools/real/build.sh"
    kubectl = [real_binary("kubectl"), "--kubeconfig", str(kubeconfig)]
    subprocess.run([*kubectl, "apply", "--server-side", "-f", str(definitions)], check=True, capture_output=True)
    ends = time.monotonic() + patience
    wait = ["wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinitions", "--all"]
    while (done := subprocess.run([*kubectl, *wait], capture_output=True, text=True, check=False)).returncode:
        assert time.monotonic() < ends, done.stderr
        time.sleep(0.5)  # kubectl fails over a definition that has no conditions yet
