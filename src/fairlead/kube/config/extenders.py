"""HttpExtenders from a configuration, and the configuration without the resources that extenders manage."""

from __future__ import annotations

import base64
import ssl
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.cluster.server.pki import write_private
from fairlead.errors import ConfigError
from fairlead.kube.config.plugin_args import NodeResourcesFitArgs
from fairlead.kube.extenders.http_extender import ExtenderSpec, HttpExtender

if TYPE_CHECKING:
    from fairlead.core.model.flow import DocView
    from fairlead.kube.config.records import ExtenderConfig, ExtenderTls, KubeConfig

FIT = "NodeResourcesFit"


def extenders_of(config: KubeConfig, view: DocView) -> tuple[HttpExtender, ...]:
    """The extenders in the order in which they are called: ignorable ones come last."""
    return tuple(HttpExtender(spec_of(extender), view) for extender in config.extenders_in_order)


def spec_of(extender: ExtenderConfig) -> ExtenderSpec:
    secure = extender.url_prefix.startswith("https")
    return ExtenderSpec(
        url=extender.url_prefix,
        filter_verb=extender.filter_verb,
        prioritize_verb=extender.prioritize_verb,
        preempt_verb=extender.preempt_verb,
        bind_verb=extender.bind_verb,
        weight=extender.weight,
        timeout=extender.http_timeout,
        node_cache_capable=extender.node_cache_capable,
        managed_resources=frozenset(resource.name for resource in extender.managed_resources),
        ignorable=extender.ignorable,
        tls=_tls(extender) if secure else None,
        server_name=extender.tls.server_name if extender.tls else "",
    )


def without_what_extenders_manage(config: KubeConfig) -> KubeConfig:
    """The configuration in which NodeResourcesFit ignores resources that an extender manages alone. As in the original,
    they replace the plugin's own `ignoredResources`."""
    ignored = tuple(
        resource.name
        for extender in config.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    if not ignored:
        return config
    profiles = []
    for profile in config.profiles:
        args = profile.args.get(FIT)
        fit = args if isinstance(args, NodeResourcesFitArgs) else NodeResourcesFitArgs()
        profiles.append(replace(profile, args={**profile.args, FIT: replace(fit, ignored_resources=ignored)}))
    return replace(config, profiles=tuple(profiles))


def _tls(extender: ExtenderConfig) -> ssl.SSLContext:
    tls = extender.tls
    try:
        return _context(tls, insecure=_trusts_anybody(extender))
    except (OSError, ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"the TLS settings cannot be used: {error}", path=f"extenders[{extender.url_prefix}]"
        ) from error


def _trusts_anybody(extender: ExtenderConfig) -> bool:
    """Asked for; or, as in the original, what enableHTTPS without any CA means."""
    tls = extender.tls
    if tls is not None and tls.insecure:
        return True
    return extender.enable_https and not (tls is not None and (tls.ca_file or tls.ca_data))


def _context(tls: ExtenderTls | None, *, insecure: bool) -> ssl.SSLContext:
    ca_data = base64.b64decode(tls.ca_data).decode() if tls and tls.ca_data else None
    context = ssl.create_default_context(cafile=(tls.ca_file or None) if tls else None, cadata=ca_data)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls is not None and (tls.cert_file or tls.cert_data):
        _present(context, tls)
    return context


def _present(context: ssl.SSLContext, tls: ExtenderTls) -> None:
    """The client's certificate. OpenSSL takes it only from files, so it is a file for a moment."""
    with tempfile.TemporaryDirectory() as directory:
        certificate = _as_file(Path(directory, "crt"), tls.cert_file, tls.cert_data)
        context.load_cert_chain(certificate, _as_file(Path(directory, "key"), tls.key_file, tls.key_data))


def _as_file(path: Path, file: str, data: str) -> Path:
    """The file of a certificate or key; data in the configuration is preferred to a file."""
    if not data:
        return Path(file)
    write_private(path, base64.b64decode(data))
    return path
