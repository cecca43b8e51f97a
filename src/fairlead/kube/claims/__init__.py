"""DynamicResources: pods get the devices that their resource claims request.

Reading order: `plugin` (the extension points), `pod_claims` (which claims a pod has), `search` (one search for devices
on one node) with its rules `capacity` and `constraints`, `solutions` (what searches found, shared by nodes that are
alike), `results` (allocations as they go into the API), `extended` (extended resources that device classes serve) and
`errand` (writing it all down).

Further modules: claimants, conditions, counting, device_views, explaining, hints, lacks, lookahead, plan, rows,
selecting, signatures, taken, trials, uses.
"""
