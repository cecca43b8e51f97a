"""`fairlead quota`: the tree of quotas as a table, and why one has no more."""

from __future__ import annotations

import json

import pytest

from fairlead.errors import FairleadError
from fairlead.koordinator.quotas.command import explain_quota, explanation_lines, quota_rows
from fairlead.koordinator.records.quotas import ElasticQuota, compile_elastic_quota
from tests.support.koordinator import QUOTA, elastic_quota


def quotas() -> dict[str, ElasticQuota]:
    shown = {
        QUOTA + "request": json.dumps({"cpu": "9"}), QUOTA + "runtime": json.dumps({"cpu": "3"}),
    }  # fmt: skip
    child = elastic_quota("child", least={"cpu": "1"}, most={"cpu": "3"}, parent="team", annotations=shown)
    child["status"] = {"used": {"cpu": "2500m"}}
    team = elastic_quota("team", least={"cpu": "2"}, most={"cpu": "8"}, is_parent=True)
    made = (compile_elastic_quota(document) for document in (child, team))
    return {quota.name: quota for quota in made}


def test_children_stand_below_their_parent_with_what_they_use() -> None:
    rows = list(quota_rows(quotas()))
    assert rows == [
        ("team", "cpu=2", "cpu=8", "-", "-", "-"),
        ("  child", "cpu=1", "cpu=3", "cpu=2500m", "cpu=3", "cpu=9"),
    ]


def test_an_explanation_names_the_path_the_sums_and_the_limit() -> None:
    lines = list(explanation_lines(explain_quota(quotas(), "child")))
    assert lines == [
        "quota child, which lends",
        "child:",
        "  cpu: min 1, max 3, request 9, runtime 3, used 2500m, left 500m",
        "team:",
        "  cpu: min 2, max 8",
        "child asks for more cpu than it is granted; the limit is its maximum",
    ]


def test_a_quota_that_is_not_there_is_an_error_with_its_name() -> None:
    with pytest.raises(FairleadError, match='"nobody" not found'):
        explain_quota(quotas(), "nobody")
