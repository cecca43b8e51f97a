"""Makes `python -m papers` work."""

from papers.commands import papers_group

papers_group(prog_name="python -m papers")
