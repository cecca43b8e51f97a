"""What clients saw of a server, and whether one history of its objects explains it. Who judges imports nothing of it.

Reading order: record (what was seen), checker (what must hold), clients (writers and watchers that record it).
"""
