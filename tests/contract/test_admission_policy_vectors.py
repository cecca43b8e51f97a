"""What deploy/volcano-admission.yaml refuses and accepts on a real API server, the embedded API refuses and accepts.

The policies are written by hand, because CEL says less than the embedded rules. The same vectors hold both: the `kube`
suite sends them to a real API server with the policies, this one to a Store.
"""

from __future__ import annotations

from random import Random

import pytest

from fairlead.cluster.admission.hooks import kind_hooks
from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.kinds import Kind
from fairlead.errors import ApiError
from fairlead.runtime.virtual import VirtualClock
from fairlead.testing.harness import START
from fairlead.volcano.controller_settings import VolcanoSettings
from fairlead.volcano.kinds import VC_QUEUE
from tests.support.admission_vectors import ACCEPTED, REFUSED, creation


@pytest.fixture(scope="module")
def store() -> Store:
    made = Store(clock=VirtualClock(START), rng=Random(1), hooks=kind_hooks([VolcanoSettings(all_webhooks=True)]))
    for name, spec, state in (
        ("root", {}, "Open"),
        ("default", {}, "Open"),
        ("shut", {}, "Closed"),
        ("inner", {"capability": {"cpu": "4"}}, "Open"),
        ("leaf", {"parent": "inner"}, "Open"),
    ):
        made.perform(creation(VC_QUEUE, spec, name=name, dry=False))
        body = {"status": {"state": state, "allocated": {}}}
        made.perform(Write(Verb.PATCH, VC_QUEUE, "", name, body, subresource="status"))
    return made


def refusal(store: Store, what: tuple[Kind, Doc]) -> str:
    try:
        store.perform(creation(*what))
    except ApiError as error:
        return error.message
    return ""


@pytest.mark.parametrize("at", range(len(REFUSED)))
def test_what_the_policies_refuse_is_refused(store: Store, at: int) -> None:
    what, _ = REFUSED[at]
    assert refusal(store, what), what


@pytest.mark.parametrize("at", range(len(ACCEPTED)))
def test_what_the_policies_accept_is_accepted(store: Store, at: int) -> None:
    told = refusal(store, ACCEPTED[at])
    if told:  # what CEL cannot say, by docs/admission-policies.md: sums over siblings
        assert "sum of children's guarantee" in told
        assert ACCEPTED[at][0] is VC_QUEUE
