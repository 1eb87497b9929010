"""Whether a thread gets on beside one that polls without waiting."""

from __future__ import annotations

import threading
from pathlib import Path

_TURNS = 300


def polls_per_turn(consumer):
    """How often `consumer` is polled for each time that another thread gets the interpreter.

    The most of some tries but for one: in which order two threads wake up is luck, and a machine
    that others use may leave the other thread out once.
    """
    return sorted(_polls_beside_another(consumer) for _ in range(8))[-2] / _TURNS


def _polls_beside_another(consumer):
    def give_it_up_often():
        for _ in range(_TURNS):
            Path().stat()

    other = threading.Thread(target=give_it_up_often)
    other.start()
    polls = 0
    while other.is_alive():
        consumer.poll(0)
        polls += 1
    return polls
