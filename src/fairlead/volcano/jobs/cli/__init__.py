"""`fairlead job`: Volcano Jobs for people. commands (what can be typed) -> new_job, waiting, tables, progress.

Modules: gpus.
"""
