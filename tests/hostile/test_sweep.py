"""Somebody restarts, misses events or is told late at one event of a run: it ends as the undisturbed one does.

Forty such runs here, two thousand in `make soak ARGS='--only sweep'`.
"""

from __future__ import annotations

import pytest

from fairlead.core.model.flow import Doc
from tests.support.sweep.perturbed import Perturbation, Perturbed, Trouble
from tests.support.sweep.stories import STORIES, VOLCANO_JOBS, Story
from tests.support.sweep.sweeping import MOST_EVENTS, problem, problems, share, undisturbed

EACH = 4


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_run_ends_as_it_does_undisturbed(story: Story) -> None:
    assert 20 < undisturbed(story)[0] <= MOST_EVENTS
    assert problems(case for case in share(EACH) if case[0] is story) == []


def test_what_is_missed_for_good_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep is able to fail: a controller that is told nothing of what it missed leaves another state behind."""
    monkeypatch.setattr(Perturbed, "_relist", lambda _: [])
    dropped = [case for case in share(3) if case[1].trouble is Trouble.DROP]
    assert sum(bool(problem(case)) for case in dropped) > len(dropped) / 3


def test_what_plugins_made_for_a_job_goes_although_its_controllers_die_as_it_ends() -> None:
    """They die in the middle of what they write at the end of the first Job."""
    story = VOLCANO_JOBS
    events = story.play().perturbed.events
    ended = next(at for at, event in enumerate(events) if _phase(event.doc) == "Completed")
    assert problems((story, Perturbation(Trouble.RESTART, at)) for at in range(ended - 1, ended + 5)) == []


def _phase(doc: Doc) -> str:
    state = (doc.get("status") or {}).get("state")
    return str(state.get("phase")) if isinstance(state, dict) else ""
