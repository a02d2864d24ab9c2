"""The service in a container, run as the Containerfile's head says, with a database beside it."""

import json
import os
import secrets

from service import Service, free_port
from wire import HOST, Door

# What the Containerfile's head tells operators to run it with; of Docker's, a read-only root has no folders of memory in it.
LOCKED = "--read-only --read-only-tmpfs=false --cap-drop all --security-opt no-new-privileges".split()
VOLUME = "/var/lib/partner-api"
SOCKET = "/run/postgresql"
TIME = 40


class Contained(Service):
    """The service of `deploy/tests/proxies`, whose program is a container's."""

    def __init__(self, podman, image, database, folder):
        self.podman, self.image, self.folder = podman, image, folder
        self.door = Door("the container", free_port())
        self.internal = Door("its internal listener", free_port())
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
        # An operator's command: a container of its own, gone when it is done.
        self.command = ["podman", "run", "--rm", "--no-healthcheck", *self.words(), image]
        self.name, self.number = "", 0

    def words(self, secret=None, **changed):
        """Words for `podman run`; settings may be changed, and left out with None."""
        settings = {name: value for name, value in {**self.settings, **changed}.items() if value is not None}
        return [
            *self.podman.of_containers,
            *LOCKED,
            *self.database,
            *("--volume", f"{self.volume}:{VOLUME}"),
            *("--secret", f"{secret or self.secret},target=/run/secrets/master.key,uid=10001,mode=0400"),
            *(word for name, value in settings.items() for word in ("--env", f"{name}={value}")),
        ]

    def start(self, **changed):
        """Starts it in a container of its own, in place of the one before, and returns when it answers."""
        if self.name and not self.has_ended():
            self.stop()
        self.number += 1
        self.name = f"{self.podman.mark}-{self.number}"
        published = ["--publish", f"127.0.0.1:{self.door.port}:8080", "--publish", f"127.0.0.1:{self.internal.port}:9464"]
        self.podman.do("run", "--detach", "--name", self.name, *published, *self.words(**changed), self.image)
        self.answers()

    def has_ended(self):
        """Whether it runs no more."""
        return self.state()["Status"] != "running"

    def state(self):
        """What podman knows of how it runs."""
        return json.loads(self.podman.do("container", "inspect", "--format", "{{json .State}}", self.name))

    def health(self):
        """What its health check finds now: whether it is healthy, and what podman says of it."""
        code, said, told = self.podman.tried("healthcheck", "run", self.name)
        return code == 0, said or told

    def freeze(self):
        """It keeps its connections and answers nothing."""
        self.podman.do("kill", "--signal", "STOP", self.name)

    def thaw(self):
        """It goes on."""
        self.podman.do("kill", "--signal", "CONT", self.name)

    def stop(self):
        """Stops it in order, as an operator does; its exit code."""
        self.podman.do("stop", "--time", str(TIME), self.name, patience=2 * TIME)
        return self.state()["ExitCode"]

    def inside(self, *words):
        """What a command says that is run in its container."""
        return self.podman.do("exec", self.name, *words)

    def logged(self):
        """All that it has logged."""
        return self.podman.log(self.name)

    def ends(self, *words, code, expected="", **changed):
        """Runs the program with other settings in a container of its own: nothing if it ends so, saying what is expected."""
        ended, said, told = self.podman.tried("run", "--rm", "--no-healthcheck", *self.words(**changed), self.image, *words)
        return "" if ended == code and expected in f"{said}\n{told}" else f"it ended with {ended} and said: {said}\n{told}"
