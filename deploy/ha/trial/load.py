"""Signed load on two replicas, and a record of the acknowledged measurements."""

import collections
import dataclasses
import hashlib
import http.client
import json
import pathlib
import subprocess
import sys
import threading
import time

from loopback.layout import ADDRESS, DATABASE, USER
from loopback.programs import PATH

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "samples" / "python"))

import partner as signing  # noqa: E402

MEASUREMENTS = "/api/v1/partner/test-line/measurements"
INSPECTIONS = "/api/v1/partner/inspections?limit=5"
#: Longer than the service takes to respond in any state of its database.
TIMEOUT = 20


@dataclasses.dataclass(frozen=True)
class Request:
    """A signed request, which has the same bytes each time it is sent."""

    method: str
    target: str
    headers: dict
    body: bytes

    @classmethod
    def sign(cls, partner, method, target, body=b""):
        signer = signing.Partner("http://127.0.0.1", partner.key_id, partner.secret)
        headers = signer.signed_headers(method, target.encode(), body)
        if body:
            headers["Content-Type"] = "application/json"
        return cls(method, target, headers, body)


@dataclasses.dataclass(frozen=True)
class Attempt:
    """A sent request and its result."""

    at: float
    request: Request
    replica: int
    #: 0 means no response.
    status: int


@dataclasses.dataclass(frozen=True)
class Acknowledged:
    """A measurement that got 200 or 201."""

    at: float
    external_id: str
    measurement_id: str
    is_applied: bool
    raw_sha256: str


