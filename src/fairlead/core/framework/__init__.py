"""What a plugin author imports, and how the plugins of a profile are asked.

Reading order: plugin (Plugin and its extension points), cycle (what a plugin sees), verdicts and refusals (what it
answers), profile, evaluate (PreFilter to Score), points (the other extension points), gang. For Volcano's manner:
tier_plugin, tiers, round, job. results/ is the cache, which only those who care for speed need to open.
"""
