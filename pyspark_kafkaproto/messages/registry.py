"""From an API's key or name to its versions and classes, each module loaded when first asked for.

What every API is called and which versions it has is in `apis`, which is generated.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, cast

from pyspark_kafkaproto.errors import LocalProtocolError
from pyspark_kafkaproto.messages.apis import APIS, Api
from pyspark_kafkaproto.wire.declaration import Request, Response

_BY_KEY = {api.key: api for api in APIS}
_BY_NAME = {api.name: api for api in APIS}


def find_api(key_or_name: int | str) -> Api | None:
    """The API with that key or name; None for one that no client uses, or that is newer."""
    if isinstance(key_or_name, int):
        return _BY_KEY.get(key_or_name)
    return _BY_NAME.get(key_or_name)


def key_of(name: str) -> int:
    """The key of an API that is known here; KeyError for another name."""
    return _BY_NAME[name].key


def request_class(api: int | str) -> type[Request]:
    """The request of an API, given by key or name; LocalProtocolError for an unknown one."""
    return cast("type[Request]", _load(api, "Request"))


def response_class(api: int | str | type[Request]) -> type[Response]:
    """What answers an API, given by key, name or request; LocalProtocolError for an unknown one."""
    known = api if isinstance(api, (int, str)) else api.API_KEY
    return cast("type[Response]", _load(known, "Response"))


@cache
def _load(key_or_name: int | str, role: str) -> Any:
    api = find_api(key_or_name)
    if api is None:
        raise LocalProtocolError(f"no API {key_or_name!r} is known here")
    return getattr(import_module(f"{__package__}.{api.module}"), api.name + role)
