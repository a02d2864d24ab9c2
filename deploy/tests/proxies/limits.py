"""Limits for slow, silent and greedy clients, and the behavior while the service is unavailable."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from proxies import TIME_LIMIT, MAX_PER_ADDRESS
from wire import MEASUREMENTS, ROOT, read_response, head_of, seconds_until_closed, signed

# Additional seconds for a busy machine.
SLACK = 6
HEALTH = f"{ROOT}/health".encode()
H2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"


class Limits:
    """The checks of one proxy. Each returns the problems, or an empty string. Each client has a different address."""

    def __init__(self, proxy, service, key):
        self.proxy, self.service, self.key = proxy, service, key

    def _closed(self, source, first=b"", drip=None, bound=TIME_LIMIT, **connect):
        """Sends `first` once and `drip` repeatedly. Returns a problem unless the proxy closes the connection in time."""
        with self.proxy.endpoint.connect(source, **connect) as connection:
            connection.sendall(first)
            took = seconds_until_closed(connection, bound + SLACK, drip)
        return "" if took is not None else f"still open after {bound + SLACK} s; the limit is {bound} s"

    def silent_and_slow_clients_are_disconnected(self):
        """Runs all slow clients at the same time."""
        unsigned = head_of("GET", b"/openapi.yaml", [])
        long = b" " * 100_000
        signed_head = head_of(
            "POST", MEASUREMENTS, [*self.key.headers("POST", MEASUREMENTS, long), ("Content-Length", len(long))]
        )
        clients = {
            "no handshake": {"source": "127.0.2.1", "handshake": False},
            "no request after the handshake": {"source": "127.0.2.2"},
            "an endless head, byte by byte": {
                "source": "127.0.2.3",
                "first": b"GET / HTTP/1.1\r\nX: ",
                "drip": b"x",
            },
            "no further request after a response": {"source": "127.0.2.4", "first": unsigned, "bound": 2 * TIME_LIMIT},
            "a third of a long body": {"source": "127.0.2.12", "first": signed_head + long[:30_000]},
            "HTTP/2 without a request": {"source": "127.0.2.5", "first": H2_PREFACE, "protocols": ("h2",)},
            "half an HTTP/2 preface": {"source": "127.0.2.6", "first": H2_PREFACE[:9], "protocols": ("h2",)},
        }
        with ThreadPoolExecutor(len(clients)) as pool:
            outcomes = pool.map(lambda client: self._closed(**client), clients.values())
            return "\n".join(f"{client}: {problem}" for client, problem in zip(clients, outcomes) if problem)

    def an_incomplete_body_is_cut_off_and_never_reaches_the_service(self):
        """haproxy limits the total time of a body, and nginx each pause."""
        # No other client uses this address, so the service's log shows what has reached it.
        source = "127.0.2.17" if self.proxy.name == "haproxy" else "127.0.2.7"
        drip = b" " if self.proxy.name == "haproxy" else None
        problem = self._closed(source, head_of("POST", b"/files/a", [("Content-Length", "10000")]) + b"{", drip)
        if problem:
            return problem
        # A complete request afterwards must appear in the log.
        whole = head_of("POST", b"/files/a", [("Content-Length", "1"), ("Connection", "close")]) + b"{"
        with self.proxy.endpoint.connect(source) as connection:
            connection.sendall(whole)
            read_response(connection, "POST")
        for _ in range(50):
            reached = self.service.logged().count(f'"address":"{source}"')
            if reached:
                return "" if reached == 1 else "the service has seen the request"
            time.sleep(0.1)
        return "the service did not log the complete request"

    def one_address_is_limited_and_others_are_served(self):
        """Sends as many unfinished requests as one address may have, and one more."""
        for _ in range(5):
            held = [self.proxy.endpoint.connect("127.0.2.8") for _ in range(MAX_PER_ADDRESS)]
            try:
                for connection in held:
                    connection.sendall(head_of("POST", MEASUREMENTS, [("Content-Length", "10000")]) + b"{")
                try:
                    more = signed(self.proxy.endpoint, self.key, "GET", HEALTH, source="127.0.2.8")
                except OSError:
                    more = None
                other = signed(self.proxy.endpoint, self.key, "GET", HEALTH, source="127.0.2.9")
                # On a busy machine, these requests may have timed out, which makes the result meaningless.
                if all(seconds_until_closed(connection, 0.02, every=0.01) is None for connection in held):
                    break
            finally:
                for connection in held:
                    connection.close()
        else:
            return "the machine is too busy: the open requests timed out before the next one was sent"
        if other.status != 200:
            return f"another address: {other.status} {other.body[:200]!r}"
        # haproxy closes the connection; nginx accepts it and responds with 429.
        if self.proxy.name == "haproxy":
            return "" if more is None else f"the connection beyond the limit got a response: {more.status}"
        return more.envelope_problem(429, "ip_rate_limited") if more else "the request beyond the limit got no response"

    def _rejected_in_time(self, source):
        began = time.monotonic()
        response = signed(self.proxy.endpoint, self.key, "GET", HEALTH, source=source)
        took = time.monotonic() - began
        problem = response.envelope_problem(503, "service_unavailable")
        if not problem and not response.headers.get("Retry-After"):
            problem = "Retry-After is missing"
        return problem or ("" if took < TIME_LIMIT + SLACK else f"the response took {took:.1f} s")

    def _served_again(self, source):
        began, response = time.monotonic(), None
        while time.monotonic() - began < 20:
            response = signed(self.proxy.endpoint, self.key, "GET", HEALTH, source=source)
            if response.status == 200:
                return ""
            time.sleep(0.2)
        return f"{response.status} {response.body[:200]!r}, 20 s after the service was back"

    def _draining_noticed(self, source):
        """A draining service still serves. haproxy notices that it is not ready, and uses the backup server line."""
        for _ in range(100):
            response = signed(self.proxy.endpoint, self.key, "GET", HEALTH, source=source)
            if response.status != 200:
                return f"{response.status} {response.body[:200]!r}"
            if self.proxy.name != "haproxy" or "ready_or_not" in self.proxy.access_log()[-1]:
                return ""
            time.sleep(0.2)
        return "haproxy did not notice within 20 s that the service is not ready"


def an_unavailable_service_gets_503_in_time_and_is_used_again(service, all_limits):
    """Checks all proxies at once, because they share the service. Returns the problems of each."""
    problems = {limits.proxy.name: [] for limits in all_limits}

    def each(when, check):
        def one(limits):
            problem = check(limits)
            if problem:
                problems[limits.proxy.name].append(f"{when}: {problem}")

        threads = [threading.Thread(target=one, args=(limits,)) for limits in all_limits]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    service.suspend()
    each("while it hangs", lambda limits: limits._rejected_in_time("127.0.2.10"))
    service.resume()
    each("after it hung", lambda limits: limits._served_again("127.0.2.10"))
    service.drain()
    each("while it drains", lambda limits: limits._draining_noticed("127.0.2.10"))
    service.stop()
    each("while it is stopped", lambda limits: limits._rejected_in_time("127.0.2.11"))
    service.start()
    each("after it was stopped", lambda limits: limits._served_again("127.0.2.11"))
    return problems
