"""What the readers of configuration files share, whichever scheduler a file is for.

Reading order: yaml_text and source (YAML with lines), problems (what is wrong with a file, and where), shapes (which
fields a file may have, and the decoder of all files), watcher (a file that changes), setup (what a family makes of its
flags and its file).

Further modules: factories.
"""
