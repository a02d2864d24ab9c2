"""Which programs there are, as whom they run, and what became of them."""

import dataclasses
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import time

#: The programs, and the Debian package that each is in.
PACKAGES = {
    "etcd": "etcd-server",
    "patroni": "patroni",
    "haproxy": "haproxy",
    "pgbackrest": "pgbackrest",
    "pgbouncer": "pgbouncer",
    "psql": "postgresql-client",
}
#: Debian keeps some of them where an ordinary user's PATH does not look.
PATH = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"


class HaError(Exception):
    """What went wrong, and what to do about it; shown without a traceback."""


def missing_packages(programs=PACKAGES):
    """The packages of those programs that are not here, for a message."""
    return sorted({PACKAGES.get(name, name) for name in programs if not shutil.which(name, path=PATH)})


def postgres_bin():
    """The folder of Debian's newest Postgres server."""
    folders = pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = max(folders, key=lambda path: int(path.parts[4]), default=None)
    if newest is None:
        raise HaError("no Postgres in /usr/lib/postgresql; install the package postgresql (script/setup)")
    return newest.parent


@dataclasses.dataclass(frozen=True)
class Account:
    """The user that everything of the cluster runs as: ourselves, but for root `postgres`, for Postgres refuses root."""

    name: str
    uid: int
    gid: int

    @classmethod
    def choose(cls):
        """The account, or why there is none."""
        try:
            entry = pwd.getpwuid(os.geteuid()) if os.geteuid() else pwd.getpwnam("postgres")
        except KeyError:
            raise HaError("Postgres does not run as root, and there is no user `postgres`; install postgresql") from None
        return cls(entry.pw_name, entry.pw_uid, entry.pw_gid)

    def _become(self):
        return {} if os.geteuid() else {"user": self.uid, "group": self.gid, "extra_groups": []}

    @staticmethod
    def _environment(more):
        # Nothing else of ours: secrets may stand there, and what steers Postgres' programs (PGHOST, PGDATA).
        kept = {name: os.environ[name] for name in ("TZ",) if name in os.environ}
        return {"PATH": PATH, "LC_ALL": "C.UTF-8", **kept, **(more or {})}

    def start(self, command, log, environment=None):
        """Starts what goes on running when we have ended; its words go to the file `log`."""
        with open(log, "ab") as output:
            os.fchown(output.fileno(), self.uid, self.gid)
            process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd="/",
                env=self._environment(environment),
                **self._become(),
            )
        return Process.of(process.pid)

    def run(self, command, stdin=None, environment=None, timeout=300, check=True):
        """Runs a program to its end and returns what it printed; one that fails is an error with its words."""
        try:
            done = subprocess.run(
                [str(part) for part in command],
                input=stdin,
                stdin=subprocess.DEVNULL if stdin is None else None,
                capture_output=True,
                text=True,
                timeout=timeout,
                cwd="/",
                env=self._environment(environment),
                **self._become(),
            )
        except subprocess.TimeoutExpired:
            raise HaError(f"{command[0]} had not finished after {timeout} s") from None
        if check and done.returncode:
            words = (done.stderr or done.stdout).strip()
            raise HaError(f"{pathlib.Path(command[0]).name} failed ({done.returncode}): {words}")
        return done

    def give(self, path, mode):
        """Makes `path` this account's, and closed to others as `mode` says."""
        os.chmod(path, mode)
        os.chown(path, self.uid, self.gid)

    def folder(self, path):
        """Makes a folder for this account alone, where there is none."""
        path.mkdir(parents=True, exist_ok=True)
        self.give(path, 0o700)
        return path

    def reaches(self, folder):
        """Whether it can enter `folder`."""
        return self.run(["test", "-x", folder], check=False).returncode == 0


@dataclasses.dataclass(frozen=True)
class Process:
    """A process that we started: its number, and when it began, for numbers are used again."""

    pid: int
    began: int

    @classmethod
    def of(cls, pid):
        """The process that has the number now, or None."""
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        # A zombie has ended; whoever started it has not asked yet.
        return None if fields[0] == "Z" else cls(pid, int(fields[19]))

    def is_alive(self):
        """Whether it runs, and is still the same."""
        return Process.of(self.pid) == self

    def signal(self, number):
        """Sends a signal, if it is still the same process."""
        if self.is_alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass

    def stop(self, patience=30):
        """Asks it to end, and after `patience` seconds makes it end."""
        self.signal(signal.SIGTERM)
        if not wait_until(lambda: not self.is_alive(), patience):
            self.signal(signal.SIGKILL)
            wait_until(lambda: not self.is_alive(), 5)


def processes_in(folder):
    """The processes whose working folder is `folder`: every process of a Postgres works in its data folder."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "cwd") == str(folder):
                found.append(Process.of(int(entry.name)))
        except OSError:
            continue
    return [process for process in found if process]


def wait_until(condition, seconds, every=0.1):
    """Whether `condition` came true in time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= until:
            return False
        time.sleep(every)
    return True
