"""Sends requests as exact bytes, and reads complete responses."""

import http.client
import io
import json
import os
import socket
import ssl
import subprocess
import sys
import time
from dataclasses import dataclass

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "..", "samples", "python"))
import partner

ROOT = "/api/v1/partner"
MEASUREMENTS = f"{ROOT}/test-line/measurements".encode()
HOST = "api.example.org"


class Skipped(Exception):
    """A check cannot run here; the message is the reason."""


@dataclass(frozen=True)
class Endpoint:
    """A destination of requests: the service itself, or a proxy with TLS."""

    name: str
    port: int
    tls: ssl.SSLContext | None = None
    certificate: str = ""
    host: str = HOST

    @property
    def authority(self):
        """The host and port, as browsers send them in `Host` and `Origin`."""
        return f"{self.host}:{self.port}"

    def connect(self, source="127.0.0.1", timeout=20.0, protocols=("http/1.1",), handshake=True):
        """Connects from a loopback address."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout, (source, 0))
        if self.tls is None or not handshake:
            return connection
        context = ssl.create_default_context(cafile=self.certificate)
        context.set_alpn_protocols(list(protocols))
        return context.wrap_socket(connection, server_hostname=self.host)


@dataclass(frozen=True)
class Response:
    """A response."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def error(self):
        """The error in the envelope; empty if there is none."""
        try:
            return json.loads(self.body)["error"]
        except (ValueError, KeyError, TypeError):
            return {}

    def comparable(self):
        """Returns the parts that must be equal with and without a proxy: everything except IDs and times."""
        try:
            body = json.loads(self.body)
        except ValueError:
            body = self.body
        if isinstance(body, dict):
            for changing in ("request_id", "server_time", "id", "measurement_id", "received_at"):
                body.pop(changing, None)
                for inner in body.values():
                    if isinstance(inner, dict):
                        inner.pop(changing, None)
        return self.status, self.headers.get("Content-Type"), self.headers.get("ETag"), body

    def envelope_problem(self, status, code):
        """Returns the problem of an error response, or an empty string."""
        if (self.status, self.error.get("code")) != (status, code):
            return f"{self.status} {self.body[:200]!r} instead of {status} {code}"
        if not self.error.get("request_id") or self.headers.get_all("X-Request-Id") != [self.error["request_id"]]:
            return f"X-Request-Id {self.headers.get_all('X-Request-Id')} and {self.error.get('request_id')} differ"
        return ""


@dataclass(frozen=True)
class Key:
    """A partner's key."""

    key_id: str
    secret: str

    def headers(self, method, target, body=b""):
        """Returns the four signature headers of a request."""
        # The server's address is not signed.
        signer = partner.Partner("http://127.0.0.1", self.key_id, self.secret)
        try:
            return list(signer.signed_headers(method, target, body).items())
        except partner.MalformedQuery:
            # The query has no canonical form, so the headers of another request are used.
            return list(signer.signed_headers(method, b"/", body).items())


def head_of(method, target, headers, host=HOST):
    """Returns a request's head as bytes."""
    lines = [b"%s %s HTTP/1.1" % (method.encode(), target), b"Host: " + host.encode()]
    lines += [f"{name}: {value}".encode() for name, value in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def read_response(connection, method):
    """Reads one response."""
    response = http.client.HTTPResponse(connection, method=method)
    response.begin()
    return Response(response.status, response.headers, response.read())


def ask(endpoint, method, target, headers=(), body=b"", chunks=None, source="127.0.0.1", host=HOST):
    """Sends a request on a new connection, and returns the response. `chunks` are the sizes of the body's chunks."""
    headers = [*headers, ("Connection", "close")]
    if chunks:
        headers.append(("Transfer-Encoding", "chunked"))
        parts, rest = [], body
        for size in chunks:
            parts, rest = [*parts, rest[:size]], rest[size:]
        sent = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in [*parts, rest] if part) + b"0\r\n\r\n"
    else:
        sent = body
        if body:
            headers.append(("Content-Length", str(len(body))))
    with endpoint.connect(source) as connection:
        try:
            connection.sendall(head_of(method, target, headers, host) + sent)
        except OSError:
            pass  # The server responded early; the response can still be read.
        return read_response(connection, method)


def signed(endpoint, key, method, target, body=b"", extra=(), chunks=None, source="127.0.0.1"):
    """Sends a signed request."""
    headers = [*key.headers(method, target, body), *extra]
    if body:
        headers.append(("Content-Type", "application/json"))
    return ask(endpoint, method, target, headers, body, chunks, source)


def signed_h2(endpoint, key, method, target, body=b"", folder="."):
    """Sends a signed request over HTTP/2 with curl. Returns the protocol version and the response."""
    command = [
        "curl",
        "--silent",
        "--show-error",
        "--http2",
        "--path-as-is",
        "--globoff",
        "--max-time",
        "20",
        "--include",
    ]
    command += ["--cacert", endpoint.certificate, "--connect-to", f"{HOST}:443:127.0.0.1:{endpoint.port}", "--request", method]
    for name, value in key.headers(method, target, body):
        command += ["--header", f"{name}: {value}"]
    if body:
        command += ["--header", "Content-Type: application/json", "--data-binary", "@-"]
    done = subprocess.run(command + [f"https://{HOST}".encode() + target], input=body, capture_output=True, cwd=folder)
    if done.returncode:
        raise OSError(f"curl: {done.stderr.decode().strip()}")
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    line, _, fields = head.partition(b"\r\n")
    return line.split()[0].decode(), Response(
        int(line.split()[1]), http.client.parse_headers(io.BytesIO(fields + b"\r\n\r\n")), body
    )


def seconds_until_closed(connection, limit, drip=None, every=0.2):
    """Returns the seconds until the peer closes, or None if it does not within `limit` seconds. Sends `drip` meanwhile."""
    began = time.monotonic()
    connection.settimeout(every)
    while time.monotonic() - began < limit:
        try:
            if drip is not None:
                connection.sendall(drip)
            if not connection.recv(65536):
                return time.monotonic() - began
        except (TimeoutError, ssl.SSLWantReadError):
            continue
        except OSError:
            return time.monotonic() - began
    return None
