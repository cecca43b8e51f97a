"""The part of PromQL that the shipped board and alerts use, evaluated on what a scheduler served at two moments.

A query of the board must not only parse: on metrics as they are served it must have an answer. Series are kept as
Prometheus keeps them, a name and labels with a value; `rate` and `increase` are the growth between the two moments.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import promql_parser
import yaml
from prometheus_client.parser import text_string_to_metric_families

FILES = Path(__file__).resolve().parents[2] / "deploy" / "chart" / "files"
_OURS = re.compile(r'\bOURS,?|namespace=~"\$namespace",job=~"\$job",instance=~"\$instance",?')
"""What selects the release; a scheduler that is asked directly does not serve these labels."""
Labels = tuple[tuple[str, str], ...]
Vector = dict[Labels, float]
_AGGREGATES: dict[str, Callable[[list[float]], float]] = {"sum": sum, "max": max, "min": min}
OF_THE_TARGET = frozenset({"pod", "instance"})
"""Labels that Prometheus adds to what it scrapes."""
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda one, other: one < other, ">": lambda one, other: one > other, "==": lambda one, other: one == other,
}  # fmt: skip


def board_queries() -> Iterator[str]:
    """Those of the shipped Grafana board."""
    for panel in json.loads((FILES / "dashboard.json").read_text())["panels"]:
        for target in panel["targets"]:
            yield _OURS.sub("", target["expr"]).replace("{}", "")


def alert_queries() -> Iterator[str]:
    """Those of the shipped alerts."""
    for group in yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            yield _OURS.sub("", rule["expr"]).replace("{}", "")


class Prometheus:
    """Two scrapes of one scheduler, `seconds` apart."""

    def __init__(self, before: str, after: str, seconds: float) -> None:
        self._before, self._after, self._seconds = _series(before), _series(after), seconds

    def query(self, text: str) -> Vector:
        answer = self._value(promql_parser.parse(text))
        return answer if isinstance(answer, dict) else {(): answer}

    def _value(self, node: Any) -> Any:
        match node:
            case promql_parser.NumberLiteral():
                return node.val
            case promql_parser.ParenExpr():
                return self._value(node.expr)
            case promql_parser.VectorSelector():
                return self._selected(self._after, node)
            case promql_parser.AggregateExpr():
                return self._aggregate(node)
            case promql_parser.Call():
                return self._call(node.func.name, node.args)
            case promql_parser.BinaryExpr():
                return _joined(str(node.op), self._value(node.lhs), self._value(node.rhs))
        raise AssertionError(f"no shipped query has used {type(node).__name__} yet")

    def _selected(self, series: dict[str, Vector], selector: Any) -> Vector:
        if selector.name == "up":  # who answers is up
            return {(): 1.0}
        found = series.get(selector.name)
        assert found is not None, f"{selector.name} is not served"
        wanted = selector.matchers.matchers
        return {labels: value for labels, value in found.items() if all(_matches(one, dict(labels)) for one in wanted)}

    def _call(self, name: str, args: list[Any]) -> Vector:
        if name in ("rate", "increase"):
            selector = args[0].vector_selector
            before, after = self._selected(self._before, selector), self._selected(self._after, selector)
            per = self._seconds if name == "rate" else 1.0
            return {labels: (value - before.get(labels, 0.0)) / per for labels, value in after.items()}
        if name == "absent":
            return {} if self._value(args[0]) else {(): 1.0}
        assert name == "histogram_quantile", f"no shipped query has used {name} yet"
        return _quantile(self._value(args[0]), self._value(args[1]))

    def _aggregate(self, node: Any) -> Vector:
        inner = self._value(node.expr)
        if str(node.op) == "topk":
            best = sorted(inner.items(), key=lambda item: -item[1])
            return dict(best[: int(self._value(node.param))])
        by = set(node.modifier.labels) if node.modifier is not None else set()
        groups: dict[Labels, list[float]] = defaultdict(list)
        for labels, value in inner.items():
            groups[tuple(pair for pair in labels if pair[0] in by)].append(value)
        for labels in groups:
            assert {name for name, _ in labels} == by - OF_THE_TARGET, f"{node}: there are only labels {labels}"
        return {labels: _AGGREGATES[str(node.op)](values) for labels, values in groups.items()}


def _matches(matcher: Any, labels: dict[str, str]) -> bool:
    value, operator = labels.get(matcher.name, ""), str(matcher.op).rpartition(".")[2]
    if operator in ("Equal", "NotEqual"):
        return bool(value == matcher.value) == (operator == "Equal")
    return bool(re.fullmatch(matcher.value, value)) == (operator == "Re")


def _series(text: str) -> dict[str, Vector]:
    """Samples by name. A family without samples, as of a counter that nothing has counted yet, has its names too."""
    found: dict[str, Vector] = defaultdict(dict)
    for family in text_string_to_metric_families(text):
        suffixes = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("_total",)}.get(family.type, ("",))
        for suffix in suffixes:
            found[family.name.removesuffix("_total") + suffix] = {}
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return dict(found)


def _quantile(share: float, buckets: Vector) -> Vector:
    """The upper bound of the bucket in which the share falls, for each set of labels besides `le`."""
    counts: dict[Labels, list[tuple[float, float]]] = defaultdict(list)
    for labels, count in buckets.items():
        bound = float(dict(labels)["le"])
        counts[tuple(pair for pair in labels if pair[0] != "le")].append((bound, count))
    return {
        labels: next(bound for bound, count in sorted(each) if count >= share * max(count for _, count in each))
        for labels, each in counts.items()
    }


def _joined(operator: str, one: Any, other: Any) -> Vector:
    if operator == "or":
        return {**other, **one}
    if operator == "unless":
        return {} if other else one
    if operator == "and":
        return {labels: value for labels, value in one.items() if labels in other}
    assert not isinstance(other, dict), "no shipped query has computed with two vectors yet"
    if operator in ("/", "*"):
        return {labels: value / other if operator == "/" else value * other for labels, value in one.items()}
    return {labels: value for labels, value in one.items() if _COMPARISONS[operator](value, other)}
