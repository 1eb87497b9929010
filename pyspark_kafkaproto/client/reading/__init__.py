"""Reading from leaders, from ranges of offsets to Arrow.

`ranges` says what to read, `directory` where it lies. `requests` makes a Fetch, `exchange` sends it
and says what its answer means, `fetch` and `coming` read a task's ranges with that, large answers
while they come, into the `memory` that all answers share. A `block` is what one answer has of one
range; `decode` makes Arrow record batches of it, with threads `beside`. `loss` decides about
records that are gone, `progress` is how far a range has been read, `probe` how large its records
are.
"""
