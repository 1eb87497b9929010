"""What `bench/captures.py` is made of: captures of any size, and the command that reads them."""
