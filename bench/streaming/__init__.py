"""What `bench/stream.py` is made of: the application it runs, the floor, its measures."""
