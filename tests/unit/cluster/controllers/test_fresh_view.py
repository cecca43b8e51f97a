from __future__ import annotations

import pytest

from fairlead.cluster.controllers.fresh_view import FreshView
from fairlead.core.model.flow import Doc
from fairlead.core.model.kinds import POD, Kind


def _pod(version: int, uid: str = "u") -> Doc:
    return {"metadata": {"namespace": "default", "name": "p", "uid": uid, "resourceVersion": str(version)}}


class Mirror:
    """A DocView of one pod, as the watch last told it."""

    def __init__(self) -> None:
        self.pod: Doc | None = None

    def get(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        return self.pod

    def list(self, kind: Kind, namespace: str = "") -> list[Doc]:
        return [self.pod] if self.pod else []


@pytest.fixture
def mirror() -> Mirror:
    return Mirror()


def test_a_reply_counts_before_the_watch_shows_it(mirror: Mirror) -> None:
    view = FreshView(mirror)
    view.written(POD, _pod(5))
    assert view.get(POD, "default", "p") == _pod(5)
    mirror.pod = _pod(4)
    view.seen(POD, _pod(4), gone=False)
    assert view.get(POD, "default", "p") == _pod(5)
    mirror.pod = _pod(6)
    view.seen(POD, _pod(6), gone=False)
    assert view.get(POD, "default", "p") == _pod(6)


def test_what_was_deleted_is_gone_though_the_view_still_has_it(mirror: Mirror) -> None:
    mirror.pod = _pod(4)
    view = FreshView(mirror)
    view.deleted(POD, _pod(4))
    assert view.get(POD, "default", "p") is None
    mirror.pod = _pod(9, uid="another")
    assert view.get(POD, "default", "p") == _pod(9, uid="another")


def test_an_object_that_others_deleted_is_gone(mirror: Mirror) -> None:
    view = FreshView(mirror)
    view.written(POD, _pod(5))
    view.seen(POD, _pod(5), gone=True)
    assert view.get(POD, "default", "p") is None
