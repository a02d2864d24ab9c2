"""Checks of the container as it runs; each returns what is wrong, or nothing."""

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
from passing import measurement
from wire import HOST, MEASUREMENTS, ROOT, Key, answer_on, ask, head_of, signed

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
# Asks the internal listener from inside, where alone it listens, and prints the answer's status.
ASKED = r"""
exec 3<>/dev/tcp/127.0.0.1/9464
printf 'GET %s HTTP/1.1\r\nHost: internal\r\nConnection: close\r\n\r\n' "$1" >&3
read -r _ status _ <&3
echo "$status"
"""


def until(what, seconds=30):
    """Whether something comes true in time."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


class Running:
    """The checks, in the order in which they are made; all but the last three leave it serving as it was."""

    def __init__(self, service, database, keys, folder):
        self.service, self.database, self.keys, self.folder = service, database, keys, folder
        self.key = keys[0]

    def _asked(self, path):
        return self.service.inside("bash", "-c", ASKED, "-", path)

    def nobody_privileged_runs_it(self):
        """What the kernel says of the process."""
        status = dict(re.findall(r"^(\w+):\s*(.*)$", self.service.inside("cat", "/proc/1/status"), re.M))
        none = "0" * 16
        expected = {
            "Uid": ["10001"] * 4,
            "Gid": ["10001"] * 4,
            "NoNewPrivs": ["1"],
            **{name: [none] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")},
        }
        return "\n".join(f"{name}: {status[name]}" for name, value in expected.items() if status[name].split() != value)

    def the_master_key_is_its_own_alone(self):
        """The file's owner and mode, and neither environment nor log have what is in it."""
        wrong = []
        of_file = self.service.inside("stat", "--format", "%u %a", "/run/secrets/master.key")
        if of_file != "10001 400":
            wrong.append(f"owner and mode: {of_file}")
        if self.service.key in self.service.inside("cat", "/proc/1/environ") + self.service.logged():
            wrong.append("it stands in the environment or in the log")
        return "\n".join(wrong)

    def a_signed_request_is_answered_and_a_forged_one_is_not(self):
        """200, and 401 with another secret."""
        target = f"{ROOT}/health".encode()
        right = signed(self.service.door, self.key, "GET", target)
        wrong = [] if right.status == 200 else [f"signed: {right.status} {right.body[:300]!r}"]
        forger = Key(self.key.key_id, self.key.secret[:-4] + ("aaaa" if self.key.secret[-4:] != "aaaa" else "bbbb"))
        forged = signed(self.service.door, forger, "GET", target).envelope_problem(401, "invalid_signature")
        return "\n".join([*wrong, forged] if forged else wrong)

    def what_is_sent_is_stored_byte_for_byte(self):
        """A measurement, as an operator's command prints it."""
        body = measurement(1)
        answer = signed(self.service.door, self.key, "POST", MEASUREMENTS, body)
        if answer.status != 201:
            return f"{answer.status} {answer.body[:300]!r}"
        stored = self.service.raw_measurement(json.loads(answer.body)["data"]["measurement_id"])
        return "" if stored == body else f"{stored!r} is stored, {body!r} was sent"

    def the_contract_is_published_and_is_that_of_this_checkout(self):
        """The document byte for byte, the site, and the program's version."""
        with open(os.path.join(FOLDER, "spec/partner-api.yaml"), "rb") as file:
            expected = file.read()
        wrong = []
        if ask(self.service.door, "GET", b"/openapi.yaml").body != expected:
            wrong.append("/openapi.yaml is not spec/partner-api.yaml")
        page = ask(self.service.door, "GET", b"/docs/")
        if page.status != 200 or not page.headers.get("Content-Type", "").startswith("text/html"):
            wrong.append(f"/docs/: {page.status} {page.headers.get('Content-Type')}")
        with open(os.path.join(FOLDER, "Cargo.toml"), encoding="utf-8") as file:
            version = re.search(r'^version = "(.*)"$', file.read(), re.M)[1]
        said = self.service.inside("partner-api", "--version")
        if said != f"partner-api {version}":
            wrong.append(f"{said} is not {version}")
        return "\n".join(wrong)

    def the_page_of_inspectors_is_there(self):
        """On the internal listener, which nobody reaches from outside."""
        status = self._asked("/inspector/")
        return "" if status == "200" else f"/inspector/: {status}"

    def a_report_is_rendered_and_nothing_is_written_but_into_the_volume(self):
        """Reports are imported by an operator's command, a PDF is fetched, and lies where it is to lie."""
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
            return f"the import: {done.stderr.decode()}"
        target, answers = f"{ROOT}/inspections/{REPORT}/pdf".encode(), []

        def rendered():
            answers.append(signed(self.service.door, self.key, "GET", target))
            return answers[-1].status != 503

        until(rendered, 60)
        if answers[-1].status != 200 or not answers[-1].body.startswith(b"%PDF-"):
            return f"the PDF: {answers[-1].status} {answers[-1].body[:300]!r}"
        sizes = self.service.inside("find", VOLUME, "-type", "f", "-size", f"{len(answers[-1].body)}c")
        wrong = [] if sizes else [f"no file of {len(answers[-1].body)} bytes lies in {VOLUME}"]
        # Where something is mounted, a folder is made; and the folder that holds it is changed by that.
        mounted = re.compile(r"C /(etc|run|var|var/lib)?|[AC] (/run/secrets(/.*)?|/etc/mtab|" + re.escape(SOCKET) + ")")
        changed = self.service.podman.do("diff", self.service.name).splitlines()
        wrong += [f"written: {line}" for line in changed if not mounted.fullmatch(line)]
        refused, _, told = self.service.podman.tried("exec", self.service.name, "touch", "/tmp/x")
        if refused == 0:
            wrong.append("/tmp can be written to, so this check has seen nothing")
        return "\n".join(wrong)

    def an_operator_is_told_that_all_is_well(self):
        """`doctor`, in a container of its own; and with another master key than the database's, that it is not."""
        if wrong := self.service.ends("doctor", code=0):
            return wrong
        other = self.service.podman.secret("another", "0" * 64)
        return self.service.ends("doctor", secret=other, code=1, expected="do not open under this master key")

    def it_is_healthy_whether_or_not_the_database_is_there(self):
        """Starting it anew would mend nothing; that it is not ready is said to who asks for that."""
        wrong = [] if self.service.health()[0] else ["with the database"]
        if self.service.state().get("Health", {}).get("Status") != "healthy":
            wrong.append(f"podman knows it as {self.service.state().get('Health')}")
        self.database.stop()
        try:
            if not until(lambda: self._asked("/ready") == "503"):
                wrong.append("/ready does not say that the database is away")
            healthy, said = self.service.health()
            if not healthy:
                wrong.append(f"without the database: {said}")
            answer = signed(self.service.door, self.key, "GET", f"{ROOT}/organizations".encode())
            if answer.status != 503:
                wrong.append(f"without the database a request is answered {answer.status}")
        finally:
            self.database.start()
        if not until(lambda: self._asked("/ready") == "200"):
            wrong.append("it is not ready when the database is back")
        return "\n".join(wrong)

    def it_is_unhealthy_while_its_process_stands_still(self):
        """SIGSTOP; and healthy again when it goes on."""
        self.service.freeze()
        try:
            healthy, _ = self.service.health()
        finally:
            self.service.thaw()
        wrong = ["it is healthy while it stands still"] if healthy else []
        if not until(lambda: self.service.health()[0]):
            wrong.append("it stays unhealthy when it goes on")
        return "\n".join(wrong)

    def a_stop_lets_a_request_finish_and_ends_in_order(self):
        """`podman stop`, while half of a body is there: it is answered, the exit code is 0, and the log says so."""
        body, ended = measurement(2), []
        headers = [*self.key.headers("POST", MEASUREMENTS, body), ("Content-Type", "application/json")]
        headers += [("Content-Length", str(len(body))), ("Expect", "100-continue")]
        with self.service.door.connect() as connection:
            connection.sendall(head_of("POST", MEASUREMENTS, headers, HOST))
            # Asked for the body: the request is under way.
            connection.settimeout(20)
            asked = connection.recv(1024)
            connection.sendall(body[:10])
            began = time.monotonic()
            stopping = threading.Thread(target=lambda: ended.append((self.service.stop(), time.monotonic() - began)))
            stopping.start()
            try:
                heard = until(lambda: '"message":"stopping"' in self.service.logged())
                connection.sendall(body[10:])
                answer = answer_on(connection, "POST")
                status = answer.status
            except (OSError, socket.timeout) as error:
                status = str(error)
            stopping.join()
        wrong = [] if asked.startswith(b"HTTP/1.1 100 ") else [f"before the body: {asked!r}"]
        if not heard:
            wrong.append("the log does not say that it stops")
        if status != 201:
            wrong.append(f"the request that was under way: {status}")
        code, seconds = ended[0] if ended else (None, 0)
        if code != 0:
            wrong.append(f"it ended with {code}")
        if seconds >= TIME:
            wrong.append(f"it took {seconds:.0f} s, as long as it was given")
        after = self.service.logged().partition('"message":"stopping"')[2].splitlines()[1:]
        strange = [line for line in after if '"message":"answered"' not in line]
        wrong += [f"logged while it stopped: {line}" for line in strange]
        self.service.start()
        self.service.learns(self.keys)
        return "\n".join(wrong)

    def inspectors_reach_their_page_where_its_listener_is_told_to_listen(self):
        """It hears the container alone until then, published or not."""
        try:
            wrong = [f"unasked: {ask(self.service.internal, 'GET', b'/inspector/').status}"]
        except (OSError, http.client.HTTPException):
            wrong = []
        self.service.start(PARTNER_API_INTERNAL_LISTEN="0.0.0.0:9464")
        page = ask(self.service.internal, "GET", b"/inspector/")
        if page.status != 200:
            wrong.append(f"/inspector/: {page.status}")
        healthy, said = self.service.health()
        if not healthy:
            wrong.append(f"unhealthy: {said}")
        return "\n".join(wrong)

    def without_an_internal_listener_it_is_unhealthy(self):
        """It serves, but nobody can see how it is."""
        self.service.start(PARTNER_API_INTERNAL_LISTEN="off")
        healthy, _ = self.service.health()
        code = self.service.stop()
        wrong = ["it is healthy"] if healthy else []
        return "\n".join(wrong if code == 0 else [*wrong, f"it ended with {code}"])

    def what_cannot_work_says_why(self):
        """The code of what failed, and a line on standard error that names what is to be set."""
        malformed = self.service.podman.secret("malformed", "nonsense")
        trials = {
            "no database": ({"PARTNER_API_DATABASE_URL": None}, "--database-url: needed"),
            "no public address": ({"PARTNER_API_PUBLIC_URL": None}, "--public-url: needed"),
            "a malformed master key": ({"secret": malformed}, "master key in /run/secrets/master.key is not 64 hex digits"),
            "no master key's file": (
                {"PARTNER_API_MASTER_KEY_FILE": "/run/secrets/none"},
                "the master key's file /run/secrets/none: No such file",
            ),
            "a master key that others can read": (
                {"PARTNER_API_MASTER_KEY_FILE": "/etc/hostname"},
                "the master key's file /etc/hostname can be read by other users",
            ),
        }
        wrong = []
        for name, (changed, expected) in trials.items():
            if said := self.service.ends(expected=expected, code=1, **changed):
                wrong.append(f"{name}: {said}")
        return "\n".join(wrong)

    def checks(self):
        """All of them."""
        return [
            self.nobody_privileged_runs_it,
            self.the_master_key_is_its_own_alone,
            self.a_signed_request_is_answered_and_a_forged_one_is_not,
            self.what_is_sent_is_stored_byte_for_byte,
            self.the_contract_is_published_and_is_that_of_this_checkout,
            self.the_page_of_inspectors_is_there,
            self.a_report_is_rendered_and_nothing_is_written_but_into_the_volume,
            self.an_operator_is_told_that_all_is_well,
            self.a_stop_lets_a_request_finish_and_ends_in_order,
            self.it_is_healthy_whether_or_not_the_database_is_there,
            self.it_is_unhealthy_while_its_process_stands_still,
            self.inspectors_reach_their_page_where_its_listener_is_told_to_listen,
            self.without_an_internal_listener_it_is_unhealthy,
            self.what_cannot_work_says_why,
        ]
