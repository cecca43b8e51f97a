//go:build tools

// Package tools pins the Helm that `make test-kube` builds: go.mod names the
// version, go.sum the hashes. Nothing here is ever run.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
