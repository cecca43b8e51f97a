//go:build tools

// Package tools pins kubeadm, which writes the static pod of kube-scheduler that
// a test changes as docs/real-cluster.md says. It has a module of its own so
// that its pins leave those of the control plane as they are.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kubeadm"
)
