"""What was signed passes untouched, and who asked is known."""

import json

from proxies import CAP
from wire import MEASUREMENTS, ROOT, answer_on, ask, head_of, signed, signed_h2

MIB = 1_048_576

# Everything that a proxy likes to tidy up. The signature covers path, query and body: whatever is changed on the way is
# answered `invalid_signature`, and what is tidied up reaches a resource that it must not reach.
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
    """A package in which every byte counts: white space of all kinds, letters beyond ASCII; `pad` bytes long if told."""
    text = '\t{ "plate" :\r\n"06 TST 4711" , "branch_code":"E1",\n\n"operator_name":"I\u015f\u0131k \\u0131", "external_id":"%s",'
    text += '"measurements":{"BRAKE_FRONT_LEFT": 2.850e0}  }\r\n '
    body = (text % f"E1-edge-{number}").encode()
    return body + b" " * (pad - len(body))


class Passing:
    """The checks of one proxy; each returns what is wrong, or nothing."""

    def __init__(self, proxy, service, key, limited_key):
        self.proxy, self.service, self.key, self.limited_key = proxy, service, key, limited_key

    def _number(self, kind, by):
        return f"{self.proxy.name}-{kind}-{by}"

    def every_target_is_answered_as_without_the_proxy(self):
        """HTTP/1.1 and HTTP/2."""
        wrong = []
        for target in [b"//api/v1/partner/health", *(f"{ROOT}{path}".encode() for path in TARGETS)]:
            directly = signed(self.service.door, self.key, "GET", target).comparable()
            through = signed(self.proxy.door, self.key, "GET", target).comparable()
            version, by_h2 = signed_h2(self.proxy.door, self.key, "GET", target)
            if version != "HTTP/2":
                wrong.append(f"HTTP/2 was asked for, {version} was spoken")
            for how, answer in (("HTTP/1.1", through), ("HTTP/2", by_h2.comparable())):
                if answer != directly:
                    wrong.append(f"{target.decode()} by {how}: {answer} in place of {directly}")
        return "\n".join(wrong)

    def every_body_arrives_byte_for_byte(self):
        """With a length, in chunks, over HTTP/2; up to 1 MiB."""
        wrong = []
        sizes = {"plain": 0, "1MiB": MIB}
        for name, pad in sizes.items():
            for by in ("directly", "length", "chunks", "h2"):
                body = measurement(self._number(name, by), pad)
                if by == "h2":
                    _, answer = signed_h2(self.proxy.door, self.key, "POST", MEASUREMENTS, body)
                else:
                    door = self.service.door if by == "directly" else self.proxy.door
                    chunks = (1, 7, 100, 60_000) if by == "chunks" else None
                    answer = signed(door, self.key, "POST", MEASUREMENTS, body, chunks=chunks)
                if by == "directly":
                    expected = answer.status
                if answer.status != expected or expected not in (200, 201, 202):
                    wrong.append(f"{name} by {by}: {answer.status} {answer.body[:300]!r}, {expected} without the proxy")
        return "\n".join(wrong)

    def the_stored_bytes_are_those_that_were_sent(self):
        """As `measurement raw` prints them."""
        body = measurement(self._number("stored", "length"))
        answer = signed(self.proxy.door, self.key, "POST", MEASUREMENTS, body)
        stored = self.service.raw_measurement(json.loads(answer.body)["data"]["measurement_id"])
        return "" if stored == body else f"{stored!r} is stored, {body!r} was sent"

    def a_body_that_is_too_long_is_refused_in_the_envelope(self):
        """One byte more than 1 MiB, announced or not, is the service's to refuse; so is what is far longer."""
        wrong = []
        for size in (MIB + 1, 3 * MIB):
            for chunks in (None, (1, 60_000)):
                answer = signed(self.proxy.door, self.key, "POST", MEASUREMENTS, b" " * size, chunks=chunks)
                problem = answer.envelope_problem(413, "payload_too_large")
                wrong += [f"{size} bytes, chunks {chunks}: {problem}"] if problem else []
            answer = signed_h2(self.proxy.door, self.key, "POST", MEASUREMENTS, b" " * size)[1]
            problem = answer.envelope_problem(413, "payload_too_large")
            wrong += [f"{size} bytes over HTTP/2: {problem}"] if problem else []
        return "\n".join(wrong)

    def its_own_refusals_have_the_envelope(self):
        """Of nginx what is no request; haproxy answers that before it reads its rules, but is late with a slow body."""
        if self.proxy.name == "haproxy":
            with self.proxy.door.connect("127.0.2.20") as connection:
                connection.sendall(head_of("POST", b"/files/slow", [("Content-Length", "100")]) + b"{")
                return answer_on(connection, "POST").envelope_problem(408, "request_timeout")
        wrong = []
        for what, method, target, headers in (
            ("a long head", "GET", b"/files/a", [("X-Long", "x" * 40_000)]),
            ("a long target", "GET", b"/files/" + b"x" * 40_000, []),
            ("a method that is not served", "TRACE", b"/files/a", []),
            ("a path above the root", "GET", b"/../files", []),
            ("a line that is none", "GET", b"/files /a", []),
        ):
            problem = ask(self.proxy.door, method, target, headers).envelope_problem(400, "invalid_request")
            wrong += [f"{what}: {problem}"] if problem else []
        return "\n".join(wrong)

    def a_header_that_is_sent_twice_arrives_twice(self):
        """So that the service refuses it, and no proxy chooses one of the two."""
        again = self.key.headers("GET", f"{ROOT}/health".encode())[2]
        answer = signed(self.proxy.door, self.key, "GET", f"{ROOT}/health".encode(), extra=[again])
        return answer.envelope_problem(401, "missing_signature_headers")

    def the_allowlist_sees_the_client(self):
        """And nobody else's word for it."""
        target, allowed = f"{ROOT}/health".encode(), self.service.ALLOWED
        answer = signed(self.proxy.door, self.limited_key, "GET", target, source=allowed)
        wrong = [] if answer.status == 200 else [f"the address of the list: {answer.status} {answer.body[:200]!r}"]
        forgeries = [
            [],
            [("X-Forwarded-For", allowed)],
            [("X-Forwarded-For", allowed), ("x-forwarded-for", allowed)],
            [("X-Forwarded-For", f"{allowed}, 127.0.0.1")],
            [("X-Real-IP", allowed), ("Forwarded", f"for={allowed}")],
            # A header that the client has the proxy take away.
            [("Connection", "X-Forwarded-For"), ("X-Forwarded-For", allowed)],
        ]
        # 127.0.0.1 is what the service trusts: whoever appends to a stranger's header makes a stranger of the proxy there.
        for source in ("127.0.0.1", "127.0.0.78"):
            for forged in forgeries:
                answer = signed(self.proxy.door, self.limited_key, "GET", target, extra=forged, source=source)
                problem = answer.envelope_problem(401, "invalid_key")
                if not problem and source not in answer.error["message"]:
                    problem = f"the message names another address: {answer.error['message']}"
                wrong += [f"from {source} with {forged}: {problem}"] if problem else []
        return "\n".join(wrong)

    def the_log_holds_paths_and_no_queries(self):
        """Of all that was asked so far."""
        lines = self.proxy.access_log()
        paths = [json.loads(line)["path"] for line in lines]
        wrong = [line for line in lines for word in ("limit=", "published", "cursor=", "?") if word in line]
        if f"{ROOT}/inspections" not in paths or f"{ROOT}/%68ealth" not in paths:
            wrong.append(f"the paths that were asked for are not there: {sorted(set(paths))}")
        return "\n".join(wrong)

    def checks(self):
        """In this order, one after the other."""
        assert CAP >= 2, "curl and this are two"
        return [
            self.every_target_is_answered_as_without_the_proxy,
            self.every_body_arrives_byte_for_byte,
            self.the_stored_bytes_are_those_that_were_sent,
            self.a_body_that_is_too_long_is_refused_in_the_envelope,
            self.its_own_refusals_have_the_envelope,
            self.a_header_that_is_sent_twice_arrives_twice,
            self.the_allowlist_sees_the_client,
            self.the_log_holds_paths_and_no_queries,
        ]
