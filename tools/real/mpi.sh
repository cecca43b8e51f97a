#!/usr/bin/env bash
# Installs Debian's Open MPI and the ssh client, which tests/kube/test_mpi.py starts, unless they are there.
set -euo pipefail
command -v mpirun >/dev/null && command -v ssh-keygen >/dev/null && exit 0
command -v apt-get >/dev/null || { echo "tools/real/mpi.sh: install Open MPI (mpirun) and ssh-keygen by hand: there is no apt-get here" >&2; exit 1; }
packages() { apt-get install -y --no-install-recommends openmpi-bin openssh-client >&2; }
packages || { apt-get update >&2 && packages; } # a new machine may know of no package yet
