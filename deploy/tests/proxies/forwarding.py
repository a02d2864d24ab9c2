"""Signed requests are forwarded unchanged, and the service sees the client's address."""

import json

from proxies import MAX_PER_ADDRESS
from wire import MEASUREMENTS, ROOT, read_response, ask, head_of, signed, signed_h2

MIB = 1_048_576

# Targets that proxies tend to normalize. The signature covers path, query and body, so a changed request gets `invalid_signature`.
# A normalized request could reach a resource that it must not reach.
TARGETS = [
    "/health",
    "/health?",
    "/inspections?limit=2&status=published",
    "/inspections?status=publi%73hed&limit=%32",
    "/inspections?&&limit=2&",
    "/inspections?published_from=2026-01-01T00%3A00%3A00%2B03%3A00",
    "/inspections?published_from=2026-01-01T00%3a00%3a00%2b03%3a00",
    "/inspections?published_from=2026-01-01T00:00:00+03:00",
    "/inspections?published_from=2026-01-01T00:00:00%20Z",
    "/inspections?limit=2&limit=2",
    "/inspections?limit=%zz",
    "/inspections?cursor=a/b//c?d=e",
    "/inspections?cursor=../../etc",
    "/inspections?cursor=%00",
    "/inspections?status='(published)'*~!$,;:@",
    "/health/",
    "//health",
    "/./health",
    "/x/../health",
    "/%68ealth",
    "/inspections/a%2Fb",
    "/inspections/a%2fb",
    "/inspections/%2e%2e/health",
    "/inspections/a+b%20c",
    "/inspections/%C4%B1",
    "/nothing",
]


def measurement(number, pad=0):
    """Returns a package with unusual white space and non-ASCII letters, padded to `pad` bytes."""
    text = '\t{ "plate" :\r\n"06 TST 4711" , "branch_code":"E1",\n\n"operator_name":"I\u015f\u0131k \\u0131", "external_id":"%s",'
    text += '"measurements":{"BRAKE_FRONT_LEFT": 2.850e0}  }\r\n '
    body = (text % f"E1-edge-{number}").encode()
    return body + b" " * (pad - len(body))


