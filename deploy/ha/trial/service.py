"""The service on a cluster: its data and its replicas."""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import time

from loopback.layout import DATABASE, USER
from loopback.programs import HaError, Process, wait_until

#: The timeout in seconds for a start on a busy machine.
START_TIMEOUT = 120


@dataclasses.dataclass(frozen=True)
class Partner:
    """A partner that may submit measurements."""

    key_id: str
    secret: str
    branch_code: str
    #: The plate of an open report of the branch.
    plate: str


@dataclasses.dataclass(frozen=True)
class Data:
    """The partner, and the files that the service needs besides the database."""

    partner: Partner
    master_key_file: pathlib.Path
    storage: pathlib.Path


def fill_database(program, cluster, folder):
    """Fills the cluster's database with the sandbox's data. A sandbox uses a private database, so the data are copied with
    pg_dump. The master key of its secrets stays in `folder`."""
    sandbox = folder / "sandbox"
    with open(folder / "sandbox.log", "wb") as log:
        process = subprocess.Popen(
            [program, "sandbox", "--port", "0", "--data-dir", sandbox], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        # The sandbox prints this line when it is ready.
        ready = lambda: b"Serving http" in (folder / "sandbox.log").read_bytes()  # noqa: E731
        if not wait_until(lambda: ready() or process.poll() is not None, START_TIMEOUT) or not ready():
            raise HaError(f"the sandbox did not start; see {folder / 'sandbox.log'}")
        pid = (sandbox / "postgres" / "postgres" / "data" / "postmaster.pid").read_text().split("\n")
        port, sockets = pid[3], pid[4]
        dump = [cluster.postgres_bin / "pg_dump", "--no-owner", "--no-privileges", "-h", sockets, "-p", port]
        sql = cluster.account.run([*dump, "-U", "partner_api", "-d", "partner_api"]).stdout
    finally:
        process.terminate()
        process.wait(START_TIMEOUT)
    cluster.psql(f"SET ROLE {USER};\n{sql}", database=DATABASE)
    description = json.loads((sandbox / "sandbox.json").read_text())
    key = next(partner for partner in description["partners"] if partner["name"] == "alpha")
    report = description["examples"]["open_report"]
    partner = Partner(key["key_id"], key["secret"], report["branch_code"], report["plate"])
    return Data(partner, sandbox / "master.key", sandbox / "files")


class Replica:
    """A running `partner-api serve`."""

    def __init__(self, name, program, cluster, data, folder, environment=None):
        layout = cluster.layout
        self.name = name
        self.log = folder / f"{name}.log"
        variables = {
            "PARTNER_API_DATABASE_URL": layout.url(layout.ports.write),
            "PARTNER_API_READ_DATABASE_URL": layout.url(layout.ports.read),
            "PARTNER_API_MASTER_KEY_FILE": str(data.master_key_file),
            "PARTNER_API_STORAGE_DIR": str(data.storage),
            "PARTNER_API_LOG_FORMAT": "json",
            "PARTNER_API_IP_LIMIT": "0",
            **(environment or {}),
        }
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PARTNER_API_")}
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [
                    *[program, "serve", "--listen", "127.0.0.1:0", "--internal-listen", "127.0.0.1:0"],
                    *["--inspectors-listen", "off", "--renderers", "0"],
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**inherited, **variables},
            )
        self.address = self._address()

    def _address(self):
        until = time.monotonic() + START_TIMEOUT
        while time.monotonic() < until and self.process.poll() is None:
            for line in self.log.read_text().splitlines():
                with contextlib.suppress(ValueError):
                    entry = json.loads(line)
                    if entry.get("message") == "serving":
                        return entry["address"]
            time.sleep(0.1)
        self.stop()
        raise HaError(f"a replica did not start; see {self.log}")

    def is_alive(self):
        return Process.of(self.process.pid) is not None and self.process.poll() is None

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
