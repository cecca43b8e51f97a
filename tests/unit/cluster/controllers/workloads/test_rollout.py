from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.cluster.controllers.workloads.pod_templates import same_template, template_hash
from fairlead.cluster.controllers.workloads.rollout import (
    desired,
    first_size,
    is_rescaled,
    limits,
    next_new_size,
    next_old_sizes,
    rescaled_sizes,
    total,
)
from fairlead.core.model.flow import Doc
from fairlead.testing.builders import deployment


def rs(name: str, size: int, *, available: int | None = None, desired: int | None = None, most: int = 0) -> Doc:
    notes = {} if desired is None else {"deployment.kubernetes.io/desired-replicas": str(desired)}
    if most:
        notes["deployment.kubernetes.io/max-replicas"] = str(most)
    return {
        "metadata": {"name": name, "creationTimestamp": name, "annotations": notes},
        "spec": {"replicas": size},
        "status": {"availableReplicas": size if available is None else available},
    }


def web(replicas: int, surge: int | str = "25%", unavailable: int | str = "25%") -> Doc:
    return deployment("web").replicas(replicas).rolling(surge=surge, unavailable=unavailable).doc()


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", (3, 2)),  # surge is rounded up, unavailable down
        (1, "25%", "25%", (1, 0)),
        (3, 0, "10%", (0, 1)),  # both nothing: one may be missing, or nothing could ever move
        (2, 0, 5, (0, 2)),
        (0, "25%", "25%", (0, 0)),
    ],
)
def test_limits_are_numbers_of_pods(
    replicas: int, surge: int | str, unavailable: int | str, expected: tuple[int, int]
) -> None:
    assert limits(web(replicas, surge, unavailable)) == expected


def test_recreate_allows_neither_surge_nor_absence() -> None:
    assert limits(deployment("web").replicas(4).recreating().doc()) == (0, 0)


def test_the_new_one_starts_with_the_room_there_is() -> None:
    assert first_size(web(10, 3, 2), [rs("old", 10)]) == 3
    assert first_size(web(10, 3, 2), []) == 10
    assert first_size(web(10, 3, 2), [rs("old", 13)]) == 0


def test_broken_old_pods_go_before_working_ones() -> None:
    old = [rs("a", 4, available=4), rs("b", 4, available=1)]
    assert next_old_sizes(web(6, 2, 0), rs("new", 0), old) == {"b": 2}


def test_old_ones_do_not_shrink_while_the_new_ones_are_not_available() -> None:
    assert next_old_sizes(web(10, 2, 0), rs("new", 2, available=0), [rs("old", 10)]) == {}
    assert next_old_sizes(web(10, 2, 0), rs("new", 2, available=1), [rs("old", 10)]) == {"old": 9}


def test_scaling_one_replica_set_is_simple() -> None:
    only = rs("new", 5, desired=5)
    assert is_rescaled(web(8), [only])
    assert rescaled_sizes(web(8), only, []) == {"new": 8}
    assert not is_rescaled(web(5), [only])


def test_scaling_in_a_rollout_is_shared_by_size() -> None:
    new, old = rs("new", 5, available=2, desired=10, most=13), rs("old", 8, desired=10, most=13)
    sizes = rescaled_sizes(web(20, 3, 2), new, [old])
    assert sizes == {"new": 9, "old": 14}
    assert sum(sizes.values()) == 23


def test_scaling_to_nothing_empties_all() -> None:
    new, old = rs("new", 5, available=2, desired=10, most=13), rs("old", 8, desired=10, most=13)
    assert rescaled_sizes(web(0), new, [old]) == {"new": 0, "old": 0}


@settings(max_examples=200)
@given(
    replicas=st.integers(1, 30),
    surge=st.integers(0, 10),
    unavailable=st.integers(0, 10),
    old=st.integers(0, 30),
    data=st.data(),
)
def test_a_rollout_ends_and_stays_within_its_limits(
    replicas: int, surge: int, unavailable: int, old: int, data: st.DataObject
) -> None:
    if not surge and not unavailable:
        surge = 1
    doc = web(replicas, surge, unavailable)
    sets = {"new": rs("new", first_size(doc, [rs("old", old)])), "old": rs("old", min(old, replicas))}
    sets["new"] = rs("new", first_size(doc, [sets["old"]]), available=0)
    most, least = limits(doc)[0] + replicas, replicas - limits(doc)[1]
    enough = total([sets["old"]]) >= least
    for _ in range(500):
        new = sets["new"]
        size = next_new_size(doc, new, [sets["old"]])
        if size != desired(new):
            available = new["status"]["availableReplicas"]
            sets["new"] = rs("new", size, available=min(available, size))
        else:
            for name, smaller in next_old_sizes(doc, new, [sets["old"]]).items():
                sets[name] = rs(name, smaller)
        assert total([*sets.values()]) <= max(most, replicas)
        alive = sum(one["status"]["availableReplicas"] for one in sets.values())
        assert not enough or alive >= least
        if desired(sets["new"]) == replicas and desired(sets["old"]) == 0:
            return
        starting = desired(sets["new"]) - sets["new"]["status"]["availableReplicas"]
        if starting:
            started = data.draw(st.integers(1, starting))
            known = sets["new"]["status"]["availableReplicas"]
            sets["new"] = rs("new", desired(sets["new"]), available=known + started)
    raise AssertionError("the rollout does not end")


def test_a_template_is_known_by_its_hash_and_without_it() -> None:
    template = deployment("web").doc()["spec"]["template"]
    hashed = {**template, "metadata": {"labels": {**template["metadata"]["labels"], "pod-template-hash": "x"}}}
    assert same_template(template, hashed)
    assert not same_template(template, {**template, "spec": {}})
    assert template_hash(template, None) == template_hash(dict(reversed(template.items())), None)
    assert template_hash(template, None) != template_hash(template, 1)
    assert set(template_hash(template, None)) <= set("bcdfghjklmnpqrstvwxz2456789")
