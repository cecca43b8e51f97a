"""Answers that are acted on: random clusters with workloads (`worlds.py`), and somebody who does what is printed
(`follower.py`)."""
