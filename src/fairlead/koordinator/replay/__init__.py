"""Replays of recorded decisions of Koordinator's scheduler. Reading order: `forms`, `replay`, `agreement`.

Further modules: gang_replay, quota_replay.
"""
