#!/usr/bin/env bash
# Builds the pinned real control plane, Helm, Volcano and Koordinator's scheduler once and prints the directory that holds them.
# What ends in -next is of the Kubernetes after the one that everything else is held to (tools/real/next).
#
#   tools/real/build.sh                  the parts that `make test-kube` needs
#   tools/real/build.sh kubectl etcd     only these
#   tools/real/build.sh koordinator-definitions  what Koordinator's kinds are, which comes with its sources
#
# Binaries are kept outside the checkout, in ${XDG_CACHE_HOME:-~/.cache}/fairlead/real/parts/MODULE-PINS, where PINS is
# a hash of that module's go.mod and go.sum. A second run costs nothing, and a new pin builds anew what it pins and
# nothing else. What is printed is a directory of links to all of them. A directory of ready binaries in
# KUBEBUILDER_ASSETS (as envtest users know it) serves in their place; what is missing there is built. Each binary is
# moved into place only when complete, and a lock lets two runs share one build.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/fairlead/real"
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(kubectl etcd kube-apiserver kube-scheduler kube-controller-manager kubeadm kube-apiserver-next kube-scheduler-next helm vc-scheduler vc-controller-manager vcctl koord-scheduler koordinator-definitions)

# What a module pins: the version of the one thing it is there for.
pinned() { awk -v module="$2" '$1 == module || $2 == module {print $1 == module ? $2 : $3; exit}' "$here/$1/go.mod"; }

# A short name for everything that a module pins.
pins() { cat "$here/$1/go.mod" "$here/$1/go.sum" | sha256sum | cut -c 1-12; }

# The parts by the modules that pin them.
module_of() {
    case $1 in
        etcd | kubectl | kube-apiserver | kube-scheduler | kube-controller-manager) echo kubernetes ;;
        kube-apiserver-next | kube-scheduler-next) echo next ;;
        kubeadm) echo kubeadm ;;
        helm) echo helm ;;
        vc-scheduler | vc-controller-manager | vcctl) echo volcano ;;
        koord-scheduler) echo koordinator ;;
        *) echo "tools/real/build.sh: no part is called '$1'" >&2; return 1 ;;
    esac
}

command -v go >/dev/null || { echo "tools/real/build.sh: Go is needed to build the real control plane (or set KUBEBUILDER_ASSETS)" >&2; exit 1; }
all=$(for module in kubernetes kubeadm next helm volcano koordinator; do pins "$module"; done; echo "${KUBEBUILDER_ASSETS:-}")
links="$cache/links-$(sha256sum <<<"$all" | cut -c 1-12)"
mkdir -p "$links"
exec 9>"$cache/.lock"
flock 9

# Kubernetes cannot make sense of itself without its version stamped in.
kubernetes_flags() {
    local version=$1 stamp=k8s.io/component-base/version major minor
    IFS=. read -r major minor _ <<<"${version#v}"
    echo "-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor -X $stamp.gitTreeState=clean -X k8s.io/client-go/pkg/version.gitVersion=$version"
}

# Definitions of kinds, from the sources of a module; copies, as kubectl does not follow a link to a directory.
definitions() {
    local module=$1 package=$2 folder=$3 from
    shift 3
    from=$(cd "$here/$module" && go mod download "$package" && go list -m -f '{{.Dir}}' "$package")
    mkdir -p "$folder"
    for bases in "$@"; do cp -f "$from/$bases"/*.yaml "$folder"; done
    chmod -R u+w "$folder"
}

for part in "${parts[@]}"; do
    if [ "$part" = koordinator-definitions ]; then
        [ -d "$links/$part" ] || definitions koordinator github.com/koordinator-sh/koordinator "$links/$part" config/crd/bases >&2
        continue
    fi
    if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$part" ]; then
        ln -sfn "$KUBEBUILDER_ASSETS/$part" "$links/$part"
        continue
    fi
    module=$(module_of "$part")
    kept="$cache/parts/$module-$(pins "$module")"
    target="$kept/$part"
    if [ ! -x "$target" ]; then
        case $part in
            etcd) package=go.etcd.io/etcd/server/v3 stamped=$(kubernetes_flags "$(pinned kubernetes k8s.io/kubernetes)") ;;
            kube*) package="k8s.io/kubernetes/cmd/${part%-next}" stamped=$(kubernetes_flags "$(pinned "$module" k8s.io/kubernetes)") ;;
            helm)
                package=helm.sh/helm/v3/cmd/helm
                stamped="-s -w -X helm.sh/helm/v3/internal/version.version=$(pinned helm helm.sh/helm/v3)" ;;
            koord*) package="github.com/koordinator-sh/koordinator/cmd/$part" stamped="-s -w" ;;
            vc*)
                command=${part#vc-} package="volcano.sh/volcano/cmd/${command/vcctl/cli}"
                stamped="-s -w -X volcano.sh/volcano/pkg/version.Version=$(pinned volcano volcano.sh/volcano)" ;;
        esac
        echo "building $part ($package)" >&2
        started=$SECONDS
        mkdir -p "$kept"
        (cd "$here/$module" && CGO_ENABLED=0 go build -trimpath -ldflags "$stamped" -o "$target.partial" "$package")
        if [ "$part" = vc-controller-manager ]; then # it waits for kinds whose definitions come with its sources
            definitions volcano volcano.sh/volcano "$kept/volcano-definitions" config/crd/volcano/bases config/crd/jobflow/bases
        fi
        mv "$target.partial" "$target"
        echo "built $part in $((SECONDS - started)) s" >&2
    fi
    ln -sfn "$target" "$links/$part"
    if [ -d "$kept/volcano-definitions" ]; then # copies: kubectl does not follow a link to a directory
        mkdir -p "$links/volcano-definitions"
        cp -f "$kept"/volcano-definitions/*.yaml "$links/volcano-definitions"
    fi
done
echo "$links"
