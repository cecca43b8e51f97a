"""Objects that would break something later are refused when they are written, with the field."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import CRON_JOB, POD
from fairlead.errors import Invalid
from fairlead.koordinator.kinds import KOORD_COLOCATION_PROFILE
from fairlead.testing.builders import pod
from fairlead.testing.harness import Harness
from fairlead.testing.workload_builders import cron_job

WRONG_PROFILES = {
    "spec.probability": {"probability": "many"},
    "spec.selector": {"selector": {"matchLabels": {"": "x"}, "matchExpressions": [{"key": "a", "operator": "Odd"}]}},
    "spec.labels": {"labels": {"a": 5}},
    "spec.patch": {"patch": {"spec": {"containers": 5}}},
}


@pytest.mark.parametrize("field", WRONG_PROFILES)
def test_a_wrong_colocation_profile_is_refused_and_pods_go_on(field: str) -> None:
    cluster = Harness(nodes=1)
    body = {"spec": WRONG_PROFILES[field]}
    with pytest.raises(Invalid, match=field.replace(".", r"\.")):
        cluster.store.perform(Write(Verb.CREATE, KOORD_COLOCATION_PROFILE, "", "wrong", body=body))
    cluster.store.perform(Write(Verb.CREATE, POD, "default", "p", body=pod("p").doc()))


@pytest.mark.parametrize("probability", ["50%", 50, "100%", "0%", 0, None])
def test_a_right_probability_is_taken(probability: Any) -> None:
    cluster = Harness(nodes=1)
    body = {"spec": {"probability": probability, "selector": {"matchLabels": {"a": "b"}}}}
    cluster.store.perform(Write(Verb.CREATE, KOORD_COLOCATION_PROFILE, "", "right", body=body))


@pytest.mark.parametrize(
    ("schedule", "zone", "why"),
    [
        ("*/0 * * * *", None, "step of range should be a positive number: \\*/0"),
        ("0-999999999 * * * *", None, "above maximum"),
        ("9" * 5_000 + " * * * *", None, "failed to parse int"),
        ("TZ=UTC * * * * *", None, "cannot use TZ or CRON_TZ"),
        ("@daily", "../../../etc/passwd", "unknown time zone"),
        ("@daily", "/etc/passwd", "unknown time zone"),
        ("@daily", "local", "explicit time zone"),
        ("@daily", "", "nil or non-empty"),
        ("@daily", "Mars/Olympus", "unknown time zone"),
    ],
    ids=range(9),
)
def test_a_wrong_schedule_is_refused(schedule: str, zone: str | None, why: str) -> None:
    doc = cron_job("c", "@daily").doc()
    doc["spec"]["schedule"] = schedule
    if zone is not None:
        doc["spec"]["timeZone"] = zone
    with pytest.raises(Invalid, match=why):
        Harness(nodes=1).store.perform(Write(Verb.CREATE, CRON_JOB, "default", "c", body=doc))
