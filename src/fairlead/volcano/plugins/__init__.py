"""Volcano's plugins, one per file: policies that are asked tier by tier in a round."""
