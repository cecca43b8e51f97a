"""Plugins that raise, or answer what is no answer: who, where, and what is wrong, for users and for the log."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from fairlead import CachedPlugin, Plugin, Reason, Reject, node_filter, node_score
from fairlead.cli.explain.pod_text import show
from fairlead.testing import Harness, pod


def told(plugin: Plugin, *, nodes: int = 3) -> str:
    """What a pod is told that meets a plugin."""
    with Harness(nodes=nodes, plugins=[plugin]) as cluster:
        cluster.apply(pod("web"))
        cluster.run(1)
        explanation = cluster.explain("web")
        assert explanation is not None
        return explanation.message


def scoring(answer: Any) -> Plugin:
    class Scores(CachedPlugin):
        name = "Scores"

        def score(self, cycle: Any, nodes: Any) -> Any:
            return answer

    return Scores()


def filtering(answer: Any) -> Plugin:
    class Filters(CachedPlugin):
        name = "Filters"

        def filter(self, cycle: Any, nodes: Any) -> Any:
            return answer

    return Filters()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (np.array([1, 2]), "it returned a column of 2, and there are 3 nodes to score"),
        (np.array([1.0, np.nan, 3.0]), "it returned NaN, and a score is a number from 0 to 100"),
        (None, "it returned None, and a score is a number from 0 to 100 (is a `return` missing?)"),
        (np.array([0.4, 0.9, 1.0]), "it returned 0.4, which would count as 0: scores are numbers from 0 to 100"),
        ("high", "it returned 'high', and a score is a number from 0 to 100"),
    ],
)
def test_a_column_that_holds_no_scores_names_the_plugin_and_the_mistake(answer: Any, words: str) -> None:
    assert told(scoring(answer)) == f"plugin Scores answered wrongly at score: {words}"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            [Reject(Reason("Filters", "no"), np.array([True, False]))],
            "it returned a column of 2, and there are 3 nodes",
        ),
        (None, "it returned None, and a filter returns its Rejects, or () if it refuses no node"),
    ],
)
def test_a_filter_that_answers_no_rejects_names_the_plugin_and_the_mistake(answer: Any, words: str) -> None:
    assert told(filtering(answer)).startswith(f"plugin Filters answered wrongly at filter: {words}")


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        (lambda pod, node: None, "it returned None"),
        (lambda pod, node: "high", "it returned 'high'"),
        (lambda pod, node: 0.4, "it returned 0.4, which would count as 0"),
        (lambda pod, node: float("nan"), "it returned NaN"),
    ],
)
def test_a_function_that_gives_no_score_is_named(rates: Callable[..., Any], words: str) -> None:
    assert told(node_score(name="rates")(rates)).startswith(f"plugin rates answered wrongly at score: {words}")


def test_a_filter_that_forgets_to_return_does_not_refuse_every_node() -> None:
    @node_filter(reason="node(s) forgotten")
    def forgets(pod: Any, node: Any) -> bool:
        pass  # type: ignore[empty-body]

    words = "plugin forgets answered wrongly at filter: it returned None for node node-0"
    assert told(forgets).startswith(words)


def test_what_is_behind_the_point_of_a_score_does_not_count() -> None:
    with Harness(nodes=2, plugins=[node_score(name="rates")(lambda pod, node: 55.7)]) as cluster:
        cluster.apply(pod("web"))
        cluster.run(1)
        chosen = cluster.explain("web").chosen  # type: ignore[union-attr]
        assert chosen is not None
        assert chosen.scores["rates"] == 55


def test_a_plugin_that_raises_leaves_file_and_line_once_in_the_log_and_in_the_explanation() -> None:
    @node_score()
    def raises(pod: Any, node: Any) -> float:
        return {"a": 1.0}["b"]

    with Harness(nodes=2, plugins=[raises]) as cluster:
        cluster.apply(pod("one"))
        cluster.apply(pod("two"))
        cluster.run(30)
        scheduler = next(one for one in cluster.runtime.controllers if hasattr(one, "backlog"))
        places = [words for words in scheduler.backlog.complaints if "test_wrong_answers.py" in words]
        explanation = cluster.explain("two")
    assert len(places) == 1
    assert places[0].startswith("plugin raises failed at score: KeyError: 'b'\n  File ")
    assert explanation is not None
    assert 'return {"a": 1.0}["b"]' in explanation.traceback
    shown = {verbose: printed(explanation.to_document(), verbose=verbose) for verbose in (False, True)}
    assert "test_wrong_answers.py" in shown[False]
    assert 'return {"a": 1.0}["b"]' not in shown[False]
    assert 'return {"a": 1.0}["b"]' in shown[True]


def printed(document: Any, *, verbose: bool) -> str:
    console = Console(width=200, file=StringIO())
    show(console, document, verbose=verbose)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]
