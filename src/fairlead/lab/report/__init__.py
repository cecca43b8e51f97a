"""From tables to figures: `metrics.py` computes one number per run and measure, with intervals and paired differences;
`figures.py` makes figures as data; `drawing.py` draws them; `page.py` writes the HTML file, and a CSV of each figure.

Modules: gang_waits, sentences.
"""
