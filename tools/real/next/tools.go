//go:build tools

// Package tools pins the parts of the next Kubernetes that some suites of `make test-kube` build:
// go.mod names the versions, go.sum their hashes. Nothing here is ever run.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)
