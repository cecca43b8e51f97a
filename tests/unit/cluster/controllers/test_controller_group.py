from __future__ import annotations

from collections.abc import Iterable

from fairlead.cluster.controllers.controller_group import ControllerGroup
from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import create
from fairlead.cluster.housekeeping import housekeepers
from fairlead.core.model.flow import Change, Happened, Watch, Write
from fairlead.core.model.kinds import CONFIG_MAP, NODE, POD
from fairlead.errors import InternalError
from fairlead.testing.builders import pod
from tests.support.controllers import Documents, created, refused


class Member(Reconciler[str]):
    def __init__(self, world: Documents, name: str, *watches: Watch, diary: list[str]) -> None:
        super().__init__(world)
        self.name, self.watches, self.diary = name, watches, diary

    def observe(self, change: Change) -> None:
        self.diary.append(f"{self.name} sees {change.doc['metadata']['name']}")
        self.queue.add(change.doc["metadata"]["name"])

    def visit(self, key: str, now: float) -> Iterable[Write]:
        self.diary.append(f"{self.name} visits {key}")
        if key != "quiet":
            yield create(CONFIG_MAP, {"metadata": {"namespace": "default", "name": f"{self.name}-{key}"}})


def test_all_members_see_all_changes_before_any_of_them_acts() -> None:
    world, diary = Documents(), []  # type: ignore[var-annotated]
    first = Member(world, "first", Watch(POD), diary=diary)
    second = Member(world, "second", Watch(POD, field_selector="spec.nodeName!="), Watch(NODE), diary=diary)
    committee = ControllerGroup("both", [first, second])
    assert committee.watches == [Watch(POD), Watch(NODE)]
    committee.step(0, [world.put(POD, pod("quiet").doc()), world.put(POD, pod("b").doc())], [])
    assert diary == [
        "first sees quiet",
        "second sees quiet",
        "first sees b",
        "second sees b",
        "first visits quiet",
        "first visits b",
        "second visits quiet",
        "second visits b",
    ]


def test_a_member_for_owned_pods_is_shown_those_that_have_or_had_an_owner() -> None:
    world, diary = Documents(), []  # type: ignore[var-annotated]
    member = Member(world, "jobs", Watch(POD), diary=diary)
    member.only_owned_pods = True
    committee = ControllerGroup("both", [member])
    owner = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "quiet", "uid": "u"}}
    owned = world.put(POD, pod("owned").owned_by(owner).doc())
    committee.step(0, [world.put(POD, pod("lone").doc()), owned], [])
    orphan = {**owned.doc, "metadata": {k: v for k, v in owned.doc["metadata"].items() if k != "ownerReferences"}}
    committee.step(1, [world.put(POD, orphan), world.put(POD, orphan), world.remove(POD, "default", "lone")], [])
    assert [line for line in diary if "sees" in line] == ["jobs sees owned", "jobs sees owned"]


def test_a_member_for_owned_pods_sees_the_end_of_one_that_it_knows_from_a_reply_alone() -> None:
    world, diary = Documents(), []  # type: ignore[var-annotated]
    member = Member(world, "jobs", Watch(POD), diary=diary)
    member.only_owned_pods = True
    committee = ControllerGroup("both", [member])
    owner = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "quiet", "uid": "u"}}
    world.put(POD, pod("brief").owned_by(owner).doc())
    committee.step(0, [world.remove(POD, "default", "brief")], [])
    assert [line for line in diary if "sees" in line] == ["jobs sees brief"]


class Choosy(Member):
    """Sees plain pods from the first node on."""

    wants = False

    @property
    def sees_plain_pods(self) -> bool:
        return self.wants

    def observe(self, change: Change) -> None:
        super().observe(change)
        self.wants = self.wants or change.kind is NODE


def test_a_member_is_shown_plain_pods_only_while_it_says_so_and_all_others_always() -> None:
    world, diary = Documents(), []  # type: ignore[var-annotated]
    committee = ControllerGroup("one", [Choosy(world, "choosy", Watch(POD), Watch(NODE), diary=diary)])
    scheduled = {"schedulerName": "default-scheduler"}
    lone = pod("plain").doc()
    lone = {**lone, "spec": {**lone["spec"], **scheduled}, "metadata": {"name": "plain", "uid": "p"}}
    labelled = {**lone, "metadata": {"name": "labelled", "uid": "l", "labels": {"app": "a"}}}
    unlabelled = {**lone, "metadata": {"name": "labelled", "uid": "l"}}
    with_claims = {**lone, "metadata": {"name": "claims", "uid": "c"}, "spec": {**lone["spec"], "resourceClaims": [{}]}}
    elsewhere = {**lone, "metadata": {"name": "elsewhere", "uid": "e"}, "spec": {"schedulerName": "volcano"}}
    first = [lone, labelled, unlabelled, unlabelled, with_claims, elsewhere]
    committee.step(0, [Change(Happened.MODIFIED, POD, doc) for doc in first], [])
    node = {"metadata": {"name": "node", "uid": "n"}}
    committee.step(1, [Change(Happened.ADDED, NODE, node), Change(Happened.MODIFIED, POD, lone)], [])
    assert [line.removeprefix("choosy sees ") for line in diary if "sees" in line] == [
        "labelled",
        "labelled",
        "claims",
        "elsewhere",
        "node",
        "plain",
    ]


def test_each_reply_reaches_the_member_that_wrote() -> None:
    world, diary = Documents(), []  # type: ignore[var-annotated]
    first, second = (Member(world, name, Watch(POD), diary=diary) for name in ("first", "second"))
    committee = ControllerGroup("both", [first, second])
    ours, theirs = committee.step(0, [world.put(POD, pod("a").doc())], [])
    committee.step(1, [], [created(world, ours, "x")[0], refused(theirs, InternalError("no"))])
    assert [trouble.controller for trouble in committee.errors] == ["second"]
    assert committee.wake_at() == second.wake_at() == 1.005


def test_the_housekeepers_watch_each_kind_once_and_no_events() -> None:
    (manager,) = housekeepers(Documents())
    kinds = [watch.kind for watch in manager.watches]
    assert len(kinds) == len(set(kinds))
    assert "Event" not in {kind.kind for kind in kinds}
