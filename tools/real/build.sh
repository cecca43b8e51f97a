#!/usr/bin/env bash
# Builds the pinned real control plane once and prints the directory that holds it.
#
#   tools/real/build.sh                  the parts that `make test-kube` needs
#   tools/real/build.sh kubectl etcd     only these
#
# Binaries are kept outside the checkout, in ${XDG_CACHE_HOME:-~/.cache}/fairlead/real/VERSION, so a
# second run costs nothing. A directory of ready binaries in KUBEBUILDER_ASSETS (as envtest users
# know it) serves in their place; what is missing there is built. Each binary is moved into place only when
# complete, and a lock lets two runs share one build.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=$(awk '$1 == "k8s.io/kubernetes" {print $2}' "$here/kubernetes/go.mod")
cache="${XDG_CACHE_HOME:-$HOME/.cache}/fairlead/real/$version"
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(kubectl etcd kube-apiserver kube-scheduler kube-controller-manager)

command -v go >/dev/null || { echo "tools/real/build.sh: Go is needed to build the real control plane (or set KUBEBUILDER_ASSETS)" >&2; exit 1; }
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9

stamp=k8s.io/component-base/version
IFS=. read -r major minor _ <<<"${version#v}"
flags="-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor -X $stamp.gitTreeState=clean -X k8s.io/client-go/pkg/version.gitVersion=$version"

for part in "${parts[@]}"; do
    target="$cache/$part"
    [ -x "$target" ] && continue
    if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$part" ]; then
        ln -sf "$KUBEBUILDER_ASSETS/$part" "$target"
        continue
    fi
    case $part in
        etcd) module=kubernetes package=go.etcd.io/etcd/server/v3 ;;
        kubectl | kube-apiserver | kube-scheduler | kube-controller-manager) module=kubernetes package="k8s.io/kubernetes/cmd/$part" ;;
        *) echo "tools/real/build.sh: no part is called '$part'" >&2; exit 1 ;;
    esac
    echo "building $part ($package)" >&2
    started=$SECONDS
    (cd "$here/$module" && CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$target.partial" "$package")
    mv "$target.partial" "$target"
    echo "built $part in $((SECONDS - started)) s" >&2
done
echo "$cache"
