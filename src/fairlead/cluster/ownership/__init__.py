"""Server-side apply: who owns which field of an object, and what may happen to it.

Modules: fieldsets, managers, merging, shape, versions.
"""
