"""Where the API server is and who we are: kubeconfig files and the service account of a pod.

A thin face over the loader of the official `kubernetes` package, which knows contexts, client certificates, token
files, exec plugins, OIDC and several files in KUBECONFIG. Only its loader is used, and it is imported when first
needed, because the package takes half a second to import. What comes out is a `Connection`: an address, a ready
TLS context and a function that gives the current Authorization header.

Invariant: key material that the loader writes to disk is gone again when the Connection is made; anything that cannot
be read or understood is a ConfigError that names the file and says what to do.
"""

from __future__ import annotations

import logging
import os
import ssl
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from fairlead.config.yaml_text import read_yaml
from fairlead.errors import ConfigError

OWN_KUBECONFIG = "fairlead.kubeconfig"
"""What `fairlead up` writes where it is started."""
DEFAULT_KUBECONFIG = "~/.kube/config"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach one API server. `authorization` may block (it may read a file or run a plugin)."""

    server: str
    tls: ssl.SSLContext | None = None
    server_name: str = ""
    proxy: str = ""
    namespace: str = "default"
    authorization: Callable[[], str] | None = None
    source: str = ""
    """Where this connection was found, for messages: `KUBECONFIG=/a/b`, `./fairlead.kubeconfig`, ..."""

    def __str__(self) -> str:
        return f"{self.server} (from {self.source})" if self.source else self.server

    @classmethod
    def to(cls, server: str, *, token: str = "", ca: str | bytes | None = None, insecure: bool = False) -> Connection:
        """A connection from parts at hand: an address, a bearer token, the CA as PEM text."""
        tls = _tls(ca_data=ca, insecure=insecure) if server.startswith("https") else None
        return cls(server=server.rstrip("/"), tls=tls, authorization=(lambda: f"Bearer {token}") if token else None)

    @classmethod
    def pinned(cls, server: str, certificate: str, authorization: Callable[[], str] | None, source: str) -> Connection:
        """A connection to the owner of this very certificate (PEM), under whatever name it is reached."""
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname = False
        tls.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        tls.load_verify_locations(cadata=certificate)
        return cls(server=server.rstrip("/"), tls=tls, authorization=authorization, source=source)


def connect(kubeconfig: str | None = None, context: str | None = None, *, configured: str = "") -> Connection:
    """The connection that every command means: the file named by a flag, else the one that the configuration file
    names, else KUBECONFIG, else ./fairlead.kubeconfig, else ~/.kube/config, else the pod's service account."""
    for source, paths in _kubeconfigs(kubeconfig, configured):
        if paths:
            if paths == OWN_KUBECONFIG and not kubeconfig:
                check_found_kubeconfig(Path(paths))
            return replace(load_kubeconfig(paths, context), source=source)
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return replace(load_in_cluster(), source="the pod's service account")
    raise ConfigError(
        f"no cluster to connect to: KUBECONFIG is not set, ./{OWN_KUBECONFIG} and {DEFAULT_KUBECONFIG} do not exist, "
        "and this is not a pod",
        hint="name a file with --kubeconfig, or start a cluster with `fairlead up`",
    )


def _kubeconfigs(flag: str | None, configured: str) -> Iterator[tuple[str, str]]:
    """What may name a cluster, in order: its name for messages, and the path or paths; empty if it names none."""
    yield f"--kubeconfig {flag}", flag or ""
    yield f"{configured}, named by the configuration file", configured
    environment = os.environ.get("KUBECONFIG", "")
    yield f"KUBECONFIG={environment}", environment
    yield f"./{OWN_KUBECONFIG}", OWN_KUBECONFIG if Path(OWN_KUBECONFIG).exists() else ""
    usual = Path(DEFAULT_KUBECONFIG).expanduser()
    yield DEFAULT_KUBECONFIG, DEFAULT_KUBECONFIG if usual.exists() else ""


_OWN_FIELDS = {"cluster": {"server", "certificate-authority-data"}, "user": {"token"}}
"""What `fairlead up` writes of a cluster and a user."""
_FOUND = "was found in the working directory and"
_TRUSTED = "if you trust it, name it with --kubeconfig or KUBECONFIG"


def check_found_kubeconfig(path: Path) -> None:
    """Refuse a kubeconfig that nobody named and that `fairlead up` did not write for this user. It may lie there
    because somebody planted it: a kubeconfig can run programs and send secrets to another server."""
    try:
        status = path.lstat()
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(f"cannot be read: {why}", file=str(path)) from error
    if stat.S_ISLNK(status.st_mode) or status.st_uid != os.geteuid():
        raise ConfigError(f"{_FOUND} belongs to somebody else", file=str(path), hint=_TRUSTED)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        hint = f"chmod 600 {path}, or name it with --kubeconfig"
        raise ConfigError(f"{_FOUND} can be written by others", file=str(path), hint=hint)
    document = read_yaml(text)
    for part, own in _OWN_FIELDS.items():
        for entry in (document.get(f"{part}s") if isinstance(document, dict) else None) or ():
            strange = sorted(set((entry.get(part) or {}) if isinstance(entry, dict) else {}) - own)
            if strange:
                said = f"{_FOUND} says more than `fairlead up` writes"
                raise ConfigError(said, file=str(path), path=f"{part}s[].{part}.{strange[0]}", hint=_TRUSTED)


