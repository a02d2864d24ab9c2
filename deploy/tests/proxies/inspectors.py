"""The page for inspectors through its proxy, as browsers come, and what must not come through."""

import http.client
import json
import re
import struct
import subprocess
import urllib.parse
import uuid
import zlib

from wire import HOST, ask, head_of

V1 = b"/inspector/v1"
SESSION = V1 + b"/session"
# The longest photo that the service takes, in bytes.
PHOTO = 10_485_760
# Where its people sit. 127.0.0.1 is what the service trusts.
DESK = "127.0.4.1"


def photo(size):
    """A PNG of this many bytes: grey of which nothing can be compressed, and the rest behind the picture's end."""
    width = 3_000
    height = (size - 10_000) // (width + 1)
    rows = b"".join(b"\0" + bytes((x * y + x) & 255 for x in range(width)) for y in range(256))
    rows = (rows * (height // 256 + 1))[: (width + 1) * height]

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    picture = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b"")
    assert len(picture) <= size
    return picture + bytes(size - len(picture))


class Inspectors:
    """The checks; each returns what is wrong, or nothing."""

    def __init__(self, proxy, service):
        self.proxy, self.service = proxy, service
        self.token = service.inspector()

    def _ask(self, method, target, headers=(), body=b"", door=None, source=DESK):
        """A request of the page's: its `Host` has the port, as browsers send it."""
        door = door or self.proxy.door
        if body:
            headers = [*headers, ("Content-Type", "application/json")]
        return ask(door, method, target, headers, body, source=source, host=door.authority)

    def _sign_in(self, origin=None, token=None, forwarded=None, source=DESK):
        headers = [("Origin", origin or f"https://{self.proxy.door.authority}")]
        headers += [("X-Forwarded-For", forwarded)] if forwarded else []
        body = json.dumps({"token": token or self.token}).encode()
        return self._ask("POST", SESSION, headers, body, source=source)

    def _signed_in(self):
        """The headers with which a signed-in page writes."""
        answer = self._sign_in()
        cookie = answer.headers["Set-Cookie"].split(";")[0]
        csrf = json.loads(answer.body)["data"]["csrf_token"]
        return [("Cookie", cookie), ("X-CSRF-Token", csrf), ("Origin", f"https://{self.proxy.door.authority}")]

    def _opened(self, headers):
        """A report that is opened now: its id."""
        branch = json.loads(self._ask("GET", SESSION, headers).body)["data"]["branches"][0]["id"]
        vehicle = {"vin": f"WVWZZZ1JZ3W{uuid.uuid4().int % 10**6:06}", "brand": "Skoda", "model": "Fabia", "year": 2020}
        vehicle |= {"type": "HATCHBACK", "fuel_type": "GASOLINE", "transmission": "MANUAL", "color": "Gri"}
        report = {"branch_id": branch, "plate": "06 PRX 10", "package_name": "Tam", "base_price": "2450.00"}
        report |= {"mileage_km": 10, "vehicle": vehicle}
        answer = self._ask("POST", V1 + b"/reports", headers, json.dumps(report).encode())
        if answer.status != 201:
            raise ValueError(f"no report was opened: {answer.status} {answer.body[:300]!r}")
        return json.loads(answer.body)["data"]["id"]

    def the_page_and_all_that_it_names_are_served(self):
        """Byte for byte as without the proxy, over HTTP/2 as well; and where its last slash was forgotten."""
        page = self._ask("GET", b"/inspector/", [("Accept-Encoding", "identity")])
        if page.status != 200 or not page.headers["Content-Type"].startswith("text/html"):
            return f"the page: {page.status} {page.headers['Content-Type']}"
        named = re.findall(r'(?:href|src)="([^"]+)"', page.body.decode())
        wrong = [] if any(name.endswith(".js") for name in named) else [f"the page names no script: {named}"]
        for name in [".", *named]:
            target = urllib.parse.urljoin("/inspector/", name).encode()
            directly, through = (self._ask("GET", target, door=door) for door in (self.service.internal, self.proxy.door))
            if (through.status, through.body) != (200, directly.body):
                wrong.append(f"{target.decode()}: {through.status}, {len(through.body)} of {len(directly.body)} bytes")
            for header in ("Content-Security-Policy", "Cache-Control", "Content-Encoding", "Content-Type"):
                if through.headers[header] != directly.headers[header]:
                    wrong.append(f"{target.decode()}: {header} is {through.headers[header]}")
        bare = self._ask("GET", b"/inspector")
        if bare.status != 308 or urllib.parse.urlsplit(bare.headers["Location"]).path != "/inspector/":
            wrong.append(f"without the slash: {bare.status} {bare.headers['Location']}")
        return "\n".join(wrong)

    def a_browser_signs_in_from_the_page_and_from_no_other_origin(self):
        """By HTTP/1.1 and HTTP/2, with a port in the address. The cookie is for TLS alone."""
        answer = self._sign_in()
        wrong = [] if answer.status == 200 else [f"from the page: {answer.status} {answer.body[:300]!r}"]
        if answer.status == 200 and "; Secure" not in answer.headers["Set-Cookie"]:
            wrong.append(f"the cookie goes without TLS, too: {answer.headers['Set-Cookie'].split(';', 1)[1]}")
        host = self.proxy.host
        for origin in ("https://evil.example", f"https://{host}", f"https://{host}:1", "null"):
            problem = self._sign_in(origin).envelope_problem(403, "forged_request")
            wrong += [f"from {origin}: {problem}"] if problem else []
        for origin, expected in ((f"https://{self.proxy.door.authority}", b"200"), ("https://evil.example", b"403")):
            told = self._by_http2(origin)
            wrong += [] if told == expected + b" 2" else [f"over HTTP/2 from {origin}: {told!r}"]
        return "\n".join(wrong)

    def _by_http2(self, origin):
        """Signs in over HTTP/2, as curl does it; the status and the version."""
        door = self.proxy.door
        command = ["curl", "--silent", "--show-error", "--http2", "--max-time", "20", "--cacert", door.certificate]
        command += ["--resolve", f"{door.host}:{door.port}:127.0.0.1", "--header", f"Origin: {origin}"]
        command += ["--header", "Content-Type: application/json", "--data-binary", "@-", "--output", "/dev/null"]
        command += ["--write-out", "%{http_code} %{http_version}", f"https://{door.authority}{SESSION.decode()}"]
        body = json.dumps({"token": self.token}).encode()
        done = subprocess.run(command, input=body, capture_output=True, check=False)
        return done.stdout if not done.returncode else done.stderr

    def attempts_are_counted_of_the_client_whatever_it_says_of_itself(self):
        """Ten fail; the eleventh waits, and nobody else does. A proxy that appends makes a stranger of itself at 127.0.0.1."""
        wrong_token, wrong = f"insp_{'0' * 26}", []
        for source in ("127.0.0.1", "127.0.3.1"):
            strangers = [f"198.51.100.{number}" for number in range(11)]
            statuses = [self._sign_in(None, wrong_token, stranger, source).status for stranger in strangers]
            wrong += [] if statuses == [401] * 10 + [429] else [f"from {source}: {statuses}"]
        other = self._sign_in(token=wrong_token).status
        return "\n".join([*wrong, *([] if other == 401 else [f"of another address: {other}"])])

    def events_pass_as_they_come(self):
        """The first one, and one of what is done meanwhile, on a stream that goes on."""
        headers = self._signed_in()
        with self.proxy.door.connect(DESK) as connection:
            head = [*headers, ("Accept", "text/event-stream")]
            connection.sendall(head_of("GET", V1 + b"/events", head, self.proxy.door.authority))
            try:
                return self._told(http.client.HTTPResponse(connection, method="GET"), headers)
            except TimeoutError:
                return "nothing came for 20 s: what the service says is held back"

    def _told(self, response, headers):
        """What is wrong with a stream that must tell of a report that is opened meanwhile."""
        response.begin()
        if response.status != 200:
            return f"{response.status} {response.read()[:300]!r}"
        while (line := response.readline()) != b"event: ready\n":
            if not line:
                return "the stream ended before it was ready"
        report = self._opened(headers).encode()
        while report not in (line := response.readline()):
            if not line:
                return "the stream ended before it told of a new report"
        return ""

    def the_largest_photo_passes_and_a_larger_one_is_refused_by_the_service(self):
        """One byte more is answered in the service's own words; what is far larger, by nginx."""
        headers = self._signed_in()
        target = f"/inspector/v1/reports/{self._opened(headers)}/photos?kind=EXTERIOR&caption=Gizli".encode()
        headers.append(("Content-Type", "application/octet-stream"))
        wrong, largest = [], photo(PHOTO)

        def send(body):
            door = self.proxy.door
            return ask(door, "POST", target, headers, body, source=DESK, host=door.authority)

        answer = send(largest)
        if answer.status != 201:
            wrong.append(f"{len(largest)} bytes: {answer.status} {answer.body[:300]!r}")
        problem = send(largest + b"\0").envelope_problem(413, "payload_too_large")
        wrong += [f"one byte more: {problem}"] if problem else []
        answer = send(bytes(2 * PHOTO))
        wrong += [] if answer.status == 413 else [f"twice as long: {answer.status}"]
        return "\n".join(wrong)

    def nothing_but_the_page_is_served(self):
        """Not what machines ask of the internal listener, however it is written."""
        wrong = []
        for path in (b"/metrics", b"/ready", b"/live"):
            if ask(self.service.internal, "GET", path).status != 200:
                wrong.append(f"the service itself has no {path.decode()}")
            encoded = b"/%" + path[1:2].hex().encode() + path[2:]
            absolute = b"https://" + self.proxy.door.authority.encode() + path
            hidden = [b"/inspector/.." + path, b"/inspector/%2e%2e" + path, b"/inspector/..%2f" + path[1:]]
            hidden += [b"/inspector/." + path, b"/inspector/x/../.." + path, b"/inspector" + path]
            for target in [path, path + b"?/inspector/", b"/" + path, encoded, absolute, *hidden]:
                answer = self._ask("GET", target)
                if answer.status not in (400, 404):
                    wrong.append(f"{target.decode()}: {answer.status} {answer.body[:60]!r}")
        for target in (b"/", b"/openapi.yaml", b"/api/v1/partner/health", b"/files/a"):
            answer = self._ask("GET", target)
            wrong += [] if answer.status == 404 else [f"{target.decode()}: {answer.status}"]
        return "\n".join(wrong)

    def who_is_not_of_its_network_is_sent_away(self):
        """Before anything is asked of the service."""
        statuses = [self._ask("GET", path, source=self.proxy.OUTSIDE).status for path in (b"/inspector/", SESSION)]
        return "" if statuses == [403, 403] else f"{statuses}"

    def the_log_holds_paths_and_no_queries(self):
        """Of all that was asked so far."""
        lines = self.proxy.access_log()
        wrong = [line for line in lines if any(word in line for word in ("?", "caption", "Gizli", self.token))]
        if not any("/photos" in line for line in lines):
            wrong.append(f"the photos that were sent are not there, in {len(lines)} lines")
        return "\n".join(wrong)

    def checks(self):
        """In this order, one after the other."""
        assert self.proxy.host != HOST, "each site has a name of its own"
        return [
            self.the_page_and_all_that_it_names_are_served,
            self.a_browser_signs_in_from_the_page_and_from_no_other_origin,
            self.attempts_are_counted_of_the_client_whatever_it_says_of_itself,
            self.events_pass_as_they_come,
            self.the_largest_photo_passes_and_a_larger_one_is_refused_by_the_service,
            self.nothing_but_the_page_is_served,
            self.who_is_not_of_its_network_is_sent_away,
            self.the_log_holds_paths_and_no_queries,
        ]
