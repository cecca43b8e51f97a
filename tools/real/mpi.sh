#!/usr/bin/env bash
# Looks for Open MPI and ssh-keygen, which tests/kube/test_mpi.py starts. With INSTALL=1 it installs Debian's packages of
# them if they are not there; without it nothing of the machine is changed.
set -euo pipefail
command -v mpirun >/dev/null && command -v ssh-keygen >/dev/null && exit 0
[[ ${INSTALL:-} == 1 ]] || { echo "tools/real/mpi.sh: mpirun and ssh-keygen are missing: install Debian's openmpi-bin and openssh-client, or have INSTALL=1 do it" >&2; exit 1; }
command -v apt-get >/dev/null || { echo "tools/real/mpi.sh: install Open MPI (mpirun) and ssh-keygen by hand: there is no apt-get here" >&2; exit 1; }
packages() { apt-get install -y --no-install-recommends openmpi-bin openssh-client >&2; }
packages || { apt-get update >&2 && packages; } # a new machine may know of no package yet
