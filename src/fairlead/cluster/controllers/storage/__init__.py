"""PersistentVolumes and claims: volume_binder with volume_matches, volume_provisioner, ephemeral_volumes."""
