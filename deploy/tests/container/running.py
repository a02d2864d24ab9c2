"""Checks of the running container. Each returns the problems, or an empty string."""

import http.client
import json
import os
import re
import socket
import subprocess
import threading
import time
import uuid

from contained import SOCKET, TIME, VOLUME
from image import FOLDER
from forwarding import measurement
from wire import HOST, MEASUREMENTS, ROOT, Key, read_response, ask, head_of, signed

REPORT = str(uuid.uuid4())
IMPORTED = {
    "vehicles.csv": """\
plate,vin,brand,model,year,type,fuel_type,transmission,color,mileage_km
34 ABC 123,WVWZZZ1JZ00000001,Fiat,Egea,2018,SEDAN,DIESEL,MANUAL,White,1000
""",
    "inspections.csv": f"""\
id,report_number,organization,branch,vehicle,status,plate,package_name,package_base_price,base_price,final_price,payment_type,\
snapshot_vin,snapshot_mileage_km,public_slug,published_at
{REPORT},R-1,edge,E1,WVWZZZ1JZ00000001,PUBLISHED,34 ABC 123,Full,2500.00,2500.00,2500.00,CARD,\
WVWZZZ1JZ00000001,90000,r-1,2026-01-02T03:04:05+03:00
""",
}
# Sends a request to a listener that is reachable only inside the container, and prints the status.
REQUEST_SCRIPT = r"""
exec 3<>"/dev/tcp/127.0.0.1/$2"
printf 'GET %s HTTP/1.1\r\nHost: internal\r\nConnection: close\r\n\r\n' "$1" >&3
read -r _ status _ <&3
echo "$status"
"""


