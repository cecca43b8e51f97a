"""What an experiment consists of: cluster, loads, policies, what to measure, seeds, and when to stop.

Reading order: `records.py` has the fields, the same in YAML and in Python; `decoding.py` turns a document into them;
`reading.py` reads a file; `drawing.py` draws from distributions; `jobs.py` and `traces.py` make the jobs of a load;
`queues.py` counts out queues, `fleet.py` makes the nodes and `policies.py` the schedulers.

Further modules: batch_policies, csv_lines, documents, feasibility, gpu_policies, paper_traces, recorded_jobs.
"""
