"""Methods for parts of the very thing whose methods they are, which do not hold it.

A thing that holds itself in a circle is gone when garbage is collected, in a quiet process maybe
never: a member that nobody holds any more would stay in its group, and sockets stay open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar
from weakref import WeakMethod

_P = ParamSpec("_P")
_T = TypeVar("_T")


def weakly(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """`method`, for who is called by the thing itself alone."""
    known: WeakMethod[Callable[_P, _T]] = WeakMethod(method)

    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        found = known()
        assert found is not None  # noqa: S101 - it is calling
        return found(*args, **kwargs)

    return call
