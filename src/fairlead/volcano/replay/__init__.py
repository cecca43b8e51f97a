"""Replays what was recorded from Volcano and compares.

The forms of recordings: `forms`. Rounds: `replay`, `room`, `trail`. Lives of Jobs: `story_world`, `story_replay`,
`story_view`, `story_agreement`.
"""
