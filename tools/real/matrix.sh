#!/usr/bin/env bash
# The suite of a small cluster against every Kubernetes in the matrix: builds each from the module registry, once.
#
#   tools/real/matrix.sh                 all of them
#   tools/real/matrix.sh 1.35 1.37       these
#
# Versions are pinned in tools/real/matrix (1.36 is tools/real/kubernetes, 1.37 is tools/real/next). Each version is a
# module made from that of tools/real/kubernetes with other pins; its go.sum is made when it is first built.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
house=$(cd "$here/../.." && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/fairlead/real"
links=$("$here/build.sh")
wanted=("$@")
[ ${#wanted[@]} -gt 0 ] || wanted=($(cut -d ' ' -f 1 "$here/matrix"))

# A kube-apiserver of a version, built in a module of its own.
build() {
    local minor=$1 version=$2 module="$cache/matrix/$2" flags stamp=k8s.io/component-base/version
    [ -x "$module/kube-apiserver" ] && return
    mkdir -p "$module"
    local staging="v0.${version#v1.}"
    sed -E "s#(k8s.io/kubernetes) v1[.0-9]+#\1 $version#; s#(=> k8s.io/[a-z-]+) v0[.0-9]+#\1 $staging#; /^\t.*\/\/ indirect/d" \
        "$here/kubernetes/go.mod" > "$module/go.mod"
    printf '//go:build tools\n\npackage tools\n\nimport _ "k8s.io/kubernetes/cmd/kube-apiserver"\n' > "$module/tools.go"
    flags="-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=${minor#1.}"
    (cd "$module" && go mod tidy && CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o kube-apiserver.partial k8s.io/kubernetes/cmd/kube-apiserver)
    mv "$module/kube-apiserver.partial" "$module/kube-apiserver"
}

failed=()
for minor in "${wanted[@]}"; do
    version=$(awk -v minor="$minor" '$1 == minor {print $2}' "$here/matrix")
    [ -n "$version" ] || { echo "tools/real/matrix.sh: $minor is not in tools/real/matrix" >&2; exit 2; }
    case $version in
        kubernetes) suffix="" ;;
        next) suffix=-next ;;
        *)
            if ! build "$minor" "$version" >&2; then failed+=("$minor (does not build)"); continue; fi
            ln -sfn "$cache/matrix/$version/kube-apiserver" "$links/kube-apiserver-$minor"
            suffix="-$minor" ;;
    esac
    echo "== Kubernetes $minor" >&2
    FAIRLEAD_REAL=$links FAIRLEAD_MATRIX=$suffix "$house/.venv/bin/pytest" -q -m kube "$house/tests/kube/test_versions.py" || failed+=("$minor")
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}" >&2; exit 1; }
