"""Signed load on two replicas, and a record of what was acknowledged."""

import collections
import dataclasses
import hashlib
import http.client
import json
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "samples" / "python"))

import partner as signing  # noqa: E402

MEASUREMENTS = "/api/v1/partner/test-line/measurements"
INSPECTIONS = "/api/v1/partner/inspections?limit=5"
#: Longer than the service takes to answer, whatever happens to its database.
TIMEOUT = 20


@dataclasses.dataclass(frozen=True)
class Request:
    """A signed request: the same bytes each time it is sent."""

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
    """A request that was sent, and what came of it."""

    at: float
    request: Request
    replica: int
    #: 0: no answer.
    status: int


@dataclasses.dataclass(frozen=True)
class Acknowledged:
    """A measurement that was answered with 200 or 201."""

    at: float
    external_id: str
    measurement_id: str
    is_applied: bool
    raw_sha256: str


class Lines:
    """A connection to each replica, for one thread."""

    def __init__(self, addresses):
        self.addresses = addresses
        self.lines = [None] * len(addresses)

    def send(self, replica, request):
        """Status and body; status 0 where there was no answer. A request is sent once: what is asked twice is the
        caller's decision."""
        line = self.lines[replica] or http.client.HTTPConnection(self.addresses[replica], timeout=TIMEOUT)
        self.lines[replica] = line
        try:
            line.request(request.method, request.target, body=request.body or None, headers=request.headers)
            answer = line.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            line.close()
            self.lines[replica] = None
            return 0, b""

    def close(self):
        for line in self.lines:
            if line:
                line.close()


class Load:
    """Writers, readers and twins, until it is stopped."""

    def __init__(self, partner, addresses, run, rate, read_standby):
        self.partner, self.addresses, self.run, self.rate = partner, addresses, run, rate
        self.read_standby = read_standby
        self.acknowledged = []
        self.attempts = collections.deque(maxlen=20_000)
        self.service_reads, self.standby_reads = [], []
        #: Identical requests sent to both replicas at once, and those of them that both accepted.
        self.twins, self.twins_accepted_twice = 0, []
        #: What an answer should never be: neither success nor 503.
        self.surprises = []
        self.stopping = threading.Event()
        #: What ended a thread.
        self.failure = None
        self.threads = []

    def start(self):
        workers = [(self._write, 4), (self._read, 2), (self._twin, 1), (self._read_standby, 1)]
        for work, count in workers:
            for number in range(count):
                thread = threading.Thread(target=self._unless_it_fails, args=(work, number), daemon=True)
                thread.start()
                self.threads.append(thread)

    def stop(self):
        """Ends the load; every request that is under way is waited for."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(2 * TIMEOUT)
        if any(thread.is_alive() for thread in self.threads):
            raise RuntimeError("a thread of the load does not end")

    def _unless_it_fails(self, work, number):
        lines = [Lines(self.addresses), Lines(self.addresses)]
        try:
            work(number, *lines)
        except Exception as error:  # noqa: BLE001 - whatever it is, the trial is over
            self.failure = error
        for line in lines:
            line.close()

    def package(self, name, number):
        """A new measurement: one in eight for the open report, the others for plates that have none."""
        external_id = f"{self.run}-{name}-{number}"
        plate = self.partner.plate if number % 8 == 0 else f"06 TST {1000 + number % 9000}"
        body = {
            "branch_code": self.partner.branch_code,
            "plate": plate,
            "external_id": external_id,
            "measurements": {"BRAKE_FRONT_LEFT": round(2 + number % 100 / 100, 2)},
        }
        return external_id, json.dumps(body).encode()

    def note(self, request, replica, status, body, external_id=None):
        """Notes an answer; returns whether it was a success."""
        now = time.monotonic()
        self.attempts.append(Attempt(now, request, replica, status))
        if status in (200, 201):
            if external_id:
                said = json.loads(body)["data"]
                self.acknowledged.append(
                    Acknowledged(
                        now,
                        external_id,
                        said["measurement_id"],
                        said["status"] == "applied",
                        hashlib.sha256(request.body).hexdigest(),
                    )
                )
            return True
        if status not in (0, 503):
            self.surprises.append(f"{status} {body[:200]!r}")
        return False

    def _write(self, worker, lines, _):
        """Submits measurement after measurement; each again, signed anew, until it is acknowledged."""
        number, replica = 0, worker % 2
        while not self.stopping.is_set():
            number += 1
            external_id, body = self.package(f"w{worker}", number)
            while True:
                request = Request.sign(self.partner, "POST", MEASUREMENTS, body)
                if self.note(request, replica, *lines.send(replica, request), external_id):
                    break
                replica = 1 - replica
                if self.stopping.wait(0.2):
                    return
            self.stopping.wait(4 / self.rate)

    def _read(self, worker, lines, _):
        replica = worker % 2
        while not self.stopping.wait(0.1):
            request = Request.sign(self.partner, "GET", INSPECTIONS)
            if self.note(request, replica, *lines.send(replica, request)):
                self.service_reads.append(time.monotonic())
            else:
                replica = 1 - replica

    def _twin(self, _worker, *lines):
        """Sends one and the same request to both replicas at once."""
        number = 0
        while not self.stopping.wait(0.1):
            number += 1
            external_id, body = self.package("twin", number)
            request = Request.sign(self.partner, "POST", MEASUREMENTS, body)
            answers = [None, None]

            def send(replica):
                answers[replica] = lines[replica].send(replica, request)

            other = threading.Thread(target=send, args=(1,))
            other.start()
            send(0)
            other.join()
            self.twins += 1
            accepted = 0
            for replica, (status, said) in enumerate(answers):
                if status == 401 and b"replay_detected" in said:
                    continue
                accepted += self.note(request, replica, status, said, external_id)
            if accepted == 2:
                self.twins_accepted_twice.append(external_id)

    def _read_standby(self, *_):
        """Reads from a standby, without the service."""
        while not self.stopping.wait(0.25):
            if self.read_standby():
                self.standby_reads.append(time.monotonic())


def longest_gap(times, begin, end):
    """The longest time without any of `times`, of what lies between `begin` and `end`; it may reach beyond either."""
    times = sorted(times)
    gaps = [
        later - earlier for earlier, later in zip(times, times[1:]) if later >= begin and earlier <= end
    ]
    if not times or times[-1] < end:
        gaps.append(end - (times[-1] if times else begin))
    return max(gaps, default=0.0)
