"""The result cache: what plugins said of the rows, kept per kind of pod and brought up to date row by row.

Nothing here changes a decision; a reader who does not care for speed need not open it. docs/result-cache.md explains
the words. Reading order: cached_plugin (what a plugin promises so that its answers can be kept), pod_parts (what it
reads of a pod), cache (which pods share results), plan (a profile's plugins, sorted by how they are cached), shared and
signature (the results of one shared key and of one signature), columns (answers as arrays over the rows), constant (the
part of a score that all rows share).
"""
