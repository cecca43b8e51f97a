//go:build tools

// Package tools pins the Koordinator that `make test-kube` builds: go.mod names the
// versions, go.sum their hashes. Nothing here is ever run.
package tools

import (
	_ "github.com/koordinator-sh/koordinator/cmd/koord-scheduler"
)
