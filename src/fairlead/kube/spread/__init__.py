"""PodTopologySpread: `plugin` (filter), `rows` (counts per domain), `scores`, `hints`; `golog` is Go's logarithm."""
