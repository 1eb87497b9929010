"""Errors about arguments of Python's calls, told in the words that were typed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click

from pyspark_kafkaproto.errors import ConfigError

# The first word of `[GROUP]…` or `TOPIC[:PARTITION,…]…`.
_WORD = re.compile(r"\[?([A-Z_]+)")
# How an error sends one to another argument: `use data_dir=`.
_OTHER = re.compile(r"(?<=\buse )(\w+)=")


def as_typed(**words: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have a command's errors name its options: `--start-offset`, not `start_offset`.

    Args:
        words: what was typed for arguments of Python's that have a name of their own.
    """

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(*arguments: Any, **options: Any) -> Any:
            with naming_typed(words):
                return command(*arguments, **options)

        return run

    return decorated


@contextmanager
def naming_typed(words: Mapping[str, str]) -> Iterator[None]:
    """`as_typed`, for what is run inside; the command is the one that click runs."""
    try:
        yield
    except ConfigError as error:
        typed = _typed(error.option, words)
        if typed is None:
            raise
        allowed = _OTHER.sub(lambda found: _typed(found[1], words) or found[0], error.allowed)
        raise ConfigError(typed, error.value, allowed) from error


def _typed(name: str, words: Mapping[str, str]) -> str | None:
    """What was typed for an argument; None: none of the command's options or arguments is it."""
    if name in words:
        return words[name]
    for param in click.get_current_context().command.params:
        if isinstance(param, click.Option):
            option = max(param.opts, key=len)
            if name == param.name or option == f"--{name}":
                return option
            continue
        word = _WORD.match(param.metavar or str(param.name).upper())
        if word is not None and word[1] == name.upper():
            return word[1]
    return None
