"""What `bench/read.py` is made of: workloads, the programs it runs, what it prints."""
