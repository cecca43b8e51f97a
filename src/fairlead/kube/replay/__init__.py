"""Recordings of schedulers, and replays that decide them again.

Reading order: recording (the format), replay (decisions of kube-scheduler) with commit_order and claim_replay,
volcano_replay (rounds), story_replay (lives of Volcano Jobs), koordinator/; recorder makes recordings of a cluster that
runs.
"""
