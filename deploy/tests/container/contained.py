"""The service in a container, started as the head of the Containerfile describes, with a separate database."""

import json
import os
import secrets

from service import Service, free_port
from wire import HOST, Endpoint

# The options from the head of the Containerfile. As with Docker, a read-only root has no tmpfs folders.
LOCKED = "--read-only --read-only-tmpfs=false --cap-drop all --security-opt no-new-privileges".split()
VOLUME = "/var/lib/partner-api"
SOCKET = "/run/postgresql"
TIME = 40


class Contained(Service):
    """The service of `deploy/tests/proxies`, running in a container."""

    def __init__(self, podman, image, database, folder):
        self.podman, self.image, self.folder = podman, image, folder
        self.endpoint = Endpoint("the container", free_port())
        self.internal = Endpoint("its internal listener", free_port())
        self.inspectors = Endpoint("its inspectors' listener", free_port())
        self.key = secrets.token_hex(32)
        self.volume = podman.volume("data")
        self.secret = podman.secret("key", self.key)
        self.environment = dict(os.environ)
        self.settings = {
            "PARTNER_API_DATABASE_URL": database.url(SOCKET),
            "PARTNER_API_ENVIRONMENT": "test",
            "PARTNER_API_PUBLIC_URL": f"https://{HOST}",
            "PARTNER_API_IP_LIMIT": "0",
        }
        self.database = ["--volume", f"{database.socket}:{SOCKET}"]
        # Each operator's command runs in a separate container, which is removed when it ends.
        self.command = ["podman", "run", "--rm", "--no-healthcheck", *self.run_arguments(), image]
        self.name, self.number = "", 0

    def run_arguments(self, secret=None, **changed):
        """Returns the arguments of `podman run`. Settings can be changed, and removed with None."""
        settings = {name: value for name, value in {**self.settings, **changed}.items() if value is not None}
        return [
            *self.podman.container_options,
            *LOCKED,
            *self.database,
            *("--volume", f"{self.volume}:{VOLUME}"),
            *("--secret", f"{secret or self.secret},target=/run/secrets/master.key,uid=10001,mode=0400"),
            *(word for name, value in settings.items() for word in ("--env", f"{name}={value}")),
        ]

    def start(self, **changed):
        """Starts a new container instead of the previous one, and returns when the service responds."""
        if self.name and not self.has_ended():
            self.stop()
        self.number += 1
        self.name = f"{self.podman.mark}-{self.number}"
        ports = ((self.endpoint, 8080), (self.internal, 9464), (self.inspectors, 9466))
        published = [word for endpoint, port in ports for word in ("--publish", f"127.0.0.1:{endpoint.port}:{port}")]
        self.podman.run_checked("run", "--detach", "--name", self.name, *published, *self.run_arguments(**changed), self.image)
        self.wait_until_ready()

    def has_ended(self):
        """Returns whether the container has stopped."""
        return self.state()["Status"] != "running"

    def state(self):
        """Returns the container's state from podman."""
        return json.loads(self.podman.run_checked("container", "inspect", "--format", "{{json .State}}", self.name))

    def health(self):
        """Runs the health check. Returns whether it passes, and its output."""
        code, output, errors = self.podman.run("healthcheck", "run", self.name)
        return code == 0, output or errors

    def suspend(self):
        """Suspends the process. It keeps its connections and does not respond."""
        self.podman.run_checked("kill", "--signal", "STOP", self.name)

    def resume(self):
        """Resumes the process."""
        self.podman.run_checked("kill", "--signal", "CONT", self.name)

    def stop(self):
        """Stops the container gracefully, as an operator does. Returns the exit code."""
        self.podman.run_checked("stop", "--time", str(TIME), self.name, timeout=2 * TIME)
        return self.state()["ExitCode"]

    def execute(self, *arguments):
        """Runs a command in the container, and returns its output."""
        return self.podman.run_checked("exec", self.name, *arguments)

    def logged(self):
        """Returns the whole log."""
        return self.podman.log(self.name)

    def check_exit(self, *arguments, code, expected="", **changed):
        """Runs the program with other settings in a separate container. Returns a message unless the exit code and the output
        are as expected."""
        options = ["--rm", "--no-healthcheck", *self.run_arguments(**changed)]
        exit_code, output, errors = self.podman.run("run", *options, self.image, *arguments)
        is_right = exit_code == code and expected in f"{output}\n{errors}"
        return "" if is_right else f"it exited with {exit_code} and printed: {output}\n{errors}"
