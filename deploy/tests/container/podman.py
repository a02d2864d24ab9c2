"""Podman, on an ordinary machine and on one that is itself a container; whatever is made by it is removed by it."""

import os
import re
import secrets
import signal
import subprocess

# What podman says where no systemd is to time health checks; they are run by hand here.
NOISE = re.compile(rb"^.*level=error.*systemd connection.*\n", re.M)
PATIENCE = 60
# Of all images that a build leaves, with those of its steps.
LABEL = "org.partner-api.container-check=built"


class PodmanError(Exception):
    """A command of podman's failed, and what it said."""


def quiet(said):
    """What podman said, without its noise."""
    return NOISE.sub(b"", said).decode(errors="replace").strip()


class Podman:
    """Podman, and what was made with it. `narrow`: the machine lets a container have neither cgroups nor greater limits."""

    def __init__(self, narrow):
        # Of all that is made here, so that it is found again.
        self.mark = f"container-check-{secrets.token_hex(4)}"
        self.of_containers = ["--label", f"container-check={self.mark}"]
        if narrow:
            self.of_containers += ["--cgroups=disabled", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"]
        # In a container there is no making of another one for a step of a build: a changed root has to do.
        self.of_builds = ["--isolation", "chroot"] if narrow else []
        self.volumes, self.secrets = [], []

    def tried(self, *words, patience=PATIENCE, **options):
        """Runs a command; its code, and what it said on both streams, podman's noise left out."""
        done = subprocess.run(["podman", *words], capture_output=True, timeout=patience, check=False, **options)
        return done.returncode, done.stdout.decode(errors="replace").strip(), quiet(done.stderr)

    def do(self, *words, **options):
        """Runs a command, which must do what it says; returns what it prints."""
        code, said, told = self.tried(*words, **options)
        if code:
            raise PodmanError(f"podman {' '.join(words)}: {told or said or code}")
        return said

    def log(self, container):
        """What a container's program has said on both streams."""
        _, said, told = self.tried("logs", container)
        return f"{said}\n{told}".strip()

    def build(self, *words, of):
        """Builds an image of those named `of`, and shows what is said; its code. Interrupted, it leaves nothing."""
        before = self._working(of)
        always = [*self.of_builds, "--label", LABEL, "--pull=never", "--format", "docker"]
        process = subprocess.Popen(["nice", "podman", "build", *always, *words], start_new_session=True)
        try:
            return process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            # Podman leaves what the steps were made in when it is interrupted.
            if left := self._working(of) - before:
                self.do("rm", "--force", *left)
            raise

    def _working(self, of):
        """The containers that steps of builds are made in, as far as they can be ours."""
        images = set(self.images())
        lines = self.do("ps", "--all", "--external", "--no-trunc", "--format", "{{.Status}} {{.ID}} {{.ImageID}} {{.Image}}")
        rows = [line.split() for line in lines.splitlines() if line.startswith("Storage ")]
        return {container for _, container, number, name in rows if number in images or name in of}

    def images(self):
        """The ids of all images that this and earlier runs have left, those of steps too."""
        listed = self.do("images", "--all", "--quiet", "--no-trunc", "--filter", f"label={LABEL}").split()
        return list(dict.fromkeys(image.removeprefix("sha256:") for image in listed))

    def volume(self, name):
        """Makes a volume; the name it has."""
        self.volumes.append(f"{self.mark}-{name}")
        return self.do("volume", "create", self.volumes[-1])

    def secret(self, name, text):
        """Makes a secret; the name it has."""
        self.secrets.append(f"{self.mark}-{name}")
        self.do("secret", "create", self.secrets[-1], "-", input=text.encode())
        return self.secrets[-1]

    def remove_all(self):
        """Removes the containers, volumes and secrets that were made."""
        containers = self.do("ps", "--all", "--quiet", "--filter", f"label=container-check={self.mark}").split()
        if containers:
            self.do("rm", "--force", "--time", "5", *containers)
        for volume in self.volumes:
            self.tried("volume", "rm", "--force", volume)
        for secret in self.secrets:
            self.tried("secret", "rm", secret)
