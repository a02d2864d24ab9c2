"""Who is slow, silent or greedy is cut; who is not is served meanwhile, and again when the service is back."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from proxies import BOUND, CAP
from wire import MEASUREMENTS, ROOT, answer_on, head_of, seconds_until_closed, signed

# What a busy machine may take beyond a bound.
SLACK = 6
HEALTH = f"{ROOT}/health".encode()
H2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"


class Bounds:
    """The checks of one proxy; each returns what is wrong, or nothing. Each client has an address of its own."""

    def __init__(self, proxy, service, key):
        self.proxy, self.service, self.key = proxy, service, key

    def _closed(self, source, first=b"", drip=None, bound=BOUND, **connect):
        """What is wrong unless the proxy closes a connection on which `first` is sent, and `drip` again and again."""
        with self.proxy.door.connect(source, **connect) as connection:
            connection.sendall(first)
            took = seconds_until_closed(connection, bound + SLACK, drip)
        return "" if took is not None else f"still open after {bound + SLACK} s, though {bound} s are the bound"

    def silent_and_slow_clients_are_cut(self):
        """Each as it wastes time, all at the same time."""
        unsigned = head_of("GET", b"/openapi.yaml", [])
        long = b" " * 100_000
        signed_head = head_of(
            "POST", MEASUREMENTS, [*self.key.headers("POST", MEASUREMENTS, long), ("Content-Length", len(long))]
        )
        clients = {
            "nothing, not even a handshake": {"source": "127.0.2.1", "handshake": False},
            "a handshake and nothing more": {"source": "127.0.2.2"},
            "a head, byte by byte, without end": {
                "source": "127.0.2.3",
                "first": b"GET / HTTP/1.1\r\nX: ",
                "drip": b"x",
            },
            "an answer taken, and no further request": {"source": "127.0.2.4", "first": unsigned, "bound": 2 * BOUND},
            "a third of a long body, and then nothing": {"source": "127.0.2.12", "first": signed_head + long[:30_000]},
            "HTTP/2 without a request": {"source": "127.0.2.5", "first": H2_PREFACE, "protocols": ("h2",)},
            "half an HTTP/2 preface": {"source": "127.0.2.6", "first": H2_PREFACE[:9], "protocols": ("h2",)},
        }
        with ThreadPoolExecutor(len(clients)) as pool:
            outcomes = pool.map(lambda client: self._closed(**client), clients.values())
            return "\n".join(f"{what}: {wrong}" for what, wrong in zip(clients, outcomes) if wrong)

    def a_body_that_does_not_end_is_cut_and_never_reaches_the_service(self):
        """Of a few bytes; haproxy bounds its whole time, nginx each pause."""
        # Nobody else comes from there: so the service's log tells what has reached it.
        source = "127.0.2.17" if self.proxy.name == "haproxy" else "127.0.2.7"
        drip = b" " if self.proxy.name == "haproxy" else None
        wrong = self._closed(source, head_of("POST", b"/files/a", [("Content-Length", "10000")]) + b"{", drip)
        if wrong:
            return wrong
        # And that it tells: of a whole request, which comes after it.
        whole = head_of("POST", b"/files/a", [("Content-Length", "1"), ("Connection", "close")]) + b"{"
        with self.proxy.door.connect(source) as connection:
            connection.sendall(whole)
            answer_on(connection, "POST")
        for _ in range(50):
            reached = self.service.logged().count(f'"address":"{source}"')
            if reached:
                return "" if reached == 1 else "the service has seen the request"
            time.sleep(0.1)
        return "the service does not log what reaches it"

    def one_address_has_its_cap_and_others_are_served(self):
        """As many unfinished requests as one address may have, and one more."""
        for _ in range(5):
            held = [self.proxy.door.connect("127.0.2.8") for _ in range(CAP)]
            try:
                for connection in held:
                    connection.sendall(head_of("POST", MEASUREMENTS, [("Content-Length", "10000")]) + b"{")
                try:
                    more = signed(self.proxy.door, self.key, "GET", HEALTH, source="127.0.2.8")
                except OSError:
                    more = None
                other = signed(self.proxy.door, self.key, "GET", HEALTH, source="127.0.2.9")
                # Those that a busy machine let run into their bound held no place; then this says nothing.
                if all(seconds_until_closed(connection, 0.02, every=0.01) is None for connection in held):
                    break
            finally:
                for connection in held:
                    connection.close()
        else:
            return "the machine is too busy: the requests that hold the places were cut before the next one was sent"
        if other.status != 200:
            return f"another address: {other.status} {other.body[:200]!r}"
        # haproxy closes the connection; nginx has taken it, and answers.
        if self.proxy.name == "haproxy":
            return "" if more is None else f"the connection beyond the cap was answered: {more.status}"
        return more.envelope_problem(429, "ip_rate_limited") if more else "the request beyond the cap had no answer"

    def _refused_in_time(self, source):
        began = time.monotonic()
        answer = signed(self.proxy.door, self.key, "GET", HEALTH, source=source)
        took = time.monotonic() - began
        wrong = answer.envelope_problem(503, "service_unavailable")
        if not wrong and not answer.headers.get("Retry-After"):
            wrong = "there is no Retry-After"
        return wrong or ("" if took < BOUND + SLACK else f"the answer took {took:.1f} s")

    def _served_again(self, source):
        began, answer = time.monotonic(), None
        while time.monotonic() - began < 20:
            answer = signed(self.proxy.door, self.key, "GET", HEALTH, source=source)
            if answer.status == 200:
                return ""
            time.sleep(0.2)
        return f"{answer.status} {answer.body[:200]!r}, 20 s after the service was back"

    def _found_out(self, source):
        """What drains still serves. haproxy sees that it is not ready: it takes the line that it has for this."""
        for _ in range(100):
            answer = signed(self.proxy.door, self.key, "GET", HEALTH, source=source)
            if answer.status != 200:
                return f"{answer.status} {answer.body[:200]!r}"
            if self.proxy.name != "haproxy" or "ready_or_not" in self.proxy.access_log()[-1]:
                return ""
            time.sleep(0.2)
        return "it is not ready, and haproxy has not noticed in 20 s"


def a_hung_and_a_stopped_service_are_503_in_time_and_served_when_back(service, all_bounds):
    """For all proxies together, since the service is one. Returns what is wrong for each."""
    wrong = {bounds.proxy.name: [] for bounds in all_bounds}

    def each(what, ask):
        def one(bounds):
            problem = ask(bounds)
            if problem:
                wrong[bounds.proxy.name].append(f"{what}: {problem}")

        threads = [threading.Thread(target=one, args=(bounds,)) for bounds in all_bounds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    service.freeze()
    each("while it hangs", lambda bounds: bounds._refused_in_time("127.0.2.10"))
    service.thaw()
    each("after it hung", lambda bounds: bounds._served_again("127.0.2.10"))
    service.drain()
    each("while it drains", lambda bounds: bounds._found_out("127.0.2.10"))
    service.stop()
    each("while it is stopped", lambda bounds: bounds._refused_in_time("127.0.2.11"))
    service.start()
    each("after it was stopped", lambda bounds: bounds._served_again("127.0.2.11"))
    return wrong
