"""Podman, on an ordinary machine and in a container. Tracks everything that it creates, so that it can be removed."""

import os
import re
import secrets
import signal
import subprocess

# Podman's error if there is no systemd to schedule health checks. The checks run them explicitly.
NOISE = re.compile(rb"^.*level=error.*systemd connection.*\n", re.M)
TIMEOUT = 60
# The label of all built images, including intermediate ones.
LABEL = "org.partner-api.container-check=built"


class PodmanError(Exception):
    """A command of podman failed; the message contains its output."""


def without_noise(output):
    """Removes podman's irrelevant errors from its output."""
    return NOISE.sub(b"", output).decode(errors="replace").strip()


class Podman:
    """Podman, and everything created with it. With `narrow`, containers get neither cgroups nor higher limits."""

    def __init__(self, narrow):
        # Part of the names of everything that is created here.
        self.mark = f"container-check-{secrets.token_hex(4)}"
        self.container_options = ["--label", f"container-check={self.mark}"]
        if narrow:
            self.container_options += ["--cgroups=disabled", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"]
        # Inside a container, build steps cannot run in containers, so they use chroot.
        self.build_options = ["--isolation", "chroot"] if narrow else []
        self.volumes, self.secrets = [], []

    def run(self, *arguments, timeout=TIMEOUT, **options):
        """Runs a command. Returns its exit code, its standard output, and its standard error without irrelevant errors."""
        done = subprocess.run(["podman", *arguments], capture_output=True, timeout=timeout, check=False, **options)
        return done.returncode, done.stdout.decode(errors="replace").strip(), without_noise(done.stderr)

    def run_checked(self, *arguments, **options):
        """Runs a command that must succeed, and returns its output."""
        code, output, errors = self.run(*arguments, **options)
        if code:
            raise PodmanError(f"podman {' '.join(arguments)}: {errors or output or code}")
        return output

    def log(self, container):
        """Returns the output of a container's program on both streams."""
        _, output, errors = self.run("logs", container)
        return f"{output}\n{errors}".strip()

    def build(self, *arguments, of):
        """Builds an image from the base images `of`, shows the output, and returns the exit code. Cleans up if interrupted."""
        before = self._working(of)
        always = [*self.build_options, "--label", LABEL, "--pull=never", "--format", "docker"]
        process = subprocess.Popen(["nice", "podman", "build", *always, *arguments], start_new_session=True)
        try:
            return process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            # An interrupted podman leaves the containers of build steps.
            if left := self._working(of) - before:
                self.run_checked("rm", "--force", *left)
            raise

    def _working(self, of):
        """Returns the containers of build steps that may belong to this build."""
        images = set(self.images())
        lines = self.run_checked("ps", "--all", "--external", "--no-trunc", "--format", "{{.Status}} {{.ID}} {{.ImageID}} {{.Image}}")
        rows = [line.split() for line in lines.splitlines() if line.startswith("Storage ")]
        return {container for _, container, number, name in rows if number in images or name in of}

    def images(self):
        """Returns the IDs of all images of this and earlier runs, including intermediate ones."""
        listed = self.run_checked("images", "--all", "--quiet", "--no-trunc", "--filter", f"label={LABEL}").split()
        return list(dict.fromkeys(image.removeprefix("sha256:") for image in listed))

    def volume(self, name):
        """Creates a volume, and returns its name."""
        self.volumes.append(f"{self.mark}-{name}")
        return self.run_checked("volume", "create", self.volumes[-1])

    def secret(self, name, text):
        """Creates a secret, and returns its name."""
        self.secrets.append(f"{self.mark}-{name}")
        self.run_checked("secret", "create", self.secrets[-1], "-", input=text.encode())
        return self.secrets[-1]

    def remove_all(self):
        """Removes all created containers, volumes and secrets."""
        containers = self.run_checked("ps", "--all", "--quiet", "--filter", f"label=container-check={self.mark}").split()
        if containers:
            self.run_checked("rm", "--force", "--time", "5", *containers)
        for volume in self.volumes:
            self.run("volume", "rm", "--force", volume)
        for secret in self.secrets:
            self.run("secret", "rm", secret)
