"""Stories of Volcano Jobs lived through again, step by step, with what stands in the API compared after each step.

A step agrees when the API's answer and everything that Volcano's controllers left in the API are equal; what differs
from run to run of the original itself is not compared (story_agreement.py says what that is).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairlead.errors import ApiError
from fairlead.kube.replay.replay import DecisionDifference
from fairlead.volcano.replay.story_agreement import Agreement, same_refusal, same_stored
from fairlead.volcano.replay.story_view import StoryView
from fairlead.volcano.replay.story_world import STORY_KINDS, StoryWorld

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind
    from fairlead.kube.replay.recorded_cluster import RecordedCluster
    from fairlead.kube.replay.recording import Scenario

_MINUTE = 60.0
_PAST_THE_MINUTE = 4.0


class StoryReplay:
    def __init__(self, scenario: Scenario, cluster: RecordedCluster) -> None:
        self._scenario = scenario
        self._world = StoryWorld(scenario.doc["namespace"], cluster)
        self._view = StoryView(self._world)
        self._agreement = Agreement()
        self._view.state()

    def steps(self) -> Iterator[list[DecisionDifference]]:
        """The differences of each step that is to be judged."""
        lost = self._scenario.doc.get("lostAction")
        for index, step in enumerate(self._scenario.doc["steps"]):
            if lost and step["do"] == "wait":
                return
            answer = self._do(step)
            found = [self._difference(index, *each) for each in self._judge_answer(step, answer)]
            if step["do"] != "try" and not step.get("quick"):
                self._world.rest()
                if not step.get("unsettled"):
                    found += self._judge_state(index, step)
            yield found

    def _judge_state(self, index: int, step: Doc) -> list[DecisionDifference]:
        state = self._view.state()
        return [self._difference(index, *each) for each in self._agreement.differences(step.get("after") or {}, state)]

    def _difference(self, index: int, field: str, expected: Any, got: Any) -> DecisionDifference:
        return DecisionDifference(self._scenario.file, self._scenario.seed, index, field, expected, got)

    # ---- doing a step ----

    def _do(self, step: Doc) -> Any:
        """What the API answered: a document, an ApiError, or None."""
        try:
            return self._perform(step)
        except ApiError as error:
            return error

    def _perform(self, step: Doc) -> Any:
        world = self._world
        match step["do"]:
            case "create" | "try":
                kind = self._kind(step.get("kind") or step["object"]["kind"])
                return world.create(kind, step["object"], dry=step["do"] == "try")
            case "pods":
                world.set_phase(map(self._own_name, step["pods"]), step)
            case "cronpods":
                world.set_phase(world.living_pods(), step)
            case "delete":
                kind, name = self._kind(step["kind"]), self._own_name(step["name"])
                world.delete(kind, name, step.get("propagation") or "Background")
            case "evict":
                world.evict(step["name"])
            case "hold":
                world.hold()
            case "release":
                world.release()
            case "command":
                world.command(step["action"], step["target"])
            case "patch":
                kind, name = self._kind(step["kind"]), self._own_name(step["name"])
                world.patch(kind, name, step["patch"], status=bool(step.get("status")))
            case "wait":
                world.rest(float(step["seconds"]))
            case "nextminute":
                world.rest(_MINUTE - world.now % _MINUTE + _PAST_THE_MINUTE)
            case "deletegroups":
                world.delete_groups()
        return None

    def _kind(self, name: str) -> Kind:
        return STORY_KINDS[name]

    def _own_name(self, recorded: str) -> str:
        return self._view.own_name(recorded)

    def _judge_answer(self, step: Doc, answer: Any) -> Iterator[tuple[str, Any, Any]]:
        refused = step.get("refused")
        if refused is not None:
            if not isinstance(answer, ApiError):
                yield "refused", refused, "accepted"
            elif not same_refusal(refused, answer):
                yield "refused", refused, {"code": answer.code, "message": answer.message}
        elif isinstance(answer, ApiError):
            yield "refused", "accepted", {"code": answer.code, "message": answer.message}
        elif step.get("stored") is not None:
            self._view.learn()
            own = self._view.tokenised(answer)
            if (difference := same_stored(step["stored"], own)) is not None:
                yield difference
