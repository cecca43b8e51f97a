"""`fairlead scheduler`: the scheduler alone, on whatever cluster a kubeconfig names, in kube-scheduler's place.

It takes kube-scheduler's configuration file and those of its flags that still mean something. It ends with exit code 0
on SIGTERM and SIGINT, and with 1 when the lease is lost; the next process in line takes over.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairlead.cli.gate_flags import compatible_option, gates_option, with_compatibility
from fairlead.console.command_group import exit_code_of
from fairlead.core.model.durations import parse_duration
from fairlead.errors import FairleadError
from fairlead.volcano.cli.flags import volcano_options, volcano_setup

if TYPE_CHECKING:
    from fairlead.cli.scheduler_flags import SchedulerFlags
    from fairlead.kube.config.records import KubeConfig

Command = TypeVar("Command", bound=Callable[..., Any])


def _duration(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    try:
        return None if value is None else parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


def _paths(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    paths = tuple(path.strip() for path in value.split(",") if path.strip())
    for path in paths:
        if not path.startswith("/"):
            raise click.BadParameter(f"{path} does not begin with /", context, parameter)
    return paths


def _namespaced(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, str] | None:
    if value is None:
        return None
    namespace, _, name = value.partition("/")
    if not namespace or not name or "/" in name:
        raise click.BadParameter(f"{value!r} is not NAMESPACE/NAME", context, parameter)
    return namespace, name


def _spelt(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"


def _leader_flag(name: str, words: str) -> Callable[[Command], Command]:
    return click.option(f"--leader-elect-{name}", callback=_duration, metavar="DURATION", help=words)


class _KubeFlags(click.Command):
    """Names the flags of kube-scheduler that mean nothing here, and logs in the form that was asked for to the end."""

    def invoke(self, ctx: click.Context) -> Any:
        """What ends the process is JSON too where the log is."""
        try:
            return super().invoke(ctx)
        except FairleadError as error:
            if ctx.params.get("form") != "json":
                raise
            logging.getLogger("fairlead.scheduler").error("%s", error)
            sys.exit(exit_code_of(error))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name.removeprefix("--")
            why = next((why for words, why in _LEFT_OUT.items() if name in words.split()), None)
            if why is None:
                raise
            message = f"'--{name}' is a flag of kube-scheduler that is not there: {why} (leave it away)"
            raise click.UsageError(message, ctx) from None


_LEFT_OUT = {
    "profiling contention-profiling": "no profiling endpoints are served",
    "allow-metric-labels allow-metric-labels-manifest disabled-metrics show-hidden-metrics-for-version":
        "all metrics are served, with all their labels",
    "authentication-skip-lookup authentication-token-webhook-cache-ttl authentication-tolerate-lookup-failure "
    "authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl client-ca-file "
    "requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix "
    "requestheader-group-headers requestheader-uid-headers requestheader-username-headers":
        "the port takes tokens, which the API server reviews",
    "cert-dir tls-cipher-suites tls-curve-preferences tls-min-version tls-sni-cert-key":
        "the port has the certificate of --tls-cert-file, and Python's defaults for TLS",
    "disable-http2-serving http2-max-streams-per-connection permit-address-sharing permit-port-sharing":
        "the port serves HTTP/1.1 on one socket",
    "emulated-version min-compatibility-version": "there is one version, and --feature-gates",
    "kube-api-content-type": "requests are JSON",
    "leader-elect-resource-lock": "the lock is a Lease",
    "log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size "
    "log-text-split-stream vmodule": "the log goes to standard error as it is written",
}  # fmt: skip
"""kube-scheduler's flags that are not taken, by the reason."""

