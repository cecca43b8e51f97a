"""The README's table of recorded decisions has the counts of the recordings; the other tests here replay them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def lines(*files: str) -> Iterator[dict[str, Any]]:
    for file in files:
        with gzip.open(DATA / file, "rt", encoding="utf-8") as opened:
            yield from map(json.loads, opened)


def test_decisions_of_kube_scheduler() -> None:
    files = sorted(str(file.relative_to(DATA)) for file in (DATA / "kube").glob("*.jsonl.gz"))
    count = sum(len(line["decisions"]) for line in lines(*files))
    assert f"| kube-scheduler 1.36.4 | {count:,} of {count:,} recorded decisions" in README


def test_rounds_of_volcano() -> None:
    rounds = sum(1 for _ in lines("volcano/volcano.jsonl.gz", "volcano/volcano-corners.jsonl.gz"))
    assert f"| Volcano 1.15.1 | {rounds:,} of {rounds:,} rounds" in README
