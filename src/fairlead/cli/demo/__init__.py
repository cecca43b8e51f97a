"""`fairlead demo`: command (the command and its three scenes), crowd (500 pods in real time), gang (a training job that
waits whole) and queues (two teams that share GPUs), both on virtual time.
"""
