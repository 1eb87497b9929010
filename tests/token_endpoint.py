"""A token endpoint on loopback: the client-credentials grant, tokens that nobody signed."""

from __future__ import annotations

import base64
import http.server
import json
import ssl
import threading
import time
import urllib.parse
from typing import Any, Self


def token_for(subject: str, life_s: int = 3600) -> str:
    """An unsecured token, as Kafka's development validator takes it."""
    now = int(time.time())
    parts = ({"alg": "none"}, {"sub": subject, "iat": now, "exp": now + life_s})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts]
    return ".".join(part.rstrip("=") for part in encoded) + "."


class TokenEndpoint:
    """Gives tokens for the client id as subject, to who knows `secret`.

    With `pem_file`, its key and certificate, it speaks TLS.

    Attributes:
        asked: the forms that were posted.
        answers: what to say instead, in order: (status, headers, body).
    """

    def __init__(self, secret: str, pem_file: str | None = None) -> None:
        self.secret = secret
        self.asked: list[dict[str, str]] = []
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                form = dict(urllib.parse.parse_qsl(self.rfile.read(length).decode()))
                endpoint.asked.append(form)
                status, headers, body = endpoint._answer(self.headers["Authorization"])
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if pem_file:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pem_file)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "https" if pem_file else "http"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}/token"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()

    def _answer(self, authorization: str) -> tuple[int, dict[str, str], bytes]:
        if self.answers:
            return self.answers.pop(0)
        given = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        client, _, secret = given.partition(":")
        if secret != self.secret:
            return 401, {}, b'{"error": "invalid_client"}'
        return 200, {}, json.dumps({"access_token": token_for(client)}).encode()
