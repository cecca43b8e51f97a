"""One search: devices for all claims of a pod on one node, or that there are none.

Depth first over claims, requests and devices; within a request devices are taken in increasing order, and the first
solution is the answer. That order is the original's, and so are the errors: an expression is evaluated only for devices
that the search reaches.

The original counts nothing beforehand and visits up to 2ⁿ subsets in vain. Here, after a few hundred steps, the search
asks once whether there can be a solution at all (lookahead.py), and it does not try a device again that equals one
which has just failed. Neither changes an answer; where a quirk of the original or an error of a selector might make it
do so, it is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from fairlead.core.model.device_claims import MAX_RESULTS, ClaimSpec, DeviceRequest
from fairlead.core.model.records import record
from fairlead.core.model.taints import first_untolerated
from fairlead.kube.claims.capacity import consumption, fits
from fairlead.kube.claims.constraints import ConstraintFollower, followers
from fairlead.kube.claims.lookahead import Demand, impossible
from fairlead.kube.claims.selecting import CostsTooMuch, SelectorTrouble
from fairlead.kube.claims.taken import Taken

if TYPE_CHECKING:
    from fairlead.core.model.devices import Device, DeviceClass
    from fairlead.core.model.quantity import Quantity
    from fairlead.kube.claims.device_views import NodeView, Place
    from fairlead.kube.claims.devices import DeviceIndex
    from fairlead.kube.claims.selecting import Selecting

_LOOK_AHEAD_AFTER = 200
"""So many steps are made before the search asks whether it can succeed: most need far fewer."""


class AllocationFailed(Exception):
    """The search cannot go on; the text ends the attempt."""


class AllocationDeferred(AllocationFailed):
    """The search may go on in a later attempt, with what is known by then; until then the pod waits."""


class OutOfSteps(Exception):
    """The search took more steps than it may."""


class Wanted(NamedTuple):
    """A claim that is to be allocated: what to call it in complaints, and what it requests."""

    key: str
    spec: ClaimSpec


@record(frozen=True, slots=True, eq=False)
class Pick:
    """A device for a request. `position` says which device of the node it is; nodes that are alike have the same."""

    request: DeviceRequest
    position: int
    consumed: Mapping[str, Quantity]


@record(frozen=True, slots=True, eq=False)
class Solution:
    """For each claim its picks, and for each of its requests which alternative was chosen."""

    picks: tuple[tuple[Pick, ...], ...]
    choices: tuple[tuple[int, ...], ...]


class Nothing(Enum):
    """Why there is no solution."""

    NO_DEVICES = "cannot allocate all claims"
    INVALID_POOLS = "invalid resource pools were encountered"


class _Step(Enum):
    FOUND = 1
    FAILED = 2
    OVER_LIMIT = 3
    """The claim would get too many devices: other devices for the request before do not help."""


@dataclass(slots=True)
class _Task:
    """One request, or alternative, of one claim. `all_places` is set in the mode All."""

    request: DeviceRequest
    device_class: DeviceClass
    count: int
    all_places: list[Place] | None = None


class DeviceSearch:
    def __init__(
        self,
        wanted: Sequence[Wanted],
        view: NodeView,
        devices: DeviceIndex,
        selecting: Selecting,
        *,
        compatible: bool = False,
        most_steps: int = 0,
    ) -> None:
        self._wanted = wanted
        self._view = view
        self._devices = devices
        self._selecting = selecting
        self._compatible = compatible
        self._most_steps = most_steps
        self.steps = 0
        self._places = view.places
        self._tasks: list[list[list[_Task]]] = []
        self._followers: list[list[ConstraintFollower]] = []
        self._picks: list[list[Pick]] = [[] for _ in wanted]
        self._choices: list[list[int]] = [[0] * len(claim.spec.slots) for claim in wanted]
        self._taken = Taken(devices.uses)
        self._sure = False
        """Whether all selectors are known to answer for all devices."""

    def run(self) -> Solution | Nothing:
        """Raises AllocationFailed and OutOfSteps."""
        try:
            for claim in self._wanted:
                self._prepare(claim)
            if self._next_request(0, 0) is _Step.FOUND:
                return Solution(tuple(map(tuple, self._picks)), tuple(map(tuple, self._choices)))
        except CostsTooMuch as error:
            raise AllocationDeferred(str(error)) from None
        except SelectorTrouble as error:
            raise AllocationFailed(str(error)) from None
        except RecursionError:
            raise AllocationFailed("too many devices are asked for by one pod") from None
        except _Impossible:
            pass
        invalid = any(pool.invalid for pool in self._view.pools)
        return Nothing.INVALID_POOLS if invalid else Nothing.NO_DEVICES

    # ---- before the search ----

    def _prepare(self, claim: Wanted) -> None:
        tasks = [[self._task(claim, request) for request in slot.choices] for slot in claim.spec.slots]
        self._tasks.append(tasks)
        least = sum(min(task.count for task in choices) for choices in tasks)
        if least > MAX_RESULTS:
            raise AllocationFailed(
                f"claim {claim.key}: number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
            )
        for at, constraint in enumerate(claim.spec.constraints):
            if not constraint.attribute:
                raise AllocationFailed(
                    f"claim {claim.key}, constraint #{at}: empty constraint (unsupported constraint type?)"
                )
        self._followers.append(followers(claim.spec.constraints, compatible=self._compatible))

    def _task(self, claim: Wanted, request: DeviceRequest) -> _Task:
        about = f"claim {claim.key}, request {request.name}"
        for at, expression in enumerate(request.selectors):
            if expression is None:
                raise AllocationFailed(f"{about}, selector #{at}: CEL expression empty (unsupported selector type?)")
        if not request.device_class:
            raise AllocationFailed(f"{about}: missing device class name (unsupported request type?)")
        found: DeviceClass | None = self._devices.classes.get(request.device_class)
        if found is None:
            raise AllocationFailed(
                f"{about}: could not retrieve device class {request.device_class}: deviceclass.resource.k8s.io"
                f' "{request.device_class}" not found'
            )
        if not request.everything:
            if request.mode != "ExactCount":
                raise AllocationFailed(f"{about}: unsupported count mode {request.mode}")
            return _Task(request, found, request.count)
        places = self._all_places(claim, request, found, about)
        return _Task(request, found, len(places), places)

    def _all_places(self, claim: Wanted, request: DeviceRequest, found: DeviceClass, about: str) -> list[Place]:
        for pool in self._view.pools:
            if pool.incomplete:
                raise AllocationFailed(
                    f"{about}: asks for all devices, but resource pool {pool.id} is currently being updated"
                )
            if pool.invalid:
                raise AllocationFailed(
                    f"{about}: asks for all devices, but resource pool {pool.id} is currently invalid"
                )
        return [
            place
            for place in self._places
            if self._selectable(claim, request, found, place)
            and fits(place.device, request, self._devices.uses.consumed_of(place.device.id), None)
        ]

    # ---- the search ----

    def _next_request(self, claim: int, slot: int) -> _Step:
        """Everything from a request of a claim on."""
        self._count_step()
        if claim >= len(self._wanted):
            return _Step.FOUND
        if slot >= len(self._tasks[claim]):
            found = self._next_request(claim + 1, 0)
            return _Step.FAILED if found is _Step.OVER_LIMIT else found
        choices = self._tasks[claim][slot]
        if not self._wanted[claim].spec.slots[slot].prioritised:
            return self._devices_for(claim, slot, choices[0], 0, 0)
        over_limit = True
        for at, task in enumerate(choices):
            self._count_step()
            found = self._devices_for(claim, slot, task, 0, 0)
            if found is _Step.FOUND:
                self._choices[claim][slot] = at
                return found
            over_limit = over_limit and found is _Step.OVER_LIMIT
        return _Step.OVER_LIMIT if over_limit else _Step.FAILED

    def _devices_for(self, claim: int, slot: int, task: _Task, had: int, start: int) -> _Step:
        """The devices of a request from the `had`-th on, looking from the place `start` on; then what follows."""
        if task.all_places is not None and not task.all_places:
            return _Step.FAILED
        if had >= task.count:
            return self._next_request(claim, slot + 1)
        if len(self._picks[claim]) + task.count - had > MAX_RESULTS:
            return _Step.OVER_LIMIT
        if task.all_places is not None:
            return self._one_of_all(claim, slot, task, had)
        failed: set[Hashable] = set()
        if self._sure and self._too_few(claim, task, had, start):
            return _Step.FAILED
        for place in self._places[start:]:
            if self._taken.in_use(claim, task.request, place):
                continue
            if not self._selectable(self._wanted[claim], task.request, task.device_class, place):
                continue
            twin = self._twin(claim, task.request, place)
            if twin in failed:
                continue
            undo = self._take(claim, task, place, must=False)
            if undo is None:
                continue
            self._count_step()
            found = self._devices_for(claim, slot, task, had + 1, place.at + 1)
            if found is _Step.FOUND:
                return found
            undo()
            if found is _Step.OVER_LIMIT:
                return found
            if twin is not None:
                failed.add(twin)
        return _Step.FAILED

    def _one_of_all(self, claim: int, slot: int, task: _Task, had: int) -> _Step:
        assert task.all_places is not None
        undo = self._take(claim, task, task.all_places[had], must=True)
        if undo is None:
            return _Step.FAILED
        self._count_step()
        found = self._devices_for(claim, slot, task, had + 1, 0)
        if found is not _Step.FOUND:
            undo()
        return found

    def _count_step(self) -> None:
        self.steps += 1
        if self.steps == _LOOK_AHEAD_AFTER:
            self._look_ahead()
        if self._most_steps and self.steps > self._most_steps:
            raise OutOfSteps

    # ---- one device ----

    def _selectable(self, claim: Wanted, request: DeviceRequest, found: DeviceClass, place: Place) -> bool:
        return self._selecting.selects(place.device, found, request, claim.key) and (
            place.device.id.name not in place.pool.hidden
        )

    def _take(self, claim: int, task: _Task, place: Place, *, must: bool) -> Callable[[], None] | None:
        """Take a device if nothing speaks against it; returns what takes it back."""
        request, device = task.request, place.device
        if self._taken.in_use(claim, request, place):
            return None
        taken, used = self._taken, self._devices.uses.consumed_of(device.id)
        if not fits(device, request, used, taken.capacity.get(place.at)):
            return None
        counts = bool(device.counters) and not (device.shared and (used is not None or place.at in taken.capacity))
        if counts and not taken.take_counters(place):
            return None
        if first_untolerated(device.taints, request.tolerations) is not None or not self._follow(
            claim, request, device, must=must
        ):
            if counts:
                taken.return_counters(place)
            return None
        consumed: Mapping[str, Quantity] = {}
        if device.shared:
            consumed = consumption(device, request)
            taken.take_share(place, consumed)
        else:
            taken.by_claim.setdefault(place.at, set()).add(claim)
        self._picks[claim].append(Pick(request, place.at, consumed))

        def undo() -> None:
            for follower in self._followers[claim]:
                follower.remove(request, device)
            self._picks[claim].pop()
            if device.shared:
                taken.return_share(place, consumed)
            else:
                taken.by_claim[place.at].discard(claim)
            if counts:
                taken.return_counters(place)

        return undo

    def _follow(self, claim: int, request: DeviceRequest, device: Device, *, must: bool) -> bool:
        for at, follower in enumerate(self._followers[claim]):
            if follower.add(request, device):
                continue
            if must:
                raise AllocationFailed(
                    f"claim {self._wanted[claim].key}, request {request.name}: cannot add device {device.id} because a"
                    " claim constraint would not be satisfied"
                )
            for earlier in self._followers[claim][:at]:
                earlier.remove(request, device)
            return False
        return True

    # ---- cuts ----

    def _twin(self, claim: int, request: DeviceRequest, place: Place) -> Hashable:
        """What a device that would fare like this one is equal in; None if there can be none."""
        if request.admin or self._devices.uses.consumed_of(place.device.id) or self._taken.capacity.get(place.at):
            return None
        if self._compatible and any(constraint.distinct for constraint in self._wanted[claim].spec.constraints):
            return None  # the quirk of Distinct: a pick taken back leaves a trace
        return place.pool.id, place.device.twin, place.device.id.name in place.pool.hidden

    def _too_few(self, claim: int, task: _Task, had: int, start: int) -> bool:
        """Whether fewer devices are left than the request still needs."""
        needed = task.count - had
        for place in self._places[start:]:
            if not self._taken.in_use(claim, task.request, place) and self._selectable(
                self._wanted[claim], task.request, task.device_class, place
            ):
                needed -= 1
                if not needed:
                    return False
        return True

    def _look_ahead(self) -> None:
        tasks = [(claim, task) for claim, slots in enumerate(self._tasks) for choices in slots for task in choices]
        if any(task.all_places is not None for _, task in tasks):
            return
        if not all(
            self._selecting.is_sure(place.device, task.device_class, task.request)
            for _, task in tasks
            for place in self._places
        ):
            return
        self._sure = True
        demands = []
        for claim, slots in enumerate(self._tasks):
            for slot, choices in enumerate(slots):
                if not self._wanted[claim].spec.slots[slot].prioritised and not choices[0].request.admin:
                    demands.append(self._demand(claim, choices[0]))
        if impossible([demand for demand in demands if demand is not None]):
            raise _Impossible

    def _demand(self, claim: int, task: _Task) -> Demand | None:
        """Which devices could serve a request, whatever else is taken; None if they may be shared."""
        fitting = []
        for place in self._places:
            device = place.device
            if not self._selectable(self._wanted[claim], task.request, task.device_class, place):
                continue
            if device.shared:
                return None
            if (
                not self._devices.uses.in_use(device.id)
                and fits(device, task.request, self._devices.uses.consumed_of(device.id), None)
                and first_untolerated(device.taints, task.request.tolerations) is None
            ):
                fitting.append(place.at)
        return Demand(task.count, tuple(fitting))


class _Impossible(Exception):
    """The search is over: there is no solution."""
