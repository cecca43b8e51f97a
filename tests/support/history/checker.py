"""Whether one history of the objects explains all that was recorded: order, once, complete, resume, compare-and-swap.

The history is put together of everything that anybody saw: acknowledged writes, events, lists. Then each watcher must
have been told exactly what that history says for its view, from the version of its list to the last one it saw, and
each conditional write must follow the version that it was conditional on. Of a write whose answer was lost in a kill
either outcome is allowed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.support.history.record import Record, Session, State, Told

Entry = tuple[str, State | None]
"""A name and what it was from some version on, None for gone."""


class Checker:
    def __init__(self, record: Record) -> None:
        self._record = record
        self.problems: list[str] = []
        self._history: dict[int, Entry] = {}
        self._versions_of: dict[tuple[str, str], int] = {}  # each write has a content of its own
        self._contents: dict[str, set[str]] = defaultdict(set)
        self._may_be_deleted: set[str] = set()
        for tried in record.tried:
            if tried.content is None:
                self._may_be_deleted.add(tried.name)
            else:
                self._contents[tried.name].add(tried.content)

    def check(self) -> list[str]:
        self._gather()
        self._versions = sorted(self._history)
        self._of_name: dict[str, list[int]] = defaultdict(list)
        for version in self._versions:
            self._of_name[self._history[version][0]].append(version)
        for session in self._record.sessions:
            self._check_list(session)
            self._check_events(session)
        self._check_swaps()
        self._check_deletions()
        self._check_reads()
        self._check_restarts()
        return self.problems

    # ---- the history ----

    def _gather(self) -> None:
        for wrote in self._record.wrote:
            if wrote.state is not None:
                self._add(wrote.name, wrote.state.version, wrote.state)
        for session in self._record.sessions:
            for name, state in session.listed.items():
                self._add(name, state.version, state)
            for told in session.told:
                if not told.name or (told.type == "DELETED" and session.label):
                    continue  # a bookmark; or the object left this watcher's view, and may be there
                self._add(told.name, told.state.version, None if told.type == "DELETED" else told.state)

    def _add(self, name: str, version: int, state: State | None) -> None:
        known = self._history.setdefault(version, (name, state))
        if known != (name, state):
            self.problems.append(f"version {version} is {known} to one and {(name, state)} to another")
        if state is not None and self._versions_of.setdefault((name, state.content), version) != version:
            self.problems.append(f"version {version}: {name} has become {state.content!r} again")
        if state is not None and state.content not in self._contents[name]:
            self.problems.append(f"version {version}: nobody wrote {state.content!r} to {name}")

    def _state_at(self, name: str, version: int) -> tuple[int, State | None]:
        """The last change of an object at a version, and what came of it; 0 if it never was."""
        before = [at for at in self._of_name[name] if at <= version]
        return (before[-1], self._history[before[-1]][1]) if before else (0, None)

    # ---- watchers ----

    def _check_list(self, session: Session) -> None:
        for name in self._of_name:
            at, state = self._state_at(name, session.version)
            wanted = state if state is not None and session.label in ("", state.label) else None
            found = session.listed.get(name)
            if found == wanted:
                continue
            if found is None and name in self._may_be_deleted and at <= self._last_of_life(session.life):
                continue  # a deletion without an answer, which nobody was told of before the kill
            self.problems.append(f"list at {session.version}: {name} is {found}, and should be {wanted}")

    def _last_of_life(self, life: int) -> int:
        return self._record.killed_at[life - 1] if life else 0

    def _check_events(self, session: Session) -> None:
        last = session.version
        for told in session.told:
            version = told.state.version
            if version < last or (version == last and told.name):
                self.problems.append(f"order: {told.type} {told.name} at {version} came after {last}")
            last = max(last, version)
        if last < session.end:
            self.problems.append(f"complete: a watcher came to {last}, and not to {session.end}")
        found = [told for told in session.told if told.name]
        wanted = list(self._events(session, last))
        if found == wanted:
            return
        missing = [told for told in wanted if told not in found]
        too_much = [told for at, told in enumerate(found) if told not in wanted or told in found[:at]]
        self.problems += [f"complete: a watcher was not told of {told}" for told in missing[:3]]
        self.problems += [f"once: a watcher was told of {told} in vain" for told in too_much[:3]]
        if not missing and not too_much:
            self.problems.append(f"order: a watcher was told in another order than {session.version} to {last}")

    def _events(self, session: Session, last: int) -> Iterator[Told]:
        """What a watcher is told from the version of its list to the last."""
        view = dict(session.listed)
        for version in self._versions:
            if not session.version < version <= last:
                continue
            name, state = self._history[version]
            before = view.get(name)
            if state is not None and session.label in ("", state.label):
                view[name] = state
                yield Told("ADDED" if before is None else "MODIFIED", name, state)
            elif before is not None:
                del view[name]
                # It shows what was last in view, under the version at which that ended.
                yield Told("DELETED", name, State(version, before.uid, before.content, before.label))

    # ---- writers ----

    def _check_swaps(self) -> None:
        for wrote in self._record.wrote:
            if wrote.state is None or not wrote.expected:
                continue
            earlier = [at for at in self._of_name[wrote.name] if at < wrote.state.version]
            if not earlier or earlier[-1] != wrote.expected:
                self.problems.append(f"compare-and-swap: {wrote} follows {earlier[-1:]}")

    def _check_deletions(self) -> None:
        """An acknowledged deletion is in the history: the uid is never seen at a version after its end."""
        ends: dict[str, int] = {}
        for name, versions in self._of_name.items():
            uid = ""
            for version in versions:
                state = self._history[version][1]
                if state is None or (uid and state.uid != uid):
                    ends[uid] = version
                uid = state.uid if state is not None else ""
                if state is not None and state.uid in ends:
                    self.problems.append(f"{name} came back at {version} after its end at {ends[state.uid]}")
        for wrote in self._record.wrote:
            if wrote.state is not None:
                continue
            later = [one.listed for one in self._record.sessions if one.life > wrote.life and wrote.name in one.listed]
            back = any(listed[wrote.name].uid == wrote.uid for listed in later)
            if back or (wrote.life == len(self._record.killed_at) and wrote.uid not in ends):
                self.problems.append(f"lost: the deletion of {wrote.name}, which was acknowledged")

    def _check_reads(self) -> None:
        for read in self._record.reads:
            if read.state is not None and read.state.version < read.at_least:
                self.problems.append(f"stale: {read.name} was read as of {read.state.version}, after {read.at_least}")

    def _check_restarts(self) -> None:
        """Versions go on where they were, and the first list after a kill has all that was acknowledged."""
        for life, last in enumerate(self._record.killed_at, start=1):
            for session in self._record.sessions:
                if session.life == life and session.version < last:
                    self.problems.append(f"lost: a list has version {session.version} after {last} was given out")