_SOURCES = ("config", "policy_config_file", "policy_configmap", "algorithm_provider")
"""Parameters each of which says what the whole configuration is."""
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("scheduler", cls=_KubeFlags)
@click.option(
    "--config",
    type=_FILE,
    metavar="FILE",
    help="KubeSchedulerConfiguration (or a legacy Policy). Read again when it changes.",
)
@click.option("--policy-config-file", type=_FILE, metavar="FILE", help="A legacy Policy in the place of --config.")
@click.option("--policy-configmap", metavar="NAME", help="A ConfigMap that holds one under the key policy.cfg.")
@click.option(
    "--policy-configmap-namespace",
    default="kube-system",
    show_default=True,
    metavar="NAME",
    help="Where that ConfigMap is.",
)
@click.option(
    "--algorithm-provider",
    metavar="NAME",
    help="DefaultProvider, or ClusterAutoscalerProvider, which fills nodes one after the other. Without --config.",
)
@click.option(
    "--kubeconfig",
    type=_FILE,
    metavar="FILE",
    help="Default: the configuration's, KUBECONFIG, ./fairlead.kubeconfig, ~/.kube/config, the pod's own.",
)
@click.option("--context", metavar="NAME", help="Another context of the kubeconfig than the current one.")
@click.option("--master", metavar="URL", help="Address of the API server, over the kubeconfig's.")
@click.option("--write-config-to", type=_FILE, metavar="FILE", help="Write the effective configuration and leave.")
@click.option(
    "--bind-address",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Where to serve health, metrics and explanations.",
)
@click.option("--secure-port", type=click.IntRange(0, 65535), default=10259, show_default=True, help="0 turns it off.")
@click.option(
    "--tls-cert-file",
    type=_FILE,
    metavar="FILE",
    help="Certificate of that port. Read again when it changes.  [default: one that is made at the start]",
)
@click.option("--tls-private-key-file", type=_FILE, metavar="FILE", help="Key of that certificate.")
@click.option(
    "--authentication-token-file",
    type=_FILE,
    metavar="FILE",
    help="Bearer token for that port, read again when it changes, in the place of asking the API server.",
)
@click.option(
    "--insecure-http",
    is_flag=True,
    help="Serve that port on loopback without TLS and without tokens, to every program of the machine.",
)
@click.option(
    "--authentication-kubeconfig",
    type=_FILE,
    metavar="FILE",
    help="Where the tokens of those who use the port are reviewed.  [default: the cluster]",
)
@click.option(
    "--authorization-kubeconfig",
    type=_FILE,
    metavar="FILE",
    help="Where their access is reviewed.  [default: the cluster]",
)
@click.option(
    "--authorization-always-allow-paths",
    "authorization_always_allow_paths",
    callback=_paths,
    default="/healthz,/readyz,/livez",
    show_default=True,
    metavar="PATH,...",
    help="Paths of that port that anybody may read; health always is one.",
)
@click.option("--kube-api-qps", type=float, metavar="N", help="Requests a second; -1 is no limit. Without --config.")
@click.option("--kube-api-burst", type=int, metavar="N", help="Requests at once. Without --config.")
@click.option(
    "--pod-max-in-unschedulable-pods-duration",
    "unschedulable_limit",
    default="5m",
    show_default=True,
    callback=_duration,
    metavar="DURATION",
    help="How long a refused pod waits for an event.",
)
@click.option(
    "--leader-elect",
    type=bool,
    is_flag=False,
    flag_value="true",
    metavar="BOOL",
    help="Act only while holding the lease.",
)
@_leader_flag("lease-duration", "How long a lease lasts that nobody renews.")
@_leader_flag("renew-deadline", "How long the leader tries to renew before it gives up.")
@_leader_flag("retry-period", "Time between two tries.")
@click.option("--leader-elect-resource-name", metavar="NAME", help="The lease.")
@click.option("--leader-elect-resource-namespace", metavar="NAME", help="Its namespace.")
@click.option(
    "--leader-elect-first",
    "first_lease",
    callback=_namespaced,
    metavar="NAMESPACE/NAME",
    help="Take this lease first, and act only while holding both.",
)
@gates_option("A=true,B=false.")
@compatible_option
@volcano_options
@click.option(
    "--volcano-controllers", is_flag=True, help="Make PodGroups for plain pods and keep Queues, where nobody else does."
)
@click.option(
    "--evictions-in",
    callback=_namespaced,
    metavar="NAMESPACE/NAME",
    help="Keep the last evictions in this ConfigMap, so that `fairlead evictions` knows them after a restart.",
)
@click.option(
    "--replace-refused-pods",
    is_flag=True,
    help="Replace pods that a kubelet refused as OutOfcpu and the like: delete them, and make bare pods again.",
)
@click.option(
    "--tracing-endpoint",
    metavar="URL",
    help="Send a span for each scheduling cycle and plugin to this OpenTelemetry collector (OTLP over "
    "HTTP). Needs fairlead[tracing].",
)
@click.option("--logging-format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "-v",
    "--v",
    "verbosity",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="2: every decision. 4: everything.",
)
def scheduler_command(**flags: Any) -> None:
    """Schedule the pods of a cluster, in kube-scheduler's place.

    \b
      fairlead scheduler --config scheduler.yaml
      fairlead scheduler --kubeconfig fairlead.kubeconfig      (beside `fairlead up --scheduler none`)
      fairlead scheduler --volcano-only --volcano-conf volcano-scheduler.conf      (in Volcano's place)
    """
    from fairlead.cli.scheduler_config import effective_config, written_config
    from fairlead.cli.scheduler_flags import SchedulerFlags
    from fairlead.cli.scheduling import run
    from fairlead.console.logs import log_as_asked

    log_as_asked(flags.pop("form"), flags["verbosity"])
    if (flags["tls_cert_file"] is None) != (flags["tls_private_key_file"] is None):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file come together")
    _check_insecure_http(flags)
    if sum(flags[name] is not None for name in _SOURCES) > 1:
        named = " and ".join([", ".join(map(_spelt, _SOURCES[:-1])), _spelt(_SOURCES[-1])])
        raise click.UsageError(f"{named} exclude each other")
    flags["gates"] = with_compatibility(flags)
    volcano = volcano_setup(flags)
    if volcano is None and flags["volcano_controllers"]:
        raise click.UsageError("--volcano-controllers needs --volcano-conf")
    asked = SchedulerFlags.of(flags, volcano)
    if asked.port.insecure_http and not asked.port.on_loopback:
        raise click.UsageError(f"--insecure-http is for loopback, and --bind-address is {asked.port.bind_address}")
    config, port = effective_config(asked), asked.port
    if flags["write_config_to"] is not None:
        try:
            flags["write_config_to"].write_text(written_config(config))
        except OSError as error:
            raise click.BadParameter(
                f"{flags['write_config_to']} cannot be written: {error.strerror}", param_hint="'--write-config-to'"
            ) from None
        return
    _say_what_starts(asked, config)
    try:
        asyncio.run(run(asked, config))
    except OSError as error:
        raise FairleadError(f"cannot listen on {port.bind_address}:{port.secure_port}: {error.strerror}") from error


