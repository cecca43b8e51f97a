#!/usr/bin/env bash
# Builds the pinned real control plane, Helm and Volcano once and prints the directory that holds them.
# What ends in -next is of the Kubernetes after the one that everything else is held to (tools/real/next).
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
[ ${#parts[@]} -gt 0 ] || parts=(kubectl etcd kube-apiserver kube-scheduler kube-controller-manager kube-apiserver-next kube-scheduler-next helm vc-scheduler vc-controller-manager vcctl)

command -v go >/dev/null || { echo "tools/real/build.sh: Go is needed to build the real control plane (or set KUBEBUILDER_ASSETS)" >&2; exit 1; }
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9

# What a module pins: the version of the one thing it is there for.
pinned() { awk -v module="$2" '$1 == module || $2 == module {print $1 == module ? $2 : $3; exit}' "$here/$1/go.mod"; }

# Kubernetes cannot make sense of itself without its version stamped in.
kubernetes_flags() {
    local version=$1 stamp=k8s.io/component-base/version major minor
    IFS=. read -r major minor _ <<<"${version#v}"
    echo "-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor -X $stamp.gitTreeState=clean -X k8s.io/client-go/pkg/version.gitVersion=$version"
}

for part in "${parts[@]}"; do
    target="$cache/$part"
    [ -x "$target" ] && continue
    if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$part" ]; then
        ln -sf "$KUBEBUILDER_ASSETS/$part" "$target"
        continue
    fi
    stamped=$(kubernetes_flags "$version")
    case $part in
        etcd) module=kubernetes package=go.etcd.io/etcd/server/v3 ;;
        kubectl | kube-apiserver | kube-scheduler | kube-controller-manager) module=kubernetes package="k8s.io/kubernetes/cmd/$part" ;;
        *-next)
            module=next package="k8s.io/kubernetes/cmd/${part%-next}"
            stamped=$(kubernetes_flags "$(pinned next k8s.io/kubernetes)") ;;
        helm)
            module=helm package=helm.sh/helm/v3/cmd/helm
            stamped="-s -w -X helm.sh/helm/v3/internal/version.version=$(pinned helm helm.sh/helm/v3)" ;;
        vc-scheduler | vc-controller-manager | vcctl)
            command=${part#vc-} module=volcano package="volcano.sh/volcano/cmd/${command/vcctl/cli}"
            stamped="-s -w -X volcano.sh/volcano/pkg/version.Version=$(pinned volcano volcano.sh/volcano)" ;;
        *) echo "tools/real/build.sh: no part is called '$part'" >&2; exit 1 ;;
    esac
    echo "building $part ($package)" >&2
    started=$SECONDS
    (cd "$here/$module" && CGO_ENABLED=0 go build -trimpath -ldflags "$stamped" -o "$target.partial" "$package")
    if [ "$part" = vc-controller-manager ]; then # it waits for kinds whose definitions come with its sources
        mkdir -p "$cache/volcano-definitions"
        cp -f "$(cd "$here/volcano" && go list -m -f '{{.Dir}}' volcano.sh/volcano)"/config/crd/{volcano,jobflow}/bases/*.yaml "$cache/volcano-definitions"
    fi
    mv "$target.partial" "$target"
    echo "built $part in $((SECONDS - started)) s" >&2
done
echo "$cache"
