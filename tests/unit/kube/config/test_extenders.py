"""From the extenders of a configuration file to extenders: order, TLS, and resources taken off the fit check."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path

import pytest

from fairlead.assembly.assemble import profiles_of
from fairlead.assembly.loading import load_config
from fairlead.cluster.server.pki import Credentials
from fairlead.errors import ConfigError
from fairlead.kube.config.extenders import extenders_of, spec_of, without_what_extenders_manage
from fairlead.kube.config.records import ExtenderConfig, ExtenderTls
from fairlead.testing.harness import Harness

TEXT = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: http://127.0.0.1:1/a
  filterVerb: filter
  ignorable: true
- urlPrefix: http://127.0.0.1:1/b
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 5
  nodeCacheCapable: true
  httpTimeout: 100ms
  managedResources:
  - name: example.com/fpga
    ignoredByScheduler: true
  - name: example.com/other
"""


def test_ignorable_extenders_come_last() -> None:
    first, second = extenders_of(load_config(TEXT), Harness().store)
    assert (first.name, second.name) == ("http://127.0.0.1:1/b", "http://127.0.0.1:1/a")
    assert (first.ignorable, second.ignorable) == (False, True)


def test_an_extender_is_made_as_the_file_says() -> None:
    spec = spec_of(load_config(TEXT).extenders[1])
    assert (spec.weight, spec.timeout, spec.node_cache_capable) == (5, 0.1, True)
    assert spec.managed_resources == {"example.com/fpga", "example.com/other"}
    assert spec.tls is None


def test_resources_that_an_extender_keeps_to_itself_are_not_the_fit_checks_business() -> None:
    config = without_what_extenders_manage(load_config(TEXT))
    (profile,) = config.profiles
    assert profile.args["NodeResourcesFit"].ignored_resources == ("example.com/fpga",)


PROFILE = """
profiles:
- plugins:
    multiPoint:
      disabled: [{name: "*"}]
      enabled: [{name: PrioritySort}, {name: NodeResourcesFit}, {name: DefaultBinder}]
"""


def test_profiles_see_extenders() -> None:
    config = load_config(TEXT + PROFILE)
    made = extenders_of(config, Harness().store)
    assert all(profile.extenders == made for profile in profiles_of(config, extenders=made))


@pytest.fixture
def credentials() -> Credentials:
    return Credentials.generate(now=1_767_225_600.0)


def secured(tls: ExtenderTls | None, *, enable: bool = False) -> ssl.SSLContext:
    spec = spec_of(ExtenderConfig("https://127.0.0.1:1", filter_verb="f", enable_https=enable, tls=tls))
    assert spec.tls is not None
    return spec.tls


def test_https_without_any_ca_trusts_anybody_only_when_enabled() -> None:
    assert secured(None, enable=True).verify_mode is ssl.CERT_NONE
    assert secured(None).verify_mode is ssl.CERT_REQUIRED
    assert secured(ExtenderTls(insecure=True)).verify_mode is ssl.CERT_NONE


def test_a_ca_may_be_data_or_a_file(credentials: Credentials, tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_bytes(credentials.ca)
    for tls in (ExtenderTls(ca_file=str(file)), ExtenderTls(ca_data=base64.b64encode(credentials.ca).decode())):
        context = secured(tls, enable=True)
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert len(context.get_ca_certs()) >= 1


def test_a_client_certificate_may_be_data_or_files(credentials: Credentials, tmp_path: Path) -> None:
    certificate, key = tmp_path / "c", tmp_path / "k"
    certificate.write_bytes(credentials.certificate)
    key.write_bytes(credentials.key)
    data = [base64.b64encode(raw).decode() for raw in (credentials.certificate, credentials.key)]
    secured(ExtenderTls(cert_data=data[0], key_data=data[1]))
    secured(ExtenderTls(cert_file=str(certificate), key_file=str(key)))
    with pytest.raises(ConfigError, match="TLS settings cannot be used"):
        secured(ExtenderTls(cert_file=str(tmp_path / "none"), key_file=str(key)))