def load_kubeconfig(paths: str | Path, context: str | None = None) -> Connection:
    """The connection of a context (default: the current one) in one file or several, separated as in KUBECONFIG."""
    from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger

    text = os.pathsep.join(str(Path(path).expanduser()) for path in str(paths).split(os.pathsep) if path)
    _readable(text)
    with _config_errors(text), tempfile.TemporaryDirectory(prefix="fairlead-") as keys, _logged_errors() as errors:
        merged = KubeConfigMerger(text)
        if not merged.config:
            raise ConfigError("no configuration found", file=text)
        loader = KubeConfigLoader(
            config_dict=merged.config,
            active_context=context,
            config_persister=merged.save_changes,
            config_base_path=None,
            temp_file_path=keys,
        )
        settings = _Settings()
        loader.load_and_set(settings)
        user = _user_of(merged.config.value, loader.current_context["context"])
        if "exec" in user and not settings.api_key and not settings.cert_file:
            raise ConfigError(
                "; ".join(errors) or "the exec plugin gave no credentials",
                path="users[].user.exec",
                file=text,
                hint="run the plugin's command by hand to see what it says",
            )
        namespace = loader.current_context["context"].get("namespace") or "default"
        again = loader.load_and_set if "tokenFile" in user else None
        return _connection(settings, namespace=namespace, reload=again)


def load_in_cluster(*, directory: Path = SERVICE_ACCOUNT, environ: Mapping[str, str] | None = None) -> Connection:
    """The connection of a pod's service account; its token file is read again as it is rotated."""
    from kubernetes.config.incluster_config import InClusterConfigLoader

    settings = _Settings()
    with _config_errors(str(directory)):
        loader = InClusterConfigLoader(
            token_filename=str(directory / "token"),
            cert_filename=str(directory / "ca.crt"),
            environ=os.environ if environ is None else environ,
        )
        loader.load_and_set(settings)
        namespace_file = directory / "namespace"
        namespace = namespace_file.read_text().strip() if namespace_file.exists() else "default"
        return _connection(settings, namespace=namespace, reload=None)


@dataclass(slots=True)
class _Settings:
    """What the loader sets on the configuration object it is given; ours, so that its client is not needed."""

    host: str = ""
    ssl_ca_cert: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify_ssl: bool = True
    tls_server_name: str | None = None
    proxy: str | None = None
    api_key: dict[str, str] = field(default_factory=dict)
    refresh_api_key_hook: Callable[[_Settings], None] | None = None


def _connection(settings: _Settings, *, namespace: str, reload: Callable[[_Settings], None] | None) -> Connection:
    if not settings.host:
        raise ConfigError("the cluster has no server address", path="clusters[].cluster.server")
    tls = None
    if settings.host.startswith("https"):
        tls = _tls(ca_file=settings.ssl_ca_cert, insecure=not settings.verify_ssl)
        if settings.cert_file:
            tls.load_cert_chain(settings.cert_file, settings.key_file)
    return Connection(
        server=settings.host,
        tls=tls,
        server_name=settings.tls_server_name or "",
        namespace=namespace,
        proxy=settings.proxy or _proxy_from_environment(settings.host),
        authorization=_authorization(settings, reload) if settings.api_key else None,
    )


def _authorization(settings: _Settings, reload: Callable[[_Settings], None] | None) -> Callable[[], str]:
    def current() -> str:
        # A token file is simply loaded again; everything else knows by its hook when it has expired.
        refresh = reload or settings.refresh_api_key_hook
        if refresh is not None:
            refresh(settings)
        return settings.api_key["BearerToken"].strip()

    return current


def _tls(*, ca_file: str | None = None, ca_data: str | bytes | None = None, insecure: bool) -> ssl.SSLContext:
    if isinstance(ca_data, bytes):
        ca_data = ca_data.decode()
    context = ssl.create_default_context(cafile=ca_file, cadata=ca_data)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _proxy_from_environment(server: str) -> str:
    address = urlsplit(server)
    if not address.hostname or proxy_bypass(address.hostname):
        return ""
    return getproxies().get(address.scheme, "")


def _readable(paths: str) -> None:
    found = [path for path in paths.split(os.pathsep) if Path(path).exists()]
    if not found:
        raise ConfigError("no such file", file=paths, hint="name an existing kubeconfig with --kubeconfig")
    for path in found:
        try:
            Path(path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ConfigError(f"cannot be read: {why}", file=path, hint="check the file and its permissions") from error


def _user_of(config: Mapping[str, Any], context: Mapping[str, Any]) -> Mapping[str, Any]:
    for user in config.get("users") or ():
        entry = getattr(user, "value", user)
        if entry.get("name") == context.get("user"):
            return entry.get("user") or {}
    return {}


@contextmanager
def _config_errors(file: str) -> Iterator[None]:
    """Whatever goes wrong while a file is loaded, said in one line with the file's name."""
    import yaml
    from kubernetes.config.config_exception import ConfigException

    try:
        yield
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else None
        raise ConfigError("not valid YAML", file=file, line=line, hint="is this a kubeconfig?") from error
    except ConfigError as error:
        if error.file:
            raise
        raise ConfigError(error.message, file=file, path=error.path, hint=error.hint) from error
    except ConfigException as error:
        raise ConfigError(str(error), file=file, hint="compare with `kubectl config view`") from error
    except (ssl.SSLError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        text = f"not a usable configuration: {type(error).__name__}: {error}"
        raise ConfigError(text, file=file, hint="compare with `kubectl config view`") from error


@contextmanager
def _logged_errors() -> Iterator[list[str]]:
    """The loader logs what an exec plugin got wrong instead of raising it; this keeps the words."""
    words: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            words.append(record.getMessage())

    keep = Keep(logging.ERROR)
    root = logging.getLogger()
    root.addHandler(keep)
    try:
        yield words
    finally:
        root.removeHandler(keep)