def wait_until(condition, seconds=30):
    """Returns whether a condition becomes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


class Running:
    """The checks, in order. All but the last three leave the service running unchanged."""

    def __init__(self, service, database, keys, folder):
        self.service, self.database, self.keys, self.folder = service, database, keys, folder
        self.key = keys[0]

    def _internal_status(self, path, port=9464):
        return self.service.execute("bash", "-c", REQUEST_SCRIPT, "-", path, str(port))

    def the_process_has_no_privileges(self):
        """Reads the process's status from the kernel."""
        status = dict(re.findall(r"^(\w+):\s*(.*)$", self.service.execute("cat", "/proc/1/status"), re.M))
        none = "0" * 16
        expected = {
            "Uid": ["10001"] * 4,
            "Gid": ["10001"] * 4,
            "NoNewPrivs": ["1"],
            **{name: [none] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")},
        }
        return "\n".join(f"{name}: {status[name]}" for name, value in expected.items() if status[name].split() != value)

    def only_the_service_can_read_the_master_key(self):
        """Checks the file's owner and mode, and that neither the environment nor the log contains the key."""
        problems = []
        owner_and_mode = self.service.execute("stat", "--format", "%u %a", "/run/secrets/master.key")
        if owner_and_mode != "10001 400":
            problems.append(f"owner and mode: {owner_and_mode}")
        if self.service.key in self.service.execute("cat", "/proc/1/environ") + self.service.logged():
            problems.append("the environment or the log contains it")
        return "\n".join(problems)

    def a_signed_request_succeeds_and_a_forged_one_is_rejected(self):
        """Expects 200, and 401 with another secret."""
        target = f"{ROOT}/health".encode()
        right = signed(self.service.endpoint, self.key, "GET", target)
        problems = [] if right.status == 200 else [f"signed: {right.status} {right.body[:300]!r}"]
        forger = Key(self.key.key_id, self.key.secret[:-4] + ("aaaa" if self.key.secret[-4:] != "aaaa" else "bbbb"))
        forged = signed(self.service.endpoint, forger, "GET", target).envelope_problem(401, "invalid_signature")
        return "\n".join([*problems, forged] if forged else problems)

    def a_measurement_is_stored_byte_for_byte(self):
        """Compares a measurement with the output of an operator's command."""
        body = measurement(1)
        response = signed(self.service.endpoint, self.key, "POST", MEASUREMENTS, body)
        if response.status != 201:
            return f"{response.status} {response.body[:300]!r}"
        stored = self.service.raw_measurement(json.loads(response.body)["data"]["measurement_id"])
        return "" if stored == body else f"stored {stored!r} instead of {body!r}"

    def the_contract_of_this_checkout_is_published(self):
        """Compares the document byte for byte, and checks the site and the program's version."""
        with open(os.path.join(FOLDER, "spec/partner-api.yaml"), "rb") as file:
            expected = file.read()
        problems = []
        if ask(self.service.endpoint, "GET", b"/openapi.yaml").body != expected:
            problems.append("/openapi.yaml is not spec/partner-api.yaml")
        page = ask(self.service.endpoint, "GET", b"/docs/")
        if page.status != 200 or not page.headers.get("Content-Type", "").startswith("text/html"):
            problems.append(f"/docs/: {page.status} {page.headers.get('Content-Type')}")
        with open(os.path.join(FOLDER, "Cargo.toml"), encoding="utf-8") as file:
            version = re.search(r'^version = "(.*)"$', file.read(), re.M)[1]
        output = self.service.execute("partner-api", "--version")
        if output != f"partner-api {version}":
            problems.append(f"{output}, expected version {version}")
        return "\n".join(problems)

    def the_inspectors_page_is_served(self):
        """On its own listener, which cannot be reached from outside."""
        status = self._internal_status("/inspector/", 9466)
        return "" if status == "200" else f"/inspector/: {status}"

    def a_report_is_rendered_and_only_the_volume_is_written(self):
        """Imports reports with an operator's command, downloads a PDF, and checks where it is stored."""
        files = os.path.join(self.folder, "import")
        os.mkdir(files)
        for name, text in IMPORTED.items():
            with open(os.path.join(files, name), "w", encoding="utf-8") as file:
                file.write(text)
        *command, image = self.service.command
        done = subprocess.run(
            [*command, "--volume", f"{files}:/import:ro", image, "import", "/import"],
            env=self.service.environment,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            return f"the import failed: {done.stderr.decode()}"
        target, responses = f"{ROOT}/inspections/{REPORT}/pdf".encode(), []

        def rendered():
            responses.append(signed(self.service.endpoint, self.key, "GET", target))
            return responses[-1].status != 503

        wait_until(rendered, 60)
        if responses[-1].status != 200 or not responses[-1].body.startswith(b"%PDF-"):
            return f"the PDF: {responses[-1].status} {responses[-1].body[:300]!r}"
        sizes = self.service.execute("find", VOLUME, "-type", "f", "-size", f"{len(responses[-1].body)}c")
        problems = [] if sizes else [f"{VOLUME} contains no file of {len(responses[-1].body)} bytes"]
        # A mount point is created, which changes its parent folder.
        mounted = re.compile(r"C /(etc|run|var|var/lib)?|[AC] (/run/secrets(/.*)?|/etc/mtab|" + re.escape(SOCKET) + ")")
        changed = self.service.podman.run_checked("diff", self.service.name).splitlines()
        problems += [f"written: {line}" for line in changed if not mounted.fullmatch(line)]
        code, _, _ = self.service.podman.run("exec", self.service.name, "touch", "/tmp/x")
        if code == 0:
            problems.append("/tmp is writable, so this check proves nothing")
        return "\n".join(problems)

    def doctor_passes_with_the_right_master_key_only(self):
        """Runs `doctor` in a separate container, with the right and with a wrong master key."""
        if problems := self.service.check_exit("doctor", code=0):
            return problems
        other = self.service.podman.secret("another", "0" * 64)
        return self.service.check_exit("doctor", secret=other, code=1, expected="cannot be decrypted with this master key")

    def it_is_healthy_with_and_without_the_database(self):
        """A restart would not help without a database. /ready reports that the service is not ready."""
        problems = [] if self.service.health()[0] else ["unhealthy with the database"]
        if self.service.state().get("Health", {}).get("Status") != "healthy":
            problems.append(f"podman reports {self.service.state().get('Health')}")
        self.database.stop()
        try:
            if not wait_until(lambda: self._internal_status("/ready") == "503"):
                problems.append("/ready does not return 503 without the database")
            healthy, output = self.service.health()
            if not healthy:
                problems.append(f"unhealthy without the database: {output}")
            response = signed(self.service.endpoint, self.key, "GET", f"{ROOT}/organizations".encode())
            if response.status != 503:
                problems.append(f"without the database a request returns {response.status}")
        finally:
            self.database.start()
        if not wait_until(lambda: self._internal_status("/ready") == "200"):
            problems.append("it does not become ready when the database is back")
        return "\n".join(problems)

    def it_is_unhealthy_while_its_process_is_suspended(self):
        """Sends SIGSTOP. It must be healthy again after SIGCONT."""
        self.service.suspend()
        try:
            healthy, _ = self.service.health()
        finally:
            self.service.resume()
        problems = ["it is healthy while it is suspended"] if healthy else []
        if not wait_until(lambda: self.service.health()[0]):
            problems.append("it stays unhealthy after it is resumed")
        return "\n".join(problems)

    def a_stop_waits_for_a_running_request(self):
        """Runs `podman stop` while half of a body has arrived. The request succeeds, and the exit code is 0."""
        body, ended = measurement(2), []
        headers = [*self.key.headers("POST", MEASUREMENTS, body), ("Content-Type", "application/json")]
        headers += [("Content-Length", str(len(body))), ("Expect", "100-continue")]
        with self.service.endpoint.connect() as connection:
            connection.sendall(head_of("POST", MEASUREMENTS, headers, HOST))
            # The service asks for the body, so the request is being processed.
            connection.settimeout(20)
            interim = connection.recv(1024)
            connection.sendall(body[:10])
            began = time.monotonic()
            stopping = threading.Thread(target=lambda: ended.append((self.service.stop(), time.monotonic() - began)))
            stopping.start()
            try:
                is_stopping = wait_until(lambda: '"message":"stopping"' in self.service.logged())
                connection.sendall(body[10:])
                response = read_response(connection, "POST")
                status = response.status
            except (OSError, socket.timeout) as error:
                status = str(error)
            stopping.join()
        problems = [] if interim.startswith(b"HTTP/1.1 100 ") else [f"before the body: {interim!r}"]
        if not is_stopping:
            problems.append("the log has no message about the stop")
        if status != 201:
            problems.append(f"the running request: {status}")
        code, seconds = ended[0] if ended else (None, 0)
        if code != 0:
            problems.append(f"it exited with {code}")
        if seconds >= TIME:
            problems.append(f"it took {seconds:.0f} s, the whole time limit")
        after = self.service.logged().partition('"message":"stopping"')[2].splitlines()[1:]
        unexpected = [line for line in after if '"message":"request completed"' not in line]
        problems += [f"unexpected log line during the stop: {line}" for line in unexpected]
        self.service.start()
        self.service.wait_for_keys(self.keys)
        return "\n".join(problems)

    def the_other_listeners_are_reachable_only_with_another_address(self):
        """By default they are reachable only inside the container, even if their ports are published."""
        problems = []
        targets = ((self.service.internal, b"/live"), (self.service.inspectors, b"/inspector/"))
        for endpoint, path in targets:
            try:
                problems.append(f"{path.decode()} with the default address: {ask(endpoint, 'GET', path).status}")
            except (OSError, http.client.HTTPException):
                pass
        self.service.start(PARTNER_API_INTERNAL_LISTEN="0.0.0.0:9464", PARTNER_API_INSPECTORS_LISTEN="0.0.0.0:9466")
        for endpoint, path in targets:
            response = ask(endpoint, "GET", path)
            if response.status != 200:
                problems.append(f"{path.decode()}: {response.status}")
        healthy, output = self.service.health()
        if not healthy:
            problems.append(f"unhealthy: {output}")
        return "\n".join(problems)

    def it_is_unhealthy_without_an_internal_listener(self):
        """It serves, but its health cannot be checked."""
        self.service.start(PARTNER_API_INTERNAL_LISTEN="off")
        healthy, _ = self.service.health()
        code = self.service.stop()
        problems = ["it is healthy"] if healthy else []
        return "\n".join(problems if code == 0 else [*problems, f"it exited with {code}"])

    def errors_in_the_configuration_are_explained(self):
        """Expects exit code 1, and a line on standard error that names the option."""
        malformed = self.service.podman.secret("malformed", "nonsense")
        trials = {
            "no database": ({"PARTNER_API_DATABASE_URL": None}, "--database-url: required"),
            "no public address": ({"PARTNER_API_PUBLIC_URL": None}, "--public-url: required"),
            "a malformed master key": ({"secret": malformed}, "master key in /run/secrets/master.key must be 64 hex digits"),
            "no master key's file": (
                {"PARTNER_API_MASTER_KEY_FILE": "/run/secrets/none"},
                "failed to access the master key file /run/secrets/none: No such file",
            ),
            "a master key that others can read": (
                {"PARTNER_API_MASTER_KEY_FILE": "/etc/hostname"},
                "the master key file /etc/hostname must not be accessible to other users",
            ),
        }
        problems = []
        for name, (changed, expected) in trials.items():
            if output := self.service.check_exit(expected=expected, code=1, **changed):
                problems.append(f"{name}: {output}")
        return "\n".join(problems)

    def checks(self):
        """Returns all checks."""
        return [
            self.the_process_has_no_privileges,
            self.only_the_service_can_read_the_master_key,
            self.a_signed_request_succeeds_and_a_forged_one_is_rejected,
            self.a_measurement_is_stored_byte_for_byte,
            self.the_contract_of_this_checkout_is_published,
            self.the_inspectors_page_is_served,
            self.a_report_is_rendered_and_only_the_volume_is_written,
            self.doctor_passes_with_the_right_master_key_only,
            self.a_stop_waits_for_a_running_request,
            self.it_is_healthy_with_and_without_the_database,
            self.it_is_unhealthy_while_its_process_is_suspended,
            self.the_other_listeners_are_reachable_only_with_another_address,
            self.it_is_unhealthy_without_an_internal_listener,
            self.errors_in_the_configuration_are_explained,
        ]
