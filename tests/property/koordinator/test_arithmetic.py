"""What Koordinator's arithmetic never does: hand out more than there is, give a CPU twice, lose what a reservation
holds."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.koordinator.kinds import KOORD_RESERVATION
from fairlead.koordinator.numa.accumulator import CORE_LEVEL, FULL_CORES, NUMA_LEVEL, SPREAD, CpuRules, take
from fairlead.koordinator.quotas.sharing import Share, share_out
from fairlead.koordinator.records.cpu_topology import CpuPlace, CpuTopology, format_cpus, parse_cpus

AMOUNTS = st.integers(min_value=0, max_value=10_000)
SHARES = st.lists(st.builds(Share, weight=AMOUNTS, request=AMOUNTS, least=AMOUNTS, lends=st.booleans()), max_size=8)


@given(total=AMOUNTS, shares=SHARES)
def test_shares_never_exceed_what_there_is_beyond_the_minima(total: int, shares: list[Share]) -> None:
    given_out = share_out(total, shares, rounds_up=False)
    minima = sum(share.least if share.request > share.least or not share.lends else share.request for share in shares)
    assert sum(given_out) <= max(total, minima)


@given(total=AMOUNTS, shares=SHARES)
def test_nobody_gets_more_than_it_asks_for_or_less_than_its_minimum(total: int, shares: list[Share]) -> None:
    for share, got in zip(shares, share_out(total, shares, rounds_up=False), strict=True):
        assert min(share.least, share.request) <= got <= max(share.least, share.request)


@given(total=AMOUNTS, shares=SHARES)
def test_shares_sum_to_the_total_while_somebody_with_weight_wants_more(total: int, shares: list[Share]) -> None:
    given_out = share_out(total, shares, rounds_up=False)
    wants = any(s.request > got and s.weight for s, got in zip(shares, given_out, strict=True) if s.request > s.least)
    if wants:
        assert sum(given_out) >= total


def _topology(sockets: int, cores: int, threads: int) -> CpuTopology:
    places = {}
    for socket in range(sockets):
        for core in range(cores):
            for thread in range(threads):
                number = thread * sockets * cores + socket * cores + core
                places[number] = CpuPlace(socket << 16 | core, socket, socket)
    return CpuTopology(places)


@given(
    sockets=st.integers(1, 2),
    cores=st.integers(1, 6),
    threads=st.integers(1, 2),
    count=st.integers(0, 24),
    policy=st.sampled_from([FULL_CORES, SPREAD]),
    exclusive=st.sampled_from(["", CORE_LEVEL, NUMA_LEVEL]),
    most=st.booleans(),
    taken=st.sets(st.integers(0, 23)),
)
def test_cpus_are_taken_from_the_free_ones_and_as_many_as_wanted(
    sockets: int, cores: int, threads: int, count: int, policy: str, exclusive: str, most: bool, taken: set[int]
) -> None:
    topology = _topology(sockets, cores, threads)
    free = frozenset(topology.cpus) - taken
    held = dict.fromkeys(taken, CORE_LEVEL)
    found = take(topology, free, held, count, CpuRules(policy, exclusive, most))
    if isinstance(found, str):
        assert count > len(free)
    else:
        assert found <= free
        assert len(found) == count


@given(st.sets(st.integers(0, 200)))
def test_a_set_of_cpus_is_read_as_it_was_written(cpus: set[int]) -> None:
    assert parse_cpus(format_cpus(cpus)) == cpus


def _pod(number: int, cpu: int, reservation: str = "") -> dict[str, object]:
    text = json.dumps({"name": reservation, "uid": reservation})
    annotations = {"scheduling.koordinator.sh/reservation-allocated": text} if reservation else {}
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu), "memory": "1Gi"}}}
    metadata = {"name": f"p{number}", "namespace": "default", "uid": f"p{number}", "annotations": annotations}
    return {"metadata": metadata, "spec": {"nodeName": "n", "containers": [container]}}


RESERVATION = {
    "metadata": {"name": "r", "uid": "r"},
    "spec": {
        "allocateOnce": False,
        "owners": [{}],
        "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "8", "memory": "8Gi"}}}]}},
    },
    "status": {"phase": "Available", "nodeName": "n"},
}
NODE = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}}}


@given(
    owners=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.booleans()), max_size=20),
)
def test_what_owners_leave_of_a_reservation_is_never_lost(owners: list[tuple[int, int, bool]]) -> None:
    """The row holds the reservation, or what its owners use if that is more, however they come and go."""
    cluster = Cluster()
    cluster.apply(Change(Happened.ADDED, kinds.NODE, NODE))
    cluster.apply(Change(Happened.ADDED, KOORD_RESERVATION, RESERVATION))
    there: dict[int, int] = {}
    for number, cpu, goes in owners:
        happened = Happened.DELETED if goes else Happened.MODIFIED if number in there else Happened.ADDED
        size = there.get(number, cpu)
        cluster.apply(Change(happened, kinds.POD, _pod(number, size, "r")))
        if goes:
            there.pop(number, None)
        else:
            there[number] = size
        cluster.check()
        assert cluster.table.requested_column("cpu")[0] == max(8, sum(there.values())) * 1000
    cluster.apply(Change(Happened.DELETED, KOORD_RESERVATION, RESERVATION))
    cluster.check()
    assert cluster.table.requested_column("cpu")[0] == sum(there.values()) * 1000
