"""ImageLocality, with the two oddities of image counts and sizes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc, Happened
from fairlead.core.model.shape import normalised_image
from fairlead.kube.nodes.images import ImageLocality
from tests.support.documents import node, plain_pod
from tests.support.plugins import PluginScenario

PLUGIN = ImageLocality()
MB = 1 << 20


def image(name: str, megabytes: int) -> Doc:
    return {"names": [name], "sizeBytes": megabytes * MB}


def running(*images: str, init: Sequence[str] = (), volumes: Sequence[str] = ()) -> Doc:
    return plain_pod(
        containers=[{"name": f"c{i}", "image": name} for i, name in enumerate(images)],
        initContainers=[{"name": f"i{i}", "image": name} for i, name in enumerate(init)],
        volumes=[{"name": f"v{i}", "image": {"reference": name}} for i, name in enumerate(volumes)],
    )


def street(**held: list[Doc]) -> PluginScenario:
    made = PluginScenario()
    for name, images in held.items():
        made.put(kinds.NODE, node(name, images=images))
    made.cluster.begin_cycle()
    return made


def points(megabytes: float, containers: int = 1) -> int:
    low, high = 23 * MB, 1000 * MB * containers
    return int(100 * (min(max(int(megabytes * MB), low), high) - low) // (high - low))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1", "nginx:1"),
        ("host:5000/nginx", "host:5000/nginx:latest"),
        ("host:5000/nginx:1", "host:5000/nginx:1"),
        ("nginx@sha256:abc", "nginx@sha256:abc"),
    ],
)
def test_names_get_a_tag_and_digests_stay(name: str, expected: str) -> None:
    assert normalised_image(name) == expected


def test_an_image_counts_by_its_size_and_the_share_of_nodes_that_hold_it() -> None:
    where = street(a=[image("x:1", 600)], b=[])
    assert where.scores(PLUGIN, running("x:1")) == {"a": points(300), "b": 0}


def test_small_images_count_nothing_and_large_ones_no_more_than_the_limit() -> None:
    where = street(a=[image("small:1", 22), image("large:1", 5000)])
    assert where.scores(PLUGIN, running("small:1")) == {"a": 0}
    assert where.scores(PLUGIN, running("large:1")) == {"a": 100}


def test_images_add_up_and_duplicates_count_again() -> None:
    where = street(a=[image("x:1", 400), image("y:1", 300)])
    assert where.scores(PLUGIN, running("x:1", "y:1")) == {"a": points(700, 2)}
    assert where.scores(PLUGIN, running("x:1", "x:1")) == {"a": points(800, 2)}
    assert where.scores(PLUGIN, running("x:1", init=["y:1"])) == {"a": points(700, 2)}


def test_image_volumes_count_in_the_sum_but_not_in_the_number_of_containers() -> None:
    where = street(a=[image("x:1", 400), image("v:1", 300)])
    assert where.scores(PLUGIN, running("x:1", volumes=["v:1"])) == {"a": points(700, 1)}


def test_an_image_has_as_many_names_as_the_node_lists() -> None:
    where = street(a=[{"names": ["x@sha256:abc", "x:1"], "sizeBytes": 500 * MB}])
    assert where.scores(PLUGIN, running("x@sha256:abc")) == where.scores(PLUGIN, running("x:1")) == {"a": points(500)}


def test_the_size_of_an_image_is_what_the_first_node_said() -> None:
    where = street(a=[image("x:1", 400)])
    where.put(kinds.NODE, node("b", images=[image("x:1", 900)]))
    where.cluster.table.images.refresh(range(where.cluster.table.high))
    assert where.scores(PLUGIN, running("x:1")) == {"a": points(400), "b": points(400)}


def test_the_first_size_is_forgotten_with_the_last_node_that_holds_the_image() -> None:
    where = street(a=[image("x:1", 400)])
    where.put(kinds.NODE, node("a"), happened=Happened.MODIFIED)
    where.put(kinds.NODE, node("a", images=[image("x:1", 900)]), happened=Happened.MODIFIED)
    where.cluster.begin_cycle()
    assert where.scores(PLUGIN, running("x:1")) == {"a": points(900)}


def test_the_only_node_that_holds_an_image_may_correct_its_size() -> None:
    where = street(a=[image("x:1", 400)])
    where.put(kinds.NODE, node("a", images=[image("x:1", 900)]), happened=Happened.MODIFIED)
    where.cluster.begin_cycle()
    assert where.scores(PLUGIN, running("x:1")) == {"a": points(900)}


def test_an_image_may_have_no_name() -> None:
    assert street(a=[{"names": [], "sizeBytes": 900 * MB}]).scores(PLUGIN, running("x:1")) == {"a": 0}


def test_how_many_nodes_hold_an_image_is_as_of_when_a_node_last_changed() -> None:
    where = street(a=[image("x:1", 800)])
    where.put(kinds.NODE, node("b", images=[image("x:1", 800)]))
    where.cluster.begin_cycle()
    assert where.scores(PLUGIN, running("x:1")) == {"a": points(400), "b": points(800)}
    where.put_on(plain_pod("e"), "a")
    where.cluster.begin_cycle()
    assert where.scores(PLUGIN, running("x:1")) == {"a": points(800), "b": points(800)}


def test_image_locality_listens_to_no_events() -> None:
    assert not PLUGIN.events()
