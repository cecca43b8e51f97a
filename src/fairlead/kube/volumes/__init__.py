"""Volume plugins, and what is known of volumes.

Reading order: `storage` (volumes, claims and classes by name), `pod_claims`, `binding` with `matching`, `errand`,
`scores` and `hints` (VolumeBinding), `restrictions`, `zone`, `limits` with `attached` and `disks`; `csi_migration`
translates in-tree volumes.

Further modules: node_limits.
"""
