"""NodeShards: `shard_policies` (who gets which nodes), `controller`."""
