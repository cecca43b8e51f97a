"""Hypothesis strategies for documents: pods, nodes, quantities, labels and selectors.

Hypothesis is only needed by those who call these functions, so it is imported in them and not at the top. Names and
labels come from small pools on purpose: properties of schedulers show when things collide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.testing.builders import NodeBuilder, PodBuilder, node, pod

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from fairlead.core.model.flow import Doc

__all__ = ["labels", "nodes", "pods", "quantities", "selectors"]

KEYS = ("app", "tier", "zone", "disk")
VALUES = ("a", "b", "c")
TAINTS = ("gpu", "spot")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def quantities(*, most: int = 64_000) -> SearchStrategy[str]:
    """Amounts as users spell them: `250m`, `2`, `1.5`, `512Mi`, `1e3`."""
    from hypothesis import strategies as st

    whole = st.integers(0, most)
    return st.one_of(
        whole.map(lambda amount: f"{amount}m"),
        st.integers(0, most // 1000).map(str),
        st.tuples(st.integers(0, most // 1000), st.integers(0, 9)).map(lambda parts: f"{parts[0]}.{parts[1]}"),
        st.tuples(st.integers(0, 1024), st.sampled_from(("Ki", "Mi", "Gi", "k", "M", "G"))).map(
            lambda parts: f"{parts[0]}{parts[1]}"
        ),
        st.integers(0, 5).map(lambda power: f"1e{power}"),
    )


def labels() -> SearchStrategy[dict[str, str]]:
    """A few labels, of few keys and values."""
    from hypothesis import strategies as st

    return st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=3)


def selectors() -> SearchStrategy[Doc]:
    """metav1.LabelSelectors, with expressions of all four operators."""
    from hypothesis import strategies as st

    keys = st.sampled_from(KEYS)
    values = st.lists(st.sampled_from(VALUES), min_size=1, max_size=2, unique=True)
    expressions: SearchStrategy[Any] = st.one_of(
        st.fixed_dictionaries({"key": keys, "operator": st.sampled_from(("In", "NotIn")), "values": values}),
        st.fixed_dictionaries({"key": keys, "operator": st.sampled_from(("Exists", "DoesNotExist"))}),
    )
    return st.fixed_dictionaries(
        {}, optional={"matchLabels": labels(), "matchExpressions": st.lists(expressions, max_size=2)}
    )


def nodes(name: str = "node") -> SearchStrategy[NodeBuilder]:
    """Nodes of a few sizes, some labelled, tainted or cordoned."""
    from hypothesis import strategies as st

    def build(cores: int, gigabytes: int, marks: dict[str, str], taints: list[tuple[str, str]], cordoned: bool) -> Any:
        built = node(name).offers(cpu=str(cores), memory=f"{gigabytes}Gi").labelled(marks)
        for key, effect in taints:
            built = built.tainted(key, effect)
        return built.cordoned() if cordoned else built

    taint = st.tuples(st.sampled_from(TAINTS), st.sampled_from(EFFECTS))
    return st.builds(
        build,
        st.integers(1, 16),
        st.integers(1, 64),
        labels(),
        st.lists(taint, max_size=2, unique=True),
        st.integers(0, 9).map(lambda roll: roll == 0),
    )


def pods(name: str = "pod") -> SearchStrategy[PodBuilder]:
    """Pods with requests, tolerations, selectors and labels; all small enough to fit on some node."""
    from hypothesis import strategies as st

    def build(cpu: int, memory: int, marks: dict[str, str], chosen: dict[str, str], tolerated: list[str]) -> Any:
        built = pod(name).asks(cpu=f"{cpu}m", memory=f"{memory}Mi").labelled(marks)
        built = built.selects(chosen) if chosen else built
        for key in tolerated:
            built = built.tolerates(key)
        return built

    return st.builds(
        build,
        st.integers(1, 1000),
        st.integers(1, 1024),
        labels(),
        st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=1),
        st.lists(st.sampled_from(TAINTS), max_size=2, unique=True),
    )
