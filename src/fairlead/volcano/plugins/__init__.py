"""Volcano's plugins, one per file: policies that are asked tier by tier in a round.

Modules: binpack, catalogue, cdp, conformance, extender, extender_bodies, gang, nodegroup, nodeorder, pdb, predicates,
priority, rescheduling, resource_strategy_fit, resourcequota, sla, tdm, usage.
"""
