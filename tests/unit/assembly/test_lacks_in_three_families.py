"""A gang that is short of quota, of a rack, of a device or of reserved room gets an answer that names it, with amounts:
with a kube profile, in Volcano's and in Koordinator's, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fairlead.cli.explain.commands import WAITS
from fairlead.cli.main import cli
from fairlead.testing import Harness
from tests.support.short_gangs import (
    RACK,
    koord_device,
    koord_quota,
    koord_rack,
    koord_reserved,
    kube_device,
    kube_quota,
    kube_rack,
    kube_reservation,
    volcano_device,
    volcano_quota,
    volcano_rack,
    volcano_reservation,
)

Doc = dict[str, Any]
LACKS: dict[str, tuple[Callable[[Path], Harness], Doc]] = {
    "kube short of quota": (
        kube_quota,
        {"of": "ResourceQuota", "name": "team", "resource": "requests.cpu", "asks": "4", "free": "1", "missing": "3"},
    ),
    "kube short of a rack": (
        kube_rack,
        {"of": "Topology", "name": f"{RACK} r0", "resource": "members", "asks": "5", "free": "4", "missing": "1"},
    ),
    "kube short of a device": (
        kube_device,
        {"of": "DeviceClass", "name": "gpu", "resource": "devices", "asks": "5", "free": "4", "missing": "1"},
    ),
    "kube short of reserved room": (
        kube_reservation,
        {
            "of": "Nodes",
            "name": "all nodes together",
            "resource": "cpu",
            "asks": "2",
            "free": "0",
            "missing": "2",
            "heldBy": [{"who": "default/vip", "amount": "3", "why": "n0 is promised to it"}],
        },
    ),
    "volcano short of quota": (
        volcano_quota,
        {"of": "Queue", "name": "team", "resource": "cpu", "asks": "4", "free": "3", "missing": "1"},
    ),
    "volcano short of a rack": (
        volcano_rack,
        {"of": "Topology", "name": "rack r0", "resource": "members", "asks": "5", "free": "4", "missing": "1"},
    ),
    "volcano short of a device": (
        volcano_device,
        {
            "of": "Device",
            "name": "cards of all nodes",
            "resource": "volcano.sh/vgpu-memory",
            "asks": "30k",
            "free": "32k",
            "missing": "10k",
        },
    ),
    "volcano short of reserved room": (
        volcano_reservation,
        {
            "of": "Queue",
            "name": "default",
            "resource": "cpu",
            "asks": "2",
            "free": "0",
            "missing": "2",
            "heldBy": [{"who": "default/held", "amount": "4", "why": "kept for it since it was let in"}],
        },
    ),
    "koordinator short of quota": (
        koord_quota,
        {"of": "ElasticQuota", "name": "team", "resource": "cpu", "asks": "3", "free": "2", "missing": "1"},
    ),
    "koordinator short of a rack": (
        koord_rack,
        {"of": "Topology", "name": "rack r0", "resource": "members", "asks": "5", "free": "4", "missing": "1"},
    ),
    "koordinator short of a device": (
        koord_device,
        {
            "of": "Device",
            "name": "gpu",
            "resource": "koordinator.sh/gpu-memory-ratio",
            "asks": "240",
            "free": "200",
            "missing": "120",
        },
    ),
    "koordinator short of a reservation": (
        koord_reserved,
        {"of": "Reservation", "name": "r", "resource": "cpu", "asks": "9", "free": "6", "missing": "3"},
    ),
}


@cache
def _runner() -> CliRunner:
    return CliRunner()


@pytest.mark.parametrize("short", LACKS)
def test_a_gang_that_is_short_of_something_names_what_and_how_much(short: str, tmp_path: Path) -> None:
    make, lack = LACKS[short]
    with make(tmp_path) as cluster:
        cluster.run(5)
        kubeconfig = str(cluster.serve())
        found = _runner().invoke(cli, ["explain", "job", "g", "--kubeconfig", kubeconfig, "-o", "json"])
        assert found.exit_code == WAITS, found.output
        document = json.loads(found.stdout)
        assert document["kind"] == "GangExplanation"
        assert lack in document["lacks"]
        text = _runner().invoke(cli, ["explain", "podgroup", "g", "--kubeconfig", kubeconfig]).stdout
    amounts = f"asks {lack['asks']} {lack['resource']}, {lack['free']} free, {lack['missing']} missing"
    assert f"short of {lack['of']} {lack['name']}: {amounts}" in text
    for held in lack.get("heldBy", ()):
        assert f"held by {held['who']}: {held['amount']} ({held['why']})" in text