class Connections:
    """A connection to each replica, for one thread."""

    def __init__(self, addresses):
        self.addresses = addresses
        self.connections = [None] * len(addresses)

    def send(self, replica, request):
        """Sends a request once, without retries. Returns the status, 0 without a response, and the body."""
        connection = self.connections[replica] or http.client.HTTPConnection(self.addresses[replica], timeout=TIMEOUT)
        self.connections[replica] = connection
        try:
            connection.request(request.method, request.target, body=request.body or None, headers=request.headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            self.connections[replica] = None
            return 0, b""

    def close(self):
        for connection in self.connections:
            if connection:
                connection.close()


class Load:
    """Threads that write, read, and send identical requests to both replicas, until they are stopped."""

    def __init__(self, partner, addresses, run, rate, read_standby):
        self.partner, self.addresses, self.run, self.rate = partner, addresses, run, rate
        self.read_standby = read_standby
        self.acknowledged = []
        self.attempts = collections.deque(maxlen=20_000)
        self.service_reads, self.standby_reads = [], []
        #: The number of identical requests that were sent to both replicas at once, and those that both accepted.
        self.duplicates, self.duplicates_accepted_twice = 0, []
        #: Responses that are neither a success nor 503.
        self.unexpected_responses = []
        self.stopping = threading.Event()
        #: The error that ended a thread.
        self.failure = None
        self.threads = []

    def start(self):
        workers = [(self._write, 4), (self._read, 2), (self._send_duplicates, 1), (self._read_standby, 1)]
        for work, count in workers:
            for number in range(count):
                thread = threading.Thread(target=self._run_worker, args=(work, number), daemon=True)
                thread.start()
                self.threads.append(thread)

    def stop(self):
        """Ends the load, and waits for running requests."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(2 * TIMEOUT)
        if any(thread.is_alive() for thread in self.threads):
            raise RuntimeError("a thread of the load did not end")

    def _run_worker(self, work, number):
        connections = [Connections(self.addresses), Connections(self.addresses)]
        try:
            work(number, *connections)
        except Exception as error:  # noqa: BLE001 - any error ends the test
            self.failure = error
        for connection in connections:
            connection.close()

    def package(self, name, number):
        """Returns a new measurement: one in eight for the open report, the others for plates without one."""
        external_id = f"{self.run}-{name}-{number}"
        plate = self.partner.plate if number % 8 == 0 else f"06 TST {1000 + number % 9000}"
        body = {
            "branch_code": self.partner.branch_code,
            "plate": plate,
            "external_id": external_id,
            "measurements": {"BRAKE_FRONT_LEFT": round(2 + number % 100 / 100, 2)},
        }
        return external_id, json.dumps(body).encode()

    def record(self, request, replica, status, body, external_id=None):
        """Records a response, and returns whether it was a success."""
        now = time.monotonic()
        self.attempts.append(Attempt(now, request, replica, status))
        if status in (200, 201):
            if external_id:
                data = json.loads(body)["data"]
                self.acknowledged.append(
                    Acknowledged(
                        now,
                        external_id,
                        data["measurement_id"],
                        data["status"] == "applied",
                        hashlib.sha256(request.body).hexdigest(),
                    )
                )
            return True
        if status not in (0, 503):
            self.unexpected_responses.append(f"{status} {body[:200]!r}")
        return False

    def _write(self, worker, connections, _):
        """Submits measurements. Repeats each with a new signature until it is acknowledged."""
        number, replica = 0, worker % 2
        while not self.stopping.is_set():
            number += 1
            external_id, body = self.package(f"w{worker}", number)
            while True:
                request = Request.sign(self.partner, "POST", MEASUREMENTS, body)
                if self.record(request, replica, *connections.send(replica, request), external_id):
                    break
                replica = 1 - replica
                if self.stopping.wait(0.2):
                    return
            self.stopping.wait(4 / self.rate)

    def _read(self, worker, connections, _):
        replica = worker % 2
        while not self.stopping.wait(6 / self.rate):
            request = Request.sign(self.partner, "GET", INSPECTIONS)
            if self.record(request, replica, *connections.send(replica, request)):
                self.service_reads.append(time.monotonic())
            else:
                replica = 1 - replica

    def _send_duplicates(self, _worker, *connections):
        """Sends identical requests to both replicas at once."""
        number = 0
        while not self.stopping.wait(6 / self.rate):
            number += 1
            external_id, body = self.package("twin", number)
            request = Request.sign(self.partner, "POST", MEASUREMENTS, body)
            responses = [None, None]

            def send(replica):
                responses[replica] = connections[replica].send(replica, request)

            other = threading.Thread(target=send, args=(1,))
            other.start()
            send(0)
            other.join()
            self.duplicates += 1
            accepted = 0
            for replica, (status, body) in enumerate(responses):
                if status == 401 and b"replay_detected" in body:
                    continue
                accepted += self.record(request, replica, status, body, external_id)
            if accepted == 2:
                self.duplicates_accepted_twice.append(external_id)

    def _read_standby(self, *_):
        """Reads from a standby, without the service."""
        while not self.stopping.wait(15 / self.rate):
            if self.read_standby():
                self.standby_reads.append(time.monotonic())


def longest_gap(times, begin, end):
    """Returns the longest gap in `times` that overlaps the time from `begin` to `end`."""
    times = sorted(times)
    gaps = [
        later - earlier for earlier, later in zip(times, times[1:]) if later >= begin and earlier <= end
    ]
    if not times or times[-1] < end:
        gaps.append(end - (times[-1] if times else begin))
    return max(gaps, default=0.0)


class DirectWriters:
    """Clients that write to one node's PostgreSQL without haproxy: in sessions from before a fault, and in new ones as soon as
    these end. An old primary must not acknowledge anything to them."""

    def __init__(self, cluster, node, numbers, count):
        self.numbers = numbers
        #: The acknowledged numbers, and the times of the refusals.
        self.acknowledged, self.refused = [], []
        self.command = [cluster.postgres_bin / "psql", "-XAt", "-h", ADDRESS, "-p", cluster.layout.ports.postgres(node)]
        self.command = [str(part) for part in (*self.command, "-U", USER, "-d", DATABASE)]
        self.environment = {"PGPASSWORD": cluster.layout.passwords["service"], "PGCONNECT_TIMEOUT": "2", "PATH": PATH}
        self.stopping, self.sessions = threading.Event(), {}
        self.threads = [threading.Thread(target=self._write, args=(name,), daemon=True) for name in range(count)]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def prepare(cluster):
        """Creates the table, which the service does not know."""
        sql = f"CREATE SCHEMA failover AUTHORIZATION {USER}; CREATE TABLE failover.direct (number bigint PRIMARY KEY)"
        cluster.psql(f"{sql}; ALTER TABLE failover.direct OWNER TO {USER}", database=DATABASE)

    def _write(self, name):
        while not self.stopping.wait(0.2):
            session = self.sessions[name] = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                text=True, bufsize=1, env=self.environment,
            )
            try:
                while not self.stopping.wait(0.1) and self._insert(session):
                    pass
            except BrokenPipeError:
                self.refused.append(time.monotonic())
            session.kill()
            session.communicate()

    def _insert(self, session):
        """Inserts a number. Returns whether the session is still open."""
        number = next(self.numbers)
        session.stdin.write(f"INSERT INTO failover.direct VALUES ({number});\n\\echo end\n")
        lines = []
        while (line := session.stdout.readline()) not in ("end\n", ""):
            lines.append(line)
        if lines == ["INSERT 0 1\n"]:
            self.acknowledged.append((time.monotonic(), number))
        elif not self.stopping.is_set():
            self.refused.append(time.monotonic())
        return line != ""

    def stop(self):
        self.stopping.set()
        for _ in range(100):
            if not any(thread.is_alive() for thread in self.threads):
                return
            # A statement may wait forever for a standby.
            for session in list(self.sessions.values()):
                session.kill()
            time.sleep(0.1)
        raise RuntimeError("a direct writer did not end")
