"""Questions about what would happen: 5,000 nodes, 50,000 pods, 200 new pods a second, and one question a second.

Each question is answered in a copy of the process, made between two steps, as a live scheduler does it; a thread waits
for the answer. A row is the median of the times from the question to its answer. The placing is compared with as many
pods that came without questions.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.row import Row
from benchmarks.scheduling import basic_nodes, basic_pods
from fairlead.assembly.schedulers import default_scheduler
from fairlead.core.engine.what_if.answers import answer
from fairlead.core.model.flow import Change, Doc, Happened, Reply
from fairlead.core.model.kinds import POD
from fairlead.runtime.collecting import collect_rarely
from fairlead.runtime.copies import ProcessCopy, branch
from fairlead.testing.builders import pod, podgroup

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.testing.builders import Builder

NODES, PODS, PODS_PER_SECOND, TIMES = 5_000, 50_000, 200, 5
ROWS = {
    "answers.simulate.pod": 50.0, "answers.simulate.gang100": 150.0, "answers.changes": 500.0, "answers.fit": 100.0,
}  # fmt: skip
"""The rows with their bars in milliseconds."""
_PAUSE = 0.001


def _stored(built: Builder) -> Doc:
    doc = built.doc()
    metadata = {"namespace": "default", **doc["metadata"], "uid": doc["metadata"]["name"]}
    return {**doc, "metadata": metadata}


GANG = [podgroup("gang", 100), *(pod(f"member-{at}").asks(cpu="200m").in_group("gang") for at in range(100))]
QUESTIONS: dict[str, Doc] = {
    "answers.simulate.pod": {"kind": "SimulateQuestion", "objects": [_stored(pod("one").asks(cpu="200m"))]},
    "answers.simulate.gang100": {"kind": "SimulateQuestion", "objects": [_stored(one) for one in GANG]},
    "answers.changes": {
        "kind": "SimulateQuestion",
        "changes": True,
        "objects": [_stored(pod("large").asks(cpu="3500m"))],
    },
    "answers.fit": {"kind": "FitQuestion", "objects": [_stored(pod("shape").asks(cpu="500m"))], "most": 200},
}


class Busy:
    """A scheduler to which pods come at a steady rate, on this thread."""

    def __init__(self) -> None:
        self.scheduler = _loaded()
        self.inside = 0.0
        self.placed = 0
        self._made = 0
        self._changes: list[Change] = []
        self._replies: list[Reply] = []

    def run(self, seconds: float, questions: Sequence[tuple[str, Doc]] = ()) -> dict[str, list[float]]:
        """Pods for so many seconds, and a question at the beginning of each; the times that answers took."""
        began, made = time.perf_counter(), self._made
        waiting: list[tuple[str, float, Future[float]]] = []
        with ThreadPoolExecutor(2) as threads:
            while (now := time.perf_counter() - began) < seconds:
                if len(waiting) < min(len(questions), int(now) + 1):
                    name, question = questions[len(waiting)]
                    asked = time.perf_counter()
                    copy = ProcessCopy(lambda question=question: answer(self.scheduler, question, branch))  # type: ignore[misc]
                    waiting.append((name, asked, threads.submit(_when_answered, copy)))
                self._come(made + int(now * PODS_PER_SECOND))
                self._step()
                time.sleep(_PAUSE)
        took: dict[str, list[float]] = {}
        for name, asked, answered in waiting:
            took.setdefault(name, []).append(answered.result() - asked)
        return took

    def _come(self, until: int) -> None:
        while self._made < until:
            self._made += 1
            self._changes.append(Change(Happened.ADDED, POD, _stored(pod(f"new-{self._made}").asks(cpu="10m"))))

    def _step(self) -> None:
        changes, self._changes, replies, self._replies = self._changes, [], self._replies, []
        began = time.perf_counter()
        writes = self.scheduler.step(time.time(), changes, replies)
        self.inside += time.perf_counter() - began
        self._replies = [Reply(write, write.body) for write in writes]
        self.placed += sum(write.subresource == "binding" for write in writes)


def _when_answered(copy: ProcessCopy[Doc]) -> float:
    copy.result()
    return time.perf_counter()


def _loaded() -> Scheduler:
    scheduler = default_scheduler()
    now = time.time()
    scheduler.step(now, basic_nodes(NODES), ())
    bound = [
        {**doc, "spec": {**doc["spec"], "nodeName": f"node-{at % NODES}"}, "status": {"phase": "Running"}}
        for at, doc in enumerate(basic_pods(PODS))
    ]
    scheduler.step(now, [Change(Happened.ADDED, POD, doc) for doc in bound], ())
    collect_rarely()
    return scheduler


def bench_what_if() -> Iterable[Row]:
    busy = Busy()
    questions = [(name, QUESTIONS[name]) for _ in range(TIMES) for name in ROWS]
    busy.run(1)
    busy.inside, busy.placed = 0.0, 0
    busy.run(len(questions))
    alone = busy.inside / busy.placed
    busy.inside, busy.placed = 0.0, 0
    took = busy.run(len(questions), questions)
    asked = busy.inside / busy.placed
    for name, bar in ROWS.items():
        note = f"median of {len(took[name])}, worst {1e3 * max(took[name]):.0f} ms"
        yield Row(name, 1e3 * median(took[name]), "ms", bar, NODES, PODS, note, higher_is_better=False)
    note = f"more time in the scheduler for each pod: {1e6 * alone:.0f} µs alone, {1e6 * asked:.0f} µs with questions"
    yield Row("answers.slowdown", 100 * (asked / alone - 1), "%", 10, NODES, PODS, note, higher_is_better=False)
