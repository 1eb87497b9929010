"""What is refused of several things that a command shows: the others are shown all the same.

Only for what changes nothing: commands that do ask what is there first, and then do all or nothing
of it, as far as that can be known. They name each that is refused, too: `all_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any, TypeVar

from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError, joined
from pyspark_kafkaproto.net.retry import is_retriable

_K = TypeVar("_K")
_T = TypeVar("_T")


def merged(answers: Iterable[Mapping[_K, _T]]) -> dict[_K, _T]:
    """One mapping of what several answers have."""
    return {key: value for answer in answers for key, value in answer.items()}


def all_of(things: Iterable[_K], ask: Callable[[set[_K]], _T]) -> _T:
    """What `ask` answers about all things.

    Raises:
        BrokerError: of the first that is refused; names each other one, too.
    """
    names = set(things)
    refused = Refused()
    told = refused.each(sorted(names, key=str), ask)
    refused.tell()
    # Else each was there when it was asked about by itself.
    return told[0] if len(told) == 1 else ask(names)


class Refused:
    """The errors of things that were asked for, told once the rest is shown."""

    def __init__(self) -> None:
        self._errors: list[KafkaProtoError] = []

    def __bool__(self) -> bool:
        return bool(self._errors)

    def each(self, things: Iterable[_K], ask: Callable[[set[_K]], _T]) -> list[_T]:
        """What `ask` answers: about all things at once, or about each where that is refused.

        So each that is refused has an error of its own, and brokers are asked once where all is
        well. Only brokers' refusals are about one thing: any other error is raised, and so is what
        was waited for in vain, which with each thing would take as long again.
        """
        names = list(dict.fromkeys(things))
        try:
            return [ask(set(names))]
        except BrokerError as error:
            if is_retriable(error) and error.patience_s == inf:
                raise
            if len(names) == 1:
                self.note(error)
                return []
        answers = []
        for name in names:
            answers += self.each((name,), ask)
        return answers

    def others(self, ask: Callable[[], Mapping[_K, _T]]) -> Mapping[_K, _T]:
        """The same where the error has what was answered about the others."""
        try:
            return ask()
        except BrokerError as error:
            self.note(error)
            usable: Mapping[Any, Any] = error.usable or {}
            return usable

    def known(self, ask: Callable[[], Mapping[_K, _T]]) -> Mapping[_K, _T]:
        """What `ask` answers; where some of it was waited for in vain, the rest."""
        try:
            return ask()
        except KafkaProtoError as error:
            is_final = isinstance(error, BrokerError) and not is_retriable(error)
            if is_final or not error.usable:
                raise
            self.note(error)
            usable: Mapping[Any, Any] = error.usable
            return usable

    def tell(self) -> None:
        """Raise the first, which names all others too.

        Raises:
            KafkaProtoError: anything was refused, or was waited for in vain.
        """
        if self._errors:
            raise joined(self._errors)

    def note(self, error: KafkaProtoError) -> None:
        """Have it told, once: several groups may be refused for the same topic."""
        if str(error) not in map(str, self._errors):
            self._errors.append(error)