class Forwarding:
    """The checks of one proxy. Each returns the problems, or an empty string."""

    def __init__(self, proxy, service, key, limited_key):
        self.proxy, self.service, self.key, self.limited_key = proxy, service, key, limited_key

    def _number(self, kind, by):
        return f"{self.proxy.name}-{kind}-{by}"

    def every_target_gets_the_same_response_as_without_the_proxy(self):
        """Over HTTP/1.1 and HTTP/2."""
        problems = []
        for target in [b"//api/v1/partner/health", *(f"{ROOT}{path}".encode() for path in TARGETS)]:
            directly = signed(self.service.endpoint, self.key, "GET", target).comparable()
            through = signed(self.proxy.endpoint, self.key, "GET", target).comparable()
            version, by_h2 = signed_h2(self.proxy.endpoint, self.key, "GET", target)
            if version != "HTTP/2":
                problems.append(f"curl used {version} instead of HTTP/2")
            for how, response in (("HTTP/1.1", through), ("HTTP/2", by_h2.comparable())):
                if response != directly:
                    problems.append(f"{target.decode()} by {how}: {response} instead of {directly}")
        return "\n".join(problems)

    def every_body_arrives_byte_for_byte(self):
        """With a length, in chunks, and over HTTP/2; up to 1 MiB."""
        problems = []
        sizes = {"plain": 0, "1MiB": MIB}
        for name, pad in sizes.items():
            for by in ("directly", "length", "chunks", "h2"):
                body = measurement(self._number(name, by), pad)
                if by == "h2":
                    _, response = signed_h2(self.proxy.endpoint, self.key, "POST", MEASUREMENTS, body)
                else:
                    endpoint = self.service.endpoint if by == "directly" else self.proxy.endpoint
                    chunks = (1, 7, 100, 60_000) if by == "chunks" else None
                    response = signed(endpoint, self.key, "POST", MEASUREMENTS, body, chunks=chunks)
                if by == "directly":
                    expected = response.status
                if response.status != expected or expected not in (200, 201, 202):
                    problems.append(f"{name} by {by}: {response.status} {response.body[:300]!r}, {expected} without the proxy")
        return "\n".join(problems)

    def the_stored_bytes_are_the_sent_bytes(self):
        """Compares them with the output of `measurement raw`."""
        body = measurement(self._number("stored", "length"))
        response = signed(self.proxy.endpoint, self.key, "POST", MEASUREMENTS, body)
        stored = self.service.raw_measurement(json.loads(response.body)["data"]["measurement_id"])
        return "" if stored == body else f"stored {stored!r} instead of {body!r}"

    def a_too_large_body_is_rejected_in_the_envelope(self):
        """Tries one byte more than 1 MiB and a much larger body, with and without a length."""
        problems = []
        for size in (MIB + 1, 3 * MIB):
            for chunks in (None, (1, 60_000)):
                response = signed(self.proxy.endpoint, self.key, "POST", MEASUREMENTS, b" " * size, chunks=chunks)
                problem = response.envelope_problem(413, "payload_too_large")
                problems += [f"{size} bytes, chunks {chunks}: {problem}"] if problem else []
            response = signed_h2(self.proxy.endpoint, self.key, "POST", MEASUREMENTS, b" " * size)[1]
            problem = response.envelope_problem(413, "payload_too_large")
            problems += [f"{size} bytes over HTTP/2: {problem}"] if problem else []
        return "\n".join(problems)

    def proxy_errors_have_the_envelope(self):
        """nginx responds to invalid requests, and haproxy to a slow body. haproxy's responses to invalid requests cannot be
        configured."""
        if self.proxy.name == "haproxy":
            with self.proxy.endpoint.connect("127.0.2.20") as connection:
                connection.sendall(head_of("POST", b"/files/slow", [("Content-Length", "100")]) + b"{")
                return read_response(connection, "POST").envelope_problem(408, "request_timeout")
        problems = []
        for what, method, target, headers in (
            ("long headers", "GET", b"/files/a", [("X-Long", "x" * 40_000)]),
            ("a long target", "GET", b"/files/" + b"x" * 40_000, []),
            ("a method that is not served", "TRACE", b"/files/a", []),
            ("a path above the root", "GET", b"/../files", []),
            ("an invalid request line", "GET", b"/files /a", []),
        ):
            problem = ask(self.proxy.endpoint, method, target, headers).envelope_problem(400, "invalid_request")
            problems += [f"{what}: {problem}"] if problem else []
        return "\n".join(problems)

    def a_duplicate_header_arrives_twice(self):
        """So that the service rejects the request, and the proxy does not choose one of the values."""
        again = self.key.headers("GET", f"{ROOT}/health".encode())[2]
        response = signed(self.proxy.endpoint, self.key, "GET", f"{ROOT}/health".encode(), extra=[again])
        return response.envelope_problem(401, "missing_signature_headers")

    def the_allowlist_is_checked_against_the_real_client_address(self):
        """Forged headers have no effect."""
        target, allowed = f"{ROOT}/health".encode(), self.service.ALLOWED
        response = signed(self.proxy.endpoint, self.limited_key, "GET", target, source=allowed)
        problems = [] if response.status == 200 else [f"the allowed address: {response.status} {response.body[:200]!r}"]
        forgeries = [
            [],
            [("X-Forwarded-For", allowed)],
            [("X-Forwarded-For", allowed), ("x-forwarded-for", allowed)],
            [("X-Forwarded-For", f"{allowed}, 127.0.0.1")],
            [("X-Real-IP", allowed), ("Forwarded", f"for={allowed}")],
            # The client asks the proxy to remove the header.
            [("Connection", "X-Forwarded-For"), ("X-Forwarded-For", allowed)],
        ]
        # The service trusts 127.0.0.1. A proxy that appended to a forged header would let this client choose its address.
        for source in ("127.0.0.1", "127.0.0.78"):
            for forged in forgeries:
                response = signed(self.proxy.endpoint, self.limited_key, "GET", target, extra=forged, source=source)
                problem = response.envelope_problem(401, "invalid_key")
                if not problem and source not in response.error["message"]:
                    problem = f"the message names another address: {response.error['message']}"
                problems += [f"from {source} with {forged}: {problem}"] if problem else []
        return "\n".join(problems)

    def the_log_contains_paths_but_no_queries(self):
        """Checks the log of all previous requests."""
        lines = self.proxy.access_log()
        paths = [json.loads(line)["path"] for line in lines]
        problems = [line for line in lines for word in ("limit=", "published", "cursor=", "?") if word in line]
        if f"{ROOT}/inspections" not in paths or f"{ROOT}/%68ealth" not in paths:
            problems.append(f"the requested paths are missing: {sorted(set(paths))}")
        return "\n".join(problems)

    def checks(self):
        """Returns all checks. Their order matters."""
        assert MAX_PER_ADDRESS >= 2, "curl and this program use two connections"
        return [
            self.every_target_gets_the_same_response_as_without_the_proxy,
            self.every_body_arrives_byte_for_byte,
            self.the_stored_bytes_are_the_sent_bytes,
            self.a_too_large_body_is_rejected_in_the_envelope,
            self.proxy_errors_have_the_envelope,
            self.a_duplicate_header_arrives_twice,
            self.the_allowlist_is_checked_against_the_real_client_address,
            self.the_log_contains_paths_but_no_queries,
        ]
