#!/usr/bin/env bash
# Looks for the programs of Debian that tests of tests/kube start: Open MPI and ssh-keygen (test_mpi.py), promtool
# (test_alerts.py). With INSTALL=1 it installs the packages of those that are not there; without it nothing of the
# machine is changed.
set -euo pipefail
declare -A packages=([mpirun]=openmpi-bin [ssh-keygen]=openssh-client [promtool]=prometheus)
missing=()
for program in "${!packages[@]}"; do
    command -v "$program" >/dev/null || missing+=("${packages[$program]}")
done
[ ${#missing[@]} -gt 0 ] || exit 0
[[ ${INSTALL:-} == 1 ]] || { echo "tools/real/packages.sh: install Debian's packages ${missing[*]}, or have INSTALL=1 do it" >&2; exit 1; }
command -v apt-get >/dev/null || { echo "tools/real/packages.sh: install ${missing[*]} by hand: there is no apt-get here" >&2; exit 1; }
install() { DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >&2; }
install || { apt-get update >&2 && install; } # a new machine may know of no package yet
