"""Volcano's resource arithmetic, each comparison as the original has it."""

from __future__ import annotations

import pytest

from fairlead.volcano.records.amounts import INFINITY, ZERO, Amounts, common_names, larger, share, smaller

GPU = "nvidia.com/gpu"


def of(cpu: float = 0, memory: float = 0, **scalars: float) -> Amounts:
    return Amounts(cpu, memory, {GPU if name == "gpu" else name: amount for name, amount in scalars.items()})


def test_scalars_are_counted_in_thousandths_and_pods_in_ones() -> None:
    amounts = Amounts.of(
        {"cpu": 1500, "memory": 10, "pods": 3, GPU: 2, "ephemeral-storage": 5, "count/pods": 1, "x": 1}
    )
    assert dict(amounts.items()) == {"cpu": 1500, "memory": 10, "pods": 3, GPU: 2000, "ephemeral-storage": 5000}
    assert amounts.to_units() == {"cpu": 1500, "memory": 10, "pods": 3, GPU: 2, "ephemeral-storage": 5}


@pytest.mark.parametrize(
    ("left", "right", "zero", "infinity"),
    [
        (of(1000, gpu=1), of(2000), False, True),
        (of(1000), of(2000, gpu=2), True, False),
        (of(1000.05), of(1000), True, True),
        (of(1000.1), of(1000), False, False),
        (of(0, 0), of(-1, 0), False, False),
    ],
)
def test_less_or_equal_depends_on_what_a_missing_name_means(
    left: Amounts, right: Amounts, zero: bool, infinity: bool
) -> None:
    assert left.less_equal(right, ZERO) is zero
    assert left.less_equal(right, INFINITY) is infinity


def test_names_that_exceed_come_cpu_first_then_memory_then_scalars() -> None:
    asked = of(2, 2, gpu=2)
    assert asked.exceeding_requested(of(1, 1), asked) == ["cpu", "memory", GPU]


def test_only_requested_dimensions_count_without_tolerance_and_never_pods() -> None:
    request = of(1, 0, pods=1, gpu=1)
    assert of(1.05, 9, pods=9, gpu=3).exceeding_requested(of(1, 1, gpu=3), request) == ["cpu"]
    assert of(0.5, 9).exceeding_requested(of(1, 1), of(1, 0, gpu=1)) == [], "no scalars here: none can exceed"


def test_partly_is_true_with_a_name_that_one_side_lacks() -> None:
    assert of(2, 2).less_partly(of(1, 1, gpu=1), ZERO)
    assert not of(2, 2).less_partly(of(1, 1, gpu=1), INFINITY)
    assert of(2, 2, gpu=1).less_partly(of(1, 1), INFINITY)
    assert not of(2, 2, gpu=1).less_partly(of(1, 1), ZERO)


def test_within_some_requested_can_leave_out_what_neither_has() -> None:
    assert of(0, 0).within_some_requested(of(0, 0), of(1)) == ["cpu"]
    assert of(0, 0).within_some_requested(of(0, 0), of(1), ignore_zeros=True) == []


def test_above_some_relevant_looks_only_at_what_the_other_defines() -> None:
    assert of(2, 2, gpu=2).above_some_requested(of(), of(1, gpu=1)) == ["cpu", GPU]
    assert of(2, 2, gpu=2).above_some_relevant(of(), of(1, gpu=1)) == []
    assert of(2, 2, gpu=2).above_some_relevant(of(gpu=1), of(1, gpu=1)) == [GPU]


def test_without_scalars_none_are_subtracted() -> None:
    assert (of(3) - of(1, gpu=1)).scalars == {}
    assert (of(3, gpu=1) - of(1, gpu=2)).scalars == {GPU: -1}


def test_capping_by_a_missing_name_zeroes_or_leaves_alone() -> None:
    assert of(3, 3, gpu=1).cap(of(1, 5), ZERO) == of(1, 3, gpu=0)
    assert of(3, 3, gpu=1).cap(of(1, 5), INFINITY) == of(1, 3, gpu=1)


def test_the_difference_is_split_into_what_each_side_has_more() -> None:
    more, less = of(3, 1, gpu=1).difference(of(1, 4, pods=2))
    assert (more.cpu, more.memory, more.scalars) == (2, 0, {GPU: 1})
    assert (less.cpu, less.memory, less.scalars) == (0, 3, {"pods": 2})
    assert of(3, 1).exceeded_part(of(1, 4)) == of(2, 0)


def test_smaller_and_larger_treat_scalars_differently() -> None:
    assert smaller(of(1, 2, gpu=1), of(2, 1)) == of(1, 1)
    assert smaller(of(1, 2, gpu=1), of(2, 1, pods=1)) == of(1, 1, gpu=0)
    assert larger(of(1, 2, gpu=-1), of(2, 1, pods=1)) == of(2, 2, gpu=0, pods=1)


def test_empty_ignores_pods_and_what_is_below_the_tolerance() -> None:
    assert of(0.05, 0, pods=3).empty
    assert not of(0, 0, gpu=1).empty


def test_common_names_are_those_both_have_something_of() -> None:
    assert common_names(of(1, 0, pods=1, gpu=1), of(1, 1, pods=1)) == ["cpu", "pods"]
    assert common_names(of(1, 0, pods=1), of(1, 1, pods=1), ignore_pods=True) == ["cpu"]


def test_a_share_of_nothing_is_everything() -> None:
    assert (share(0, 0), share(1, 0), share(1, 4)) == (0, 1, 0.25)
