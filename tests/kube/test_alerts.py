"""The shipped alerts on an hour of metrics, by promtool: a fault raises its alert and no other, a healthy hour none."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.promql import FILES

pytestmark = pytest.mark.kube

OURS = 'namespace="fairlead-system",job="fairlead-system/fairlead",pod="fairlead-a"'
STANDBY = OURS.replace("fairlead-a", "fairlead-b")
OTHERS = 'namespace="kube-system",job="kube-scheduler",pod="kube-scheduler-n0"'
HEALTHY = {
    f"up{{{OURS}}}": "1x120",
    f"up{{{STANDBY}}}": "1x120",
    f'leader_election_master_status{{{OURS},name="fairlead"}}': "1x120",
    f'leader_election_master_status{{{STANDBY},name="fairlead"}}': "0x120",
    f'fairlead_failing_checks{{{OURS},check="leaderElection"}}': "0x120",
    f'fairlead_failing_checks{{{OURS},check="modes"}}': "0x120",
    f'fairlead_failing_checks{{{OURS},check="api"}}': "0x120",
    f"fairlead_config_last_reload_successful{{{OURS}}}": "1x120",
    f"fairlead_api_unreachable_seconds{{{OURS}}}": "0x120",
    f'rest_client_requests_total{{{OURS},code="200"}}': "0+600x120",
    f'rest_client_requests_total{{{OURS},code="401"}}': "0x120",
    f'rest_client_requests_total{{{OURS},code="403"}}': "0x120",
    f'fairlead_watch_silence_seconds{{{OURS},resource="pods"}}': "20x120",
    f'scheduler_pending_pods{{{OURS},queue="active"}}': "5x120",
    f'scheduler_schedule_attempts_total{{{OURS},result="scheduled"}}': "0+60x120",
    f'scheduler_schedule_attempts_total{{{OURS},result="error"}}': "0x120",
    f'scheduler_pod_scheduling_sli_duration_seconds_bucket{{{OURS},le="1"}}': "0+60x120",
    f'scheduler_pod_scheduling_sli_duration_seconds_bucket{{{OURS},le="120"}}': "0+60x120",
    f'scheduler_pod_scheduling_sli_duration_seconds_bucket{{{OURS},le="+Inf"}}': "0+60x120",
    f'fairlead_exceptions_total{{{OURS},doing="binding"}}': "0x120",
    f'fairlead_exceptions_total{{{OURS},doing="rounds"}}': "0x120",
    f"fairlead_drift_found_total{{{OURS}}}": "0x120",
    f'fairlead_evictions_total{{{OURS},rule="priority"}}': "0x120",
    # kube-scheduler beside it, with its names, and not well
    f"up{{{OTHERS}}}": "1x120",
    f'leader_election_master_status{{{OTHERS},name="kube-scheduler"}}': "0x120",
    f'scheduler_schedule_attempts_total{{{OTHERS},result="error"}}': "0+600x120",
    f'rest_client_requests_total{{{OTHERS},code="403"}}': "0+600x120",
    f'scheduler_pending_pods{{{OTHERS},queue="active"}}': "500x120",
}
FAULTS = {
    "FairleadIsDown": {f"up{{{OURS}}}": "0x120", f"up{{{STANDBY}}}": "0x120"},
    "FairleadHasNoLeader": {f'leader_election_master_status{{{OURS},name="fairlead"}}': "0x120"},
    "FairleadIsNotReady": {f'fairlead_failing_checks{{{OURS},check="modes"}}': "1x120"},
    "FairleadConfigurationIsRefused": {f"fairlead_config_last_reload_successful{{{OURS}}}": "0x120"},
    "FairleadCannotReachTheApiServer": {
        f"fairlead_api_unreachable_seconds{{{OURS}}}": "0+60x120",
        f'fairlead_watch_silence_seconds{{{OURS},resource="pods"}}': "0+60x120",
        f'fairlead_failing_checks{{{OURS},check="api"}}': "1x120",
    },
    "FairleadIsRefused": {f'rest_client_requests_total{{{OURS},code="401"}}': "0+60x120"},
    "FairleadWatchIsSilent": {f'fairlead_watch_silence_seconds{{{OURS},resource="pods"}}': "0+60x120"},
    "FairleadPodsDoNotMoveOn": {
        f'scheduler_pending_pods{{{OURS},queue="active"}}': "500x120",
        f'scheduler_schedule_attempts_total{{{OURS},result="scheduled"}}': "60x120",
    },
    "FairleadSchedulesSlowly": {f'scheduler_pod_scheduling_sli_duration_seconds_bucket{{{OURS},le="1"}}': "0x120"},
    "FairleadAttemptsFail": {f'scheduler_schedule_attempts_total{{{OURS},result="error"}}': "0+60x120"},
    "FairleadRoundsFail": {f'fairlead_exceptions_total{{{OURS},doing="rounds"}}': "0+1x120"},
    "FairleadRaises": {f'fairlead_exceptions_total{{{OURS},doing="binding"}}': "0+1x120"},
    "FairleadRepairedItself": {f"fairlead_drift_found_total{{{OURS}}}": "0+1x120"},
    "FairleadEvictsOnAndOn": {f'fairlead_evictions_total{{{OURS},rule="priority"}}': "0+5x120"},
}


def test_each_fault_raises_its_alert_and_no_other(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None, "promtool is missing: run tools/real/packages.sh, which installs it with INSTALL=1"
    selected = 'namespace="fairlead-system",job=~"(.*/)?fairlead"'
    text = (FILES / "alerts.yaml").read_text().replace("OURS", selected)
    (tmp_path / "alerts.yaml").write_text(text)
    known = {rule["alert"] for group in yaml.safe_load(text)["groups"] for rule in group["rules"]}
    assert known == FAULTS.keys(), "each alert has its fault here"
    groups = []
    for fault, planted in {"health": {}, **FAULTS}.items():
        series = HEALTHY | planted
        raised = [] if fault == "health" else [{"labels": f'{{alertname="{fault}"}}', "value": 1}]
        groups.append({
            "name": fault,
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [{
                "expr": 'count(ALERTS{alertstate="firing"}) by (alertname)', "eval_time": "90m", "exp_samples": raised,
            }],
        })  # fmt: skip
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": ["alerts.yaml"], "evaluation_interval": "1m", "tests": groups}))
    done = subprocess.run([promtool, "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
