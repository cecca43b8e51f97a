"""What waits to be done for each Volcano Job: requests in order, actions put off, and work that failed.

Requests that come to a plain sync are one sync, however many they are; what comes before an action is done before it.
Work that failed is tried again, each time after twice as long; when it has failed too often, the Job is terminated.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fairlead.volcano.jobs.job_pods import JobRequest
from fairlead.volcano.jobs.job_policies import Chosen, Delays, choose_action
from fairlead.volcano.jobs.phases import SYNC_JOB, TARGETED, TERMINATE_JOB, version_of

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.volcano.records.quirks import Quirks

Key = tuple[str, str]

_FIRST_RETRY, _LONGEST_RETRY = 0.005, 1000.0


@dataclass(slots=True)
class JobWork:
    """An action and the requests that call for it."""

    action: str
    requests: list[JobRequest]
    tries: int = 0
    due: float = 0.0
    gave_up: str = ""
    """The action that failed too often, if this is what comes of it."""


@dataclass(slots=True)
class _Waiting:
    requests: dict[JobRequest, None] = field(default_factory=dict)
    delays: Delays = field(default_factory=Delays)
    failed: dict[tuple[object, ...], JobWork] = field(default_factory=dict)
    """By what fails together: one sync, and every action with its requests."""


class JobRequests:
    def __init__(self, quirks: Quirks, most_tries: int) -> None:
        self._quirks, self._most_tries = quirks, most_tries
        self._jobs: dict[Key, _Waiting] = {}

    def add(self, key: Key, request: JobRequest, *, first: bool = False) -> None:
        waiting = self._of(key)
        if first:
            waiting.requests = {request: None, **waiting.requests}
        else:
            waiting.requests[request] = None

    def _of(self, key: Key) -> _Waiting:
        waiting = self._jobs.get(key)
        if waiting is None:
            waiting = self._jobs[key] = _Waiting()
        return waiting

    def put_back(self, key: Key, work: JobWork, *, without: Collection[str]) -> None:
        """Put work back that something else has to come before. Requests about the pods `without` are dropped: what
        they call for is being done."""
        waiting = self._of(key)
        requests = (*work.requests, *waiting.requests)
        waiting.requests = {one: None for one in requests if one.pod_uid not in without}

    def forget(self, key: Key) -> None:
        self._jobs.pop(key, None)

    def next_work(self, key: Key, job: Doc, now: float) -> tuple[JobWork | None, list[Chosen]]:
        """What to do next for a Job, and the actions that were put off while looking for it."""
        waiting = self._jobs.get(key)
        if waiting is None:
            return None, []
        late = waiting.delays.take_due(now)
        if late is not None:
            return JobWork(late.action, [late]), []
        if waiting.failed:
            failed = min(waiting.failed.values(), key=lambda work: work.due)
            if failed.due <= now:
                return waiting.failed.pop(_identity(failed)), []
        return self._from_requests(waiting, job, now)

    def _from_requests(self, waiting: _Waiting, job: Doc, now: float) -> tuple[JobWork | None, list[Chosen]]:
        version = version_of(job)
        work: JobWork | None = None
        put_off: list[Chosen] = []
        for request in list(waiting.requests):
            waiting.delays.note_request(request)
            chosen = choose_action(job, request, version=version)
            action = chosen.action
            if chosen.delay is not None:
                put_off += [chosen] if waiting.delays.put_off(request, chosen, now, self._quirks) else []
                action = "" if self._quirks.delayed_event_is_not_synced else SYNC_JOB
            if action and work is not None and not self._joins(work, action):
                break
            del waiting.requests[request]
            if not action:
                continue
            work = work or JobWork(action, [])
            work.requests.append(request)
            if action != SYNC_JOB and not self._is_one_incident(action):
                break
        return work, put_off

    def _joins(self, work: JobWork, action: str) -> bool:
        return action == work.action and (action == SYNC_JOB or self._is_one_incident(action))

    def _is_one_incident(self, action: str) -> bool:
        return action in TARGETED and not self._quirks.every_lost_pod_is_a_retry

    def carried_out(self, key: Key, work: JobWork) -> None:
        """An action is being carried out: those of the same scope that are put off are not needed any more."""
        waiting = self._jobs.get(key)
        if waiting is not None and work.action != SYNC_JOB:
            for request in work.requests:
                waiting.delays.carried_out(request, work.action)

    def try_later(self, key: Key, work: JobWork, now: float) -> None:
        delay = min(_FIRST_RETRY * 2.0**work.tries, _LONGEST_RETRY)
        again = replace(work, tries=work.tries + 1, due=now + delay)
        if 0 <= self._most_tries < again.tries:
            again = JobWork(TERMINATE_JOB, [JobRequest(action=TERMINATE_JOB)], due=again.due, gave_up=work.action)
        waiting = self._of(key)
        if (other := waiting.failed.get(_identity(again))) is not None:
            requests = dict.fromkeys((*other.requests, *again.requests))
            again = replace(again, requests=list(requests), tries=max(again.tries, other.tries))
        waiting.failed[_identity(again)] = again
        waiting.requests.pop(JobRequest(), None)  # the second pass of a sync that failed: the retry is its first

    def next_due(self, key: Key) -> float | None:
        """When a Job is to be visited; minus infinity for at once."""
        waiting = self._jobs.get(key)
        if waiting is None:
            return None
        if waiting.requests:
            return float("-inf")
        if not waiting.failed and not waiting.delays:
            return None
        dues = [waiting.delays.next_due(), *(work.due for work in waiting.failed.values())]
        return min((due for due in dues if due is not None), default=None)


def _identity(work: JobWork) -> tuple[object, ...]:
    return (work.action,) if work.action == SYNC_JOB else (work.action, *work.requests)
