"""The least change for gangs that are short of a quota above their own, a rack, devices or room that somebody holds:
each was tried, and is applied here for real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from fairlead.cli.main import cli
from fairlead.testing import Harness, node, pod, podgroup, queue
from tests.support import short_gangs as short
from tests.support.koordinator import elastic_quota
from tests.support.suggested_changes import changes, commands, patch

Doc = dict[str, Any]


def test_a_queue_above_is_raised_because_another_below_it_has_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "volcano.conf"
    file.write_text(short.VOLCANO.replace("{name: capacity}", "{name: capacity, enableHierarchy: true}"))
    cluster = Harness(nodes=[node("n0").offers(cpu="16")], volcano=file)
    cluster.run(3)
    cluster.apply(queue("dept").capped_at(cpu="4"))
    cluster.apply(*(queue(name).capped_at(cpu="4").having(parent="dept") for name in ("team", "others")))
    cluster.run(3)

    def gang(name: str, members: int, where: str) -> list[Any]:
        pods = [pod(f"{name}-{at}").asks(cpu="1").in_group(name).scheduled_by("volcano") for at in range(members)]
        return [podgroup(name, members).in_queue(where), *pods]

    cluster.apply(*gang("there", 3, "others"))
    cluster.run(5)
    assert len(cluster.bindings()) == 3
    found = changes(cluster, *gang("g", 3, "team"))["allowance"]
    assert found["says"] == "with capability cpu 6 instead of 4 in the Queue dept"
    cluster.patch("queue", "dept", patch(found))
    cluster.run(3)
    assert cluster.would(*gang("g", 3, "team")).runs


def test_a_quota_above_is_raised_with_the_own_one() -> None:
    cluster = Harness(nodes=[node("n0").offers(cpu="16")], config="koordinator")
    cluster.apply(
        elastic_quota("dept", least={"cpu": "1"}, most={"cpu": "3"}, is_parent=True),
        elastic_quota("team", least={"cpu": "1"}, most={"cpu": "2"}, parent="dept"),
    )
    cluster.run(3)
    label = {"quota.scheduling.koordinator.sh/name": "team"}
    wanted = pod("new").asks(cpu="5").labelled(label).scheduled_by("koord-scheduler")
    found = changes(cluster, wanted)["allowance"]
    assert found["says"] == (
        "with max cpu 5 instead of 2 in the ElasticQuota team and max cpu 5 instead of 3 in the ElasticQuota dept"
    )
    assert [part.split()[3] for part in commands(found)] == ["dept", "team"], "from above"
    for name in ("team", "dept"):
        cluster.patch("elasticquota", name, {"spec": {"max": {"cpu": "5"}}})
    cluster.run(3)
    forecast = cluster.would(wanted)
    assert forecast.runs
    (quota,) = forecast.quotas
    assert (quota.name, quota.before["used"]["cpu"], quota.after["used"]["cpu"]) == ("team", "0", "5")
    for name, less in (("team", "4990m"), ("dept", "4990m")):
        cluster.patch("elasticquota", name, {"spec": {"max": {"cpu": less}}})
        cluster.run(3)
        assert not cluster.would(wanted).runs, name
        cluster.patch("elasticquota", name, {"spec": {"max": {"cpu": "5"}}})
        cluster.run(3)


def explained(cluster: Harness, name: str = "g") -> dict[str, Doc]:
    """The changes that `fairlead explain` names for a group that waits."""
    cluster.run(5)
    command = ["explain", "podgroup", name, "--changes", "-o", "json", "--kubeconfig", str(cluster.serve())]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 3, result.output
    return {one["kind"]: one for one in json.loads(result.stdout).get("changes", ())}


def test_a_gang_that_waits_may_be_made_to_give_up_its_rack(tmp_path: Path) -> None:
    with short.koord_rack(tmp_path) as cluster:
        found = explained(cluster)["closeness"]
        assert commands(found)[0].startswith("kubectl patch podgroups.scheduling.sigs.k8s.io/g --type=merge -p ")
        assert list(patch(found)["metadata"]["annotations"].values()) == [None]
        cluster.patch("podgroups.scheduling.sigs.k8s.io", "g", patch(found))
        cluster.until(lambda: len(cluster.bindings()) == 5, limit=60)


def test_a_gang_with_the_volcano_profile_may_ask_for_less_of_a_card(tmp_path: Path) -> None:
    with short.volcano_device(tmp_path) as cluster:
        found = explained(cluster)["request"]
        assert "volcano.sh/vgpu-memory 8k instead of 10k" in found["says"], found


def test_a_gang_with_the_koordinator_profile_may_ask_for_less_of_a_card(tmp_path: Path) -> None:
    with short.koord_device(tmp_path) as cluster:
        found = explained(cluster)["request"]
        assert "koordinator.sh/gpu 50 instead of 60" in found["says"], found


def test_a_gang_may_wait_for_the_reservation_that_holds_its_room() -> None:
    cluster = short.koordinator(short.one(cpu="8"))
    cluster.apply(short.koord_reservation("r", request={"cpu": "6"}, owners={"app": "web"}, ttl="24h"))
    cluster.run(3)
    wanted = short.koord_gang(2, {"cpu": "2"})
    found = changes(cluster, *wanted)["end"]
    assert found["says"] == "when the Reservation r has ended"
    assert commands(found) == ["kubectl delete reservations.scheduling.koordinator.sh r"]


def test_a_gang_may_wait_for_the_group_that_its_room_is_kept_for(tmp_path: Path) -> None:
    with short.volcano_reservation(tmp_path) as cluster:
        assert explained(cluster)["end"]["says"] == "when the group default/held has ended"
