"""The inspectors' page through its proxy, used as browsers do, and requests that the proxy must reject."""

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
# The maximum size of a photo in bytes.
PHOTO = 10_485_760
# The address of the inspectors. The service trusts 127.0.0.1 as a proxy.
CLIENT = "127.0.4.1"


def photo(size):
    """Returns a PNG with this many bytes: uncompressed grayscale, and padding after the end of the image."""
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
    """The checks. Each returns the problems, or an empty string."""

    def __init__(self, proxy, service):
        self.proxy, self.service = proxy, service
        self.token = service.inspector()

    def _ask(self, method, target, headers=(), body=b"", endpoint=None, source=CLIENT):
        """Sends a request of the page. `Host` contains the port, as in browsers."""
        endpoint = endpoint or self.proxy.endpoint
        if body:
            headers = [*headers, ("Content-Type", "application/json")]
        return ask(endpoint, method, target, headers, body, source=source, host=endpoint.authority)

    def _sign_in(self, origin=None, token=None, forwarded=None, source=CLIENT):
        headers = [("Origin", origin or f"https://{self.proxy.endpoint.authority}")]
        headers += [("X-Forwarded-For", forwarded)] if forwarded else []
        body = json.dumps({"token": token or self.token}).encode()
        return self._ask("POST", SESSION, headers, body, source=source)

    def _signed_in(self):
        """Signs in, and returns the headers for writing requests."""
        response = self._sign_in()
        cookie = response.headers["Set-Cookie"].split(";")[0]
        csrf = json.loads(response.body)["data"]["csrf_token"]
        return [("Cookie", cookie), ("X-CSRF-Token", csrf), ("Origin", f"https://{self.proxy.endpoint.authority}")]

    def _create_report(self, headers):
        """Creates a report, and returns its ID."""
        branch = json.loads(self._ask("GET", SESSION, headers).body)["data"]["branches"][0]["id"]
        vehicle = {"vin": f"WVWZZZ1JZ3W{uuid.uuid4().int % 10**6:06}", "brand": "Skoda", "model": "Fabia", "year": 2020}
        vehicle |= {"type": "HATCHBACK", "fuel_type": "GASOLINE", "transmission": "MANUAL", "color": "Gri"}
        report = {"branch_id": branch, "plate": "06 PRX 10", "package_name": "Tam", "base_price": "2450.00"}
        report |= {"mileage_km": 10, "vehicle": vehicle, "even_if_open": True}
        response = self._ask("POST", V1 + b"/reports", headers, json.dumps(report).encode())
        if response.status != 201:
            raise ValueError(f"failed to create a report: {response.status} {response.body[:300]!r}")
        return json.loads(response.body)["data"]["id"]

    def the_page_and_its_files_are_served_unchanged(self):
        """Compares them byte for byte with those of the service. A URL without the final slash is redirected."""
        page = self._ask("GET", b"/inspector/", [("Accept-Encoding", "identity")])
        if page.status != 200 or not page.headers["Content-Type"].startswith("text/html"):
            return f"the page: {page.status} {page.headers['Content-Type']}"
        names = re.findall(r'(?:href|src)="([^"]+)"', page.body.decode())
        problems = [] if any(name.endswith(".js") for name in names) else [f"the page refers to no script: {names}"]
        for name in [".", *names]:
            target = urllib.parse.urljoin("/inspector/", name).encode()
            endpoints = (self.service.inspectors, self.proxy.endpoint)
            directly, through = (self._ask("GET", target, endpoint=endpoint) for endpoint in endpoints)
            if (through.status, through.body) != (200, directly.body):
                problems.append(f"{target.decode()}: {through.status}, {len(through.body)} of {len(directly.body)} bytes")
            for header in ("Content-Security-Policy", "Cache-Control", "Content-Encoding", "Content-Type"):
                if through.headers[header] != directly.headers[header]:
                    problems.append(f"{target.decode()}: {header} is {through.headers[header]}")
        bare = self._ask("GET", b"/inspector")
        if bare.status != 308 or urllib.parse.urlsplit(bare.headers["Location"]).path != "/inspector/":
            problems.append(f"without the slash: {bare.status} {bare.headers['Location']}")
        return "\n".join(problems)

    def a_browser_can_sign_in_only_from_the_pages_origin(self):
        """Over HTTP/1.1 and HTTP/2, with a port in the address. The cookie must be secure."""
        response = self._sign_in()
        problems = [] if response.status == 200 else [f"from the page: {response.status} {response.body[:300]!r}"]
        if response.status == 200 and "; Secure" not in response.headers["Set-Cookie"]:
            problems.append(f"the cookie is not secure: {response.headers['Set-Cookie'].split(';', 1)[1]}")
        host = self.proxy.host
        for origin in ("https://evil.example", f"https://{host}", f"https://{host}:1", "null"):
            problem = self._sign_in(origin).envelope_problem(403, "forged_request")
            problems += [f"from {origin}: {problem}"] if problem else []
        for origin, expected in ((f"https://{self.proxy.endpoint.authority}", b"200"), ("https://evil.example", b"403")):
            status = self._by_http2(origin)
            problems += [] if status == expected + b" 2" else [f"over HTTP/2 from {origin}: {status!r}"]
        return "\n".join(problems)

    def _by_http2(self, origin):
        """Signs in over HTTP/2 with curl, and returns the status and the protocol version."""
        endpoint = self.proxy.endpoint
        command = ["curl", "--silent", "--show-error", "--http2", "--max-time", "20", "--cacert", endpoint.certificate]
        command += ["--resolve", f"{endpoint.host}:{endpoint.port}:127.0.0.1", "--header", f"Origin: {origin}"]
        command += ["--header", "Content-Type: application/json", "--data-binary", "@-", "--output", "/dev/null"]
        command += ["--write-out", "%{http_code} %{http_version}", f"https://{endpoint.authority}{SESSION.decode()}"]
        body = json.dumps({"token": self.token}).encode()
        done = subprocess.run(command, input=body, capture_output=True, check=False)
        return done.stdout if not done.returncode else done.stderr

    def sign_in_attempts_are_counted_by_the_real_client_address(self):
        """Ten fail, and the eleventh gets 429. Other addresses are not affected. A proxy that appended to X-Forwarded-For would
        let a client at 127.0.0.1 choose its address."""
        wrong_token, problems = f"insp_{'0' * 26}", []
        for source in ("127.0.0.1", "127.0.3.1"):
            strangers = [f"198.51.100.{number}" for number in range(11)]
            statuses = [self._sign_in(None, wrong_token, stranger, source).status for stranger in strangers]
            problems += [] if statuses == [401] * 10 + [429] else [f"from {source}: {statuses}"]
        other = self._sign_in(token=wrong_token).status
        return "\n".join([*problems, *([] if other == 401 else [f"of another address: {other}"])])

    def events_are_forwarded_at_once(self):
        """Waits for the first event, and for one about a new report."""
        headers = self._signed_in()
        with self.proxy.endpoint.connect(CLIENT) as connection:
            head = [*headers, ("Accept", "text/event-stream")]
            connection.sendall(head_of("GET", V1 + b"/events", head, self.proxy.endpoint.authority))
            try:
                return self._check_stream(http.client.HTTPResponse(connection, method="GET"), headers)
            except TimeoutError:
                return "no event arrived for 20 s: the proxy buffers the stream"

    def _check_stream(self, response, headers):
        """Returns the problems of a stream, which must report a newly created report."""
        response.begin()
        if response.status != 200:
            return f"{response.status} {response.read()[:300]!r}"
        while (line := response.readline()) != b"event: ready\n":
            if not line:
                return "the stream ended before it was ready"
        report = self._create_report(headers).encode()
        while report not in (line := response.readline()):
            if not line:
                return "the stream ended before the event of the new report"
        return ""

    def the_largest_photo_is_accepted_and_a_larger_one_is_rejected(self):
        """The service rejects a photo that is one byte too large, and nginx rejects a much larger one."""
        headers = self._signed_in()
        target = f"/inspector/v1/reports/{self._create_report(headers)}/photos?kind=EXTERIOR&caption=Gizli".encode()
        headers.append(("Content-Type", "application/octet-stream"))
        problems, largest = [], photo(PHOTO)

        def send(body):
            endpoint = self.proxy.endpoint
            return ask(endpoint, "POST", target, headers, body, source=CLIENT, host=endpoint.authority)

        response = send(largest)
        if response.status != 201:
            problems.append(f"{len(largest)} bytes: {response.status} {response.body[:300]!r}")
        problem = send(largest + b"\0").envelope_problem(413, "payload_too_large")
        problems += [f"one byte more: {problem}"] if problem else []
        response = send(bytes(2 * PHOTO))
        problems += [] if response.status == 413 else [f"twice as long: {response.status}"]
        return "\n".join(problems)

    def nothing_of_the_internal_listener_is_served(self):
        """Tries the paths for machines in several notations."""
        problems = []
        for path in (b"/metrics", b"/ready", b"/live"):
            if ask(self.service.internal, "GET", path).status != 200:
                problems.append(f"the service itself has no {path.decode()}")
            encoded = b"/%" + path[1:2].hex().encode() + path[2:]
            absolute = b"https://" + self.proxy.endpoint.authority.encode() + path
            hidden = [b"/inspector/.." + path, b"/inspector/%2e%2e" + path, b"/inspector/..%2f" + path[1:]]
            hidden += [b"/inspector/." + path, b"/inspector/x/../.." + path, b"/inspector" + path]
            for target in [path, path + b"?/inspector/", b"/" + path, encoded, absolute, *hidden]:
                response = self._ask("GET", target)
                if response.status not in (400, 404):
                    problems.append(f"{target.decode()}: {response.status} {response.body[:60]!r}")
        for target in (b"/", b"/openapi.yaml", b"/api/v1/partner/health", b"/files/a"):
            response = self._ask("GET", target)
            problems += [] if response.status == 404 else [f"{target.decode()}: {response.status}"]
        return "\n".join(problems)

    def clients_from_other_networks_are_rejected(self):
        """Before a request reaches the service."""
        statuses = [self._ask("GET", path, source=self.proxy.OUTSIDE).status for path in (b"/inspector/", SESSION)]
        return "" if statuses == [403, 403] else f"{statuses}"

    def the_log_contains_paths_but_no_queries(self):
        """Checks the log of all previous requests."""
        lines = self.proxy.access_log()
        problems = [line for line in lines if any(word in line for word in ("?", "caption", "Gizli", self.token))]
        if not any("/photos" in line for line in lines):
            problems.append(f"the {len(lines)} lines do not contain the uploaded photos")
        return "\n".join(problems)

    def checks(self):
        """Returns all checks. Their order matters."""
        assert self.proxy.host != HOST, "each site must have a different name"
        return [
            self.the_page_and_its_files_are_served_unchanged,
            self.a_browser_can_sign_in_only_from_the_pages_origin,
            self.sign_in_attempts_are_counted_by_the_real_client_address,
            self.events_are_forwarded_at_once,
            self.the_largest_photo_is_accepted_and_a_larger_one_is_rejected,
            self.nothing_of_the_internal_listener_is_served,
            self.clients_from_other_networks_are_rejected,
            self.the_log_contains_paths_but_no_queries,
        ]
