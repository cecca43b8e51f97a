"""Parked entries are filed under those they wait for, so that an event costs what it concerns."""

from __future__ import annotations

from fairlead.core.engine.queue.entry import Entry
from fairlead.core.engine.queue.parked import Parked
from fairlead.core.framework.plugin import Hint
from fairlead.core.model.events import ActionType
from fairlead.core.model.pod import Pod
from tests.support.waiting import NODE_ADD, POD_GONE, T0, FilterPlugin, QueueScenario, on


def parked(*blamed: tuple[str, set[str]]) -> Parked:
    room, filing = QueueScenario(), Parked()
    for serial, (name, plugins) in enumerate(blamed):
        entry = Entry(room.pod(name), T0 + serial, serial)
        entry.refuse(frozenset(plugins))
        filing.put(entry)
    return filing


def names(entries: list[Entry]) -> list[str]:
    return [entry.pod.name for entry in entries]


def test_only_entries_that_blame_a_plugin_are_found_by_its_name() -> None:
    filing = parked(("a", {"Fit"}), ("b", {"Ports"}), ("c", {"Fit", "Ports"}), ("d", {"Spread"}))
    assert names(filing.blaming({"Fit"})) == ["a", "c"]
    assert sorted(names(filing.blaming({"Fit", "Ports"}))) == ["a", "b", "c"]
    assert filing.blaming({"Volumes"}) == []


def test_an_entry_that_is_filed_anew_leaves_no_trace_under_its_old_names() -> None:
    filing = parked(("a", {"Fit"}))
    entry = filing.blaming({"Fit"})[0]
    entry.refuse(frozenset({"Ports"}))
    filing.put(entry)
    assert filing.blaming({"Fit"}) == []
    assert filing.blaming({"Ports"}) == [entry]
    filing.remove(entry.key)
    assert filing.blaming({"Fit", "Ports"}) == []
    assert (len(filing), filing.oldest()) == (0, None)


def test_the_restriction_and_the_hints_of_a_move_see_only_pods_that_blame_a_listener() -> None:
    seen: list[str] = []

    def hint(pod: Pod, old: object, new: object) -> Hint:
        seen.append(pod.name)
        return Hint.SKIP

    room = QueueScenario(FilterPlugin("Spread", (on("Pod", ActionType.DELETE, hint),)))
    for number in range(5):
        room.park(f"fit-{number}", "Fit")
    room.park("spread", "Spread")
    asked: list[str] = []
    room.backlog.move(POD_GONE, None, None, T0 + 60, only=lambda entry: asked.append(entry.pod.name) is None)
    assert asked == seen == ["spread"]
    assert room.backlog.move(NODE_ADD, None, None, T0 + 60) == 5
