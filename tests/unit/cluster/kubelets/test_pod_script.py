"""What annotations say of a simulated pod's life."""

from __future__ import annotations

from random import Random

import pytest

from fairlead.cluster.kubelets.pod_script import RUN_TIME, PodScript, read_script


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1.5s", 1.5), (" 2m ", 120.0), ("1h2m3s", 3723.0), ("7", 7.0), ("0", 0.0)]
    + [(wrong, None) for wrong in ("", "soon", "-1s", "5x", "-3", "inf", "nan")],
)
def test_a_run_time_is_a_duration_or_a_number_of_seconds_or_nothing(text: str, seconds: float | None) -> None:
    assert read_script({RUN_TIME: text}, Random(0), PodScript()).run_time == seconds
