"""Replays of recorded decisions of Koordinator's scheduler. Reading order: `forms`, `replay`, `agreement`."""
