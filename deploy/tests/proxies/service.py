"""A service of our own: a private database, a partner, a key, and another one with an allowlist."""

import json
import os
import random
import secrets
import signal
import socket
import subprocess
import time

from wire import ROOT, Door, Key, ask, signed


def free_port():
    """A port of loopback that nobody has, and that the system gives to nobody who asks for any: those begin at 32768."""
    while True:
        port = random.randrange(10240, 32768)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


class Service:
    """The program `partner-api`, serving."""

    # The only address from which the second key may be used.
    ALLOWED = "127.0.0.77"

    def __init__(self, program, folder):
        self.folder = folder
        self.command = [program]
        self.door = Door("directly", free_port())
        self.internal = Door("internally", free_port())
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
        """Starts it, and returns when it answers."""
        command = [
            *self.command,
            "serve",
            "--listen",
            f"127.0.0.1:{self.door.port}",
            "--internal-listen",
            f"127.0.0.1:{self.internal.port}",
            # For as long as a check takes: a second signal ends it.
            "--drain",
            "1h",
            "--trusted-proxies",
            "127.0.0.1/32",
        ]
        command += ["--ip-limit", "0", "--renderers", "0", "--log-format", "json", "--statement-timeout", "20s"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, cwd=self.folder)
        self.answers()

    def has_ended(self):
        """Whether it runs no more."""
        return self.process.poll() is not None

    def answers(self):
        """Returns when it answers."""
        for _ in range(600):
            if self.has_ended():
                break
            try:
                if ask(self.door, "HEAD", b"/openapi.yaml").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise SystemExit(f"the service did not start:\n{self.logged()[-2000:]}")

    def stop(self):
        """Stops it in order, with its database."""
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
        """From here on it is not ready, and serves."""
        self.process.terminate()
        while ask(self.internal, "GET", b"/ready").status != 503:
            time.sleep(0.05)

    def freeze(self):
        """It keeps its connections and answers nothing."""
        self.process.send_signal(signal.SIGSTOP)
        # The last of its threads has stopped then.
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def thaw(self):
        """It goes on."""
        self.process.send_signal(signal.SIGCONT)

    def operate(self, *words):
        """An operator's command; what it prints as JSON."""
        done = subprocess.run(
            [*self.command, *words, "--json"], env=self.environment, capture_output=True, cwd=self.folder, check=False
        )
        if done.returncode:
            raise SystemExit(f"partner-api {' '.join(words)}: {done.stderr.decode()}")
        return json.loads(done.stdout)

    def furnish(self):
        """A partner who may read and write one branch; his key, and his key for one address."""
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
        """The token of an inspector of the branch."""
        return self.operate("inspector", "create", "I\u015f\u0131k Usta", "--branch", "E1")["result"]["token"]

    def learns(self, keys):
        """Returns when it knows the keys, and the allowlist."""
        target = f"{ROOT}/health".encode()
        for _ in range(100):
            if [signed(self.door, key, "GET", target).status for key in keys] == [200, 401]:
                answer = signed(self.door, keys[1], "GET", target)
                if "allowlist" in answer.error["message"]:
                    return
            time.sleep(0.1)
        raise SystemExit("the service does not know the keys after 10 s")

    def raw_measurement(self, measurement_id):
        """The bytes of a measurement, as they are stored."""
        command = [*self.command, "measurement", "raw", measurement_id]
        return subprocess.run(command, env=self.environment, capture_output=True, cwd=self.folder, check=True).stdout

    def logged(self):
        """All that it has logged."""
        with open(self.log, encoding="utf-8") as log:
            return log.read()