def _say_what_starts(asked: SchedulerFlags, config: KubeConfig) -> None:
    """The first line of the log: what runs, by which file, for whom and in which role."""
    from fairlead import __version__

    volcano, election = asked.volcano, config.leader_election
    modes = [*(["kube"] if volcano is None or not volcano.only else []), *(["volcano"] if volcano is not None else [])]
    profiles = [profile.scheduler_name for profile in config.profiles] if "kube" in modes else []
    names = [*profiles, *(volcano.scheduler_names if volcano is not None else ())]
    leases = ["/".join(asked.first_lease)] if asked.first_lease is not None else []
    leases += [f"{election.resource_namespace}/{election.resource_name}"]
    about = {
        "version": __version__,
        "modes": ",".join(modes),
        "profiles": ",".join(names),
        "config": str(asked.config.config or asked.config.policy_config_file or "none"),
        "role": f"stands for {','.join(leases)}" if election.leader_elect else "acts without a lease",
    }
    logging.getLogger("fairlead.scheduler").info("fairlead scheduler starts", extra=about)


def _check_insecure_http(flags: dict[str, Any]) -> None:
    """Who asks for plain HTTP asks for no certificate and no token."""
    for name in ("tls_cert_file", "authentication_token_file"):
        if flags["insecure_http"] and flags[name] is not None:
            raise click.UsageError(f"--insecure-http and --{name.replace('_', '-')} exclude each other")
