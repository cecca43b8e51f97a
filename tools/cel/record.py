"""Asks a real API server what it makes of the rules in cases.py, and keeps the answers for the unit tests.

The answers become tests/unit/cluster/custom/data/rules.jsonl: for each rule why its definition is refused, or what is
said of each value.

    tools/cel/record.py --server https://127.0.0.1:6443 --token TOKEN
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from cases import Step, cases  # noqa: E402

from tests.support.real.rule_answers import RealServer, packed  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    arguments = parser.parse_args()
    rows = []
    for case in cases():
        values = [[one.new, one.old] if isinstance(one, Step) else [one, None] for one in case.values]
        rows.append(
            {"schema": case.schema, "rule": case.rule, "values": values, **({"root": True} if case.root else {})}
        )
    answers = list(RealServer(arguments.server, arguments.token).answers(rows))
    target = ROOT / "tests/unit/cluster/custom/data/rules.jsonl"
    target.parent.mkdir(exist_ok=True)
    target.write_text("".join(line + "\n" for line in packed(answers)))
    refused = sum("refused" in answer for answer in answers)
    print(f"{len(answers)} rules, {refused} refused, in {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
