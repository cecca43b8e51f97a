"""The scheduler's core: records, the table, what plugins are written against, and the engine. No family's word is in
it.

Reading order: `model` (records and messages), `state` (the table and the ways to change it), `framework` (what a plugin
author imports), `engine` (the scheduler).
"""
