"""Koordinator's part of a KubeSchedulerConfiguration: which plugins there are, their arguments, and how they are made.

Reading order: `shapes` (fields that the file may have), `finish` (quirks and gates of a profile), `factories`
(plugins), `preset`.
"""
