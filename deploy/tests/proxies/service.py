"""A private service with a database, a partner, a key, and a second key with an allowlist."""

import json
import os
import random
import secrets
import signal
import socket
import subprocess
import time

from wire import ROOT, Endpoint, Key, ask, signed


def free_port():
    """Returns a free loopback port outside the ephemeral range, which begins at 32768."""
    while True:
        port = random.randrange(10240, 32768)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


class Service:
    """A running `partner-api serve`."""

    # The only address from which the second key may be used.
    ALLOWED = "127.0.0.77"

    def __init__(self, program, folder):
        self.folder = folder
        self.command = [program]
        self.endpoint = Endpoint("directly", free_port())
        self.internal = Endpoint("internally", free_port())
        self.inspectors = Endpoint("directly, for inspectors", free_port())
        self.log = os.path.join(folder, "service.log")
        self.process = None
        key_file = os.path.join(folder, "master.key")
        with open(os.open(key_file, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32))
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PARTNER_API_")},
            "PARTNER_API_MASTER_KEY_FILE": key_file,
            "PARTNER_API_DATA_DIR": os.path.join(folder, "data"),
        }

    def start(self):
        """Starts it, and returns when it responds."""
        command = [
            *self.command,
            "serve",
            "--listen",
            f"127.0.0.1:{self.endpoint.port}",
            "--internal-listen",
            f"127.0.0.1:{self.internal.port}",
            "--inspectors-listen",
            f"127.0.0.1:{self.inspectors.port}",
            # Longer than any check. A second signal ends it.
            "--drain",
            "1h",
            "--trusted-proxies",
            "127.0.0.1/32",
        ]
        command += ["--ip-limit", "0", "--renderers", "0", "--log-format", "json", "--statement-timeout", "20s"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, cwd=self.folder)
        self.wait_until_ready()

    def has_ended(self):
        """Returns whether the process has ended."""
        return self.process.poll() is not None

    def wait_until_ready(self):
        """Returns when it responds."""
        for _ in range(600):
            if self.has_ended():
                break
            try:
                if ask(self.endpoint, "HEAD", b"/openapi.yaml").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise SystemExit(f"the service did not start:\n{self.logged()[-2000:]}")

    def stop(self):
        """Stops the service and its database gracefully."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            try:
                self.drain()
                self.process.terminate()
                self.process.wait(30)
            except (OSError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()

    def drain(self):
        """Starts draining: the service is not ready, but still serves."""
        self.process.terminate()
        while ask(self.internal, "GET", b"/ready").status != 503:
            time.sleep(0.05)

    def suspend(self):
        """Suspends the process. It keeps its connections and does not respond."""
        self.process.send_signal(signal.SIGSTOP)
        # Returns when all threads have stopped.
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def resume(self):
        """Resumes the process."""
        self.process.send_signal(signal.SIGCONT)

    def operate(self, *arguments):
        """Runs an operator's command, and returns its JSON output."""
        done = subprocess.run(
            [*self.command, *arguments, "--json"], env=self.environment, capture_output=True, cwd=self.folder, check=False
        )
        if done.returncode:
            raise SystemExit(f"partner-api {' '.join(arguments)}: {done.stderr.decode()}")
        return json.loads(done.stdout)

    def create_keys(self):
        """Creates a partner that may read and write one branch. Returns a key, and a second key that only one address may use."""
        self.operate("partner", "create", "Edge")
        self.operate("organization", "create", "Edge Inspections", "--slug", "edge")
        self.operate("branch", "create", "edge", "E1", "--name", "First", "--city", "Ankara")
        self.operate("grant", "add", "Edge", "edge")
        keys = []
        for _ in range(2):
            made = self.operate("key", "create", "Edge", "--scope", "test-line:write", "--rate-limit", "100000")
            keys.append(Key(made["result"]["key_id"], made["result"]["secret"]))
        self.operate("allowlist", "add", keys[1].key_id, f"{self.ALLOWED}/32")
        self.operate("allowlist", "mode", keys[1].key_id, "enforce")
        return keys

    def inspector(self):
        """Creates an inspector of the branch, and a form for the reports, and returns the token."""
        template = {"code": "BODY", "name": "Body", "score_category": "BODY", "points": [{"code": "HOOD", "name": "Hood"}]}
        with open(os.path.join(self.folder, "templates.yaml"), "w", encoding="utf-8") as file:
            json.dump([template], file)
        self.operate("template", "import", "edge", "templates.yaml")
        return self.operate("inspector", "create", "I\u015f\u0131k Usta", "--branch", "E1")["result"]["token"]

    def wait_for_keys(self, keys):
        """Returns when the service knows the keys and the allowlist."""
        target = f"{ROOT}/health".encode()
        for _ in range(100):
            if [signed(self.endpoint, key, "GET", target).status for key in keys] == [200, 401]:
                response = signed(self.endpoint, keys[1], "GET", target)
                if "allowlist" in response.error["message"]:
                    return
            time.sleep(0.1)
        raise SystemExit("the service did not load the keys within 10 s")

    def raw_measurement(self, measurement_id):
        """Returns the stored bytes of a measurement."""
        command = [*self.command, "measurement", "raw", measurement_id]
        return subprocess.run(command, env=self.environment, capture_output=True, cwd=self.folder, check=True).stdout

    def logged(self):
        """Returns the whole log."""
        with open(self.log, encoding="utf-8") as log:
            return log.read()
