"""The MPI example with a real `mpirun`: it starts a program on the hosts of the Job's hostfile, with the Job's keys and
ssh configuration, and with the environment of its master.

There are no machines behind the host names: in ssh's place a script looks up the host in the Job's ssh configuration,
checks the keys with ssh-keygen, and starts what it is given here. `tools/real/packages.sh` installs Open MPI.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from base64 import b64decode
from pathlib import Path

import pytest
import yaml

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from fairlead.testing.builders import nodes
from fairlead.volcano.config.presets import PRESETS
from fairlead.volcano.jobs.job_plugins.job_plugin import PluginMeans
from fairlead.volcano.jobs.jobs import VolcanoJobs
from fairlead.volcano.jobs.ssh_keys import make_ssh_keys
from tests.support.volcano import VolcanoHarness

pytestmark = pytest.mark.kube

ROOT = Path(__file__).parents[2]
AGENT = """#!/bin/sh
# Called as ssh is: options, a host, and a command for it.
set -e
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
grep -qx "  HostName $host" "$KEYS/config"
[ "$(ssh-keygen -y -f "$KEYS/id_rsa")" = "$(cut -d' ' -f1,2 "$KEYS/authorized_keys")" ]
echo "$host" >> "$KEYS/called"
exec sh -c "$*"
"""


def running_job() -> VolcanoHarness:
    cluster = VolcanoHarness(PRESETS["shipped"], nodes(4), housekeeping="-volcano-job-controller")
    cluster.runtime.add(VolcanoJobs(cluster.store, means=PluginMeans(make_ssh_keys)))
    job = yaml.safe_load((ROOT / "examples" / "volcano" / "mpi.yaml").read_text())
    job["metadata"]["namespace"] = "default"
    cluster.apply(job)
    cluster.until(lambda: len(cluster.list(kinds.POD)) == 3, limit=60)
    return cluster


def stored(cluster: VolcanoHarness, kind: kinds.Kind, name: str) -> Doc:
    found = cluster.get(kind, name)
    assert found is not None
    return found


def test_mpirun_starts_a_program_on_the_hosts_of_the_job(tmp_path: Path) -> None:
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        pytest.fail("mpirun is missing: run tools/real/packages.sh, which installs Open MPI", pytrace=False)
    cluster = running_job()
    for name, text in stored(cluster, kinds.SECRET, "mpi-ssh")["data"].items():
        (tmp_path / name).write_bytes(b64decode(text))
        (tmp_path / name).chmod(0o600)
    hosts = stored(cluster, kinds.CONFIG_MAP, "mpi-svc")["data"]["worker.host"].split()
    master = stored(cluster, kinds.POD, "mpi-master-0")
    environment = {one["name"]: one.get("value", "") for one in master["spec"]["containers"][0]["env"]}
    assert environment["MPI_HOST"] == ",".join(hosts)
    (tmp_path / "hostfile").write_text("".join(f"{host} slots=1\n" for host in hosts))
    agent = tmp_path / "agent"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    done = subprocess.run(
        [
            mpirun, "--allow-run-as-root", "--hostfile", str(tmp_path / "hostfile"), "-np", "2", "--map-by", "node",
            "--mca", "plm_rsh_agent", str(agent), "--mca", "orte_keep_fqdn_hostnames", "1",
            "--mca", "oob_tcp_if_include", "lo", "-x", "MPI_HOST",
            "sh", "-c", "echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE sees $MPI_HOST",
        ],
        # Two orted on one machine share hwloc's topology in memory, and Debian's now and then dies in that code.
        env={**os.environ, **environment, "KEYS": str(tmp_path), "OMPI_MCA_rtc": "^hwloc"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    said = sorted(line for line in done.stdout.splitlines() if line.startswith("rank"))
    assert said == [f"rank {rank} of 2 sees {','.join(hosts)}" for rank in range(2)], done.stdout + done.stderr
    assert sorted((tmp_path / "called").read_text().split()) == sorted(hosts)
