"""What notebooks show of answers: tables in HTML, with all text escaped."""

from __future__ import annotations

from fairlead import schedule
from fairlead.core.model.html_tables import MOST_ROWS, html_table
from fairlead.testing import Harness, deployment, pod, priority_class


def test_placements_show_who_is_where_and_why_others_wait() -> None:
    done = schedule(deployment("api").replicas(2), pod("big").asks(cpu="64"), nodes=1)
    shown = done._repr_html_()
    assert "2 of 3 pods have a node" in shown
    assert "node-0</td>" in shown
    assert "1 Insufficient cpu." in shown


def test_an_explanation_shows_what_refused_and_what_is_short() -> None:
    done = schedule(pod("big").asks(cpu="64"), pod("web").asks(cpu="1"), nodes=2)
    refused, placed = done.explain("big"), done.explain("web")
    assert refused is not None
    assert placed is not None
    shown = refused._repr_html_()
    assert "default/big: Unschedulable" in shown
    assert ">NodeResourcesFit</td>" in shown
    assert ">Insufficient cpu</td>" in shown
    assert f"default/web: Scheduled on {placed.node}" in placed._repr_html_()
    assert "<th" in placed._repr_html_()


def test_a_forecast_shows_places_and_victims() -> None:
    with Harness(nodes=1) as cluster:
        cluster.apply(priority_class("high", 10), pod("low").asks(cpu="6"))
        cluster.run(1)
        runs, waits = cluster.would(pod("web").asks(cpu="1")), cluster.would(pod("big").asks(cpu="64"))
        evicts = cluster.would(pod("high").asks(cpu="6").of_priority("high"))
    assert "1 of 1 pods would have a node" in runs._repr_html_()
    assert "Insufficient cpu" in waits._repr_html_()
    assert ">default/low</td>" in evicts._repr_html_()


def test_text_is_escaped_and_long_tables_are_cut() -> None:
    assert html_table(("a",), []) == ""
    assert "&lt;b&gt;[x]" in html_table(("a",), [("<b>[x]",)])
    assert "and 2 more" in html_table(("a",), [("x",)] * (MOST_ROWS + 2))
