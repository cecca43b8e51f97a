//go:build tools

// Package tools pins the Volcano that `make test-kube` builds: go.mod names the
// versions, go.sum their hashes. Nothing here is ever run.
package tools

import (
	_ "volcano.sh/volcano/cmd/cli"
	_ "volcano.sh/volcano/cmd/controller-manager"
	_ "volcano.sh/volcano/cmd/scheduler"
)
