"""Programs, the user that they run as, and their processes."""

import dataclasses
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import time

#: The programs and their Debian packages.
PACKAGES = {
    "etcd": "etcd-server",
    "haproxy": "haproxy",
    "pgbackrest": "pgbackrest",
    "pgbouncer": "pgbouncer",
    "psql": "postgresql-client",
}
#: `script/setup --ha` installs the pinned version (script/requirements/ha.txt) here. Debian's is not safe: see README.md.
PATRONI = pathlib.Path(__file__).resolve().parents[3] / ".venv" / "bin" / "patroni"
#: Debian installs some of them outside an ordinary user's PATH.
PATH = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"


class HaError(Exception):
    """An error with its remedy, which is shown without a traceback."""


def missing_packages(programs=PACKAGES):
    """Returns the packages of the missing programs."""
    missing = {PACKAGES.get(name, name) for name in programs if not shutil.which(name, path=PATH)}
    return sorted(missing | (set() if PATRONI.exists() else {"patroni"}))


def postgres_bin():
    """Returns the folder of Debian's newest Postgres server."""
    folders = pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = max(folders, key=lambda path: int(path.parts[4]), default=None)
    if newest is None:
        raise HaError("failed to find Postgres in /usr/lib/postgresql; install the package postgresql (script/setup)")
    return newest.parent


@dataclasses.dataclass(frozen=True)
class Account:
    """The user that runs all processes of the cluster: the current user, or `postgres` instead of root, because Postgres does
    not run as root."""

    name: str
    uid: int
    gid: int

    @classmethod
    def choose(cls):
        """Selects the account."""
        try:
            entry = pwd.getpwuid(os.geteuid()) if os.geteuid() else pwd.getpwnam("postgres")
        except KeyError:
            raise HaError("Postgres does not run as root, and there is no user `postgres`; install postgresql") from None
        return cls(entry.pw_name, entry.pw_uid, entry.pw_gid)

    def _become(self):
        return {} if os.geteuid() else {"user": self.uid, "group": self.gid, "extra_groups": []}

    @staticmethod
    def _environment(more):
        # Other variables are dropped, because they may contain secrets or change Postgres' programs (PGHOST, PGDATA).
        kept = {name: os.environ[name] for name in ("TZ",) if name in os.environ}
        return {"PATH": PATH, "LC_ALL": "C.UTF-8", **kept, **(more or {})}

    def start(self, command, log, environment=None):
        """Starts a process that outlives this one, with its output in the file `log`."""
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
        """Runs a program and returns its result. A failure is an error with the program's output."""
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
            raise HaError(f"{command[0]} did not finish within {timeout} s") from None
        if check and done.returncode:
            output = (done.stderr or done.stdout).strip()
            raise HaError(f"{pathlib.Path(command[0]).name} failed ({done.returncode}): {output}")
        return done

    def set_owner(self, path, mode):
        """Sets the owner of `path` to this account, and its mode."""
        os.chmod(path, mode)
        os.chown(path, self.uid, self.gid)

    def folder(self, path):
        """Creates a folder that only this account can enter, unless it exists."""
        path.mkdir(parents=True, exist_ok=True)
        self.set_owner(path, 0o700)
        return path

    def can_enter(self, folder):
        """Returns whether the account can enter `folder`."""
        return self.run(["test", "-x", folder], check=False).returncode == 0


@dataclasses.dataclass(frozen=True)
class Process:
    """A started process, identified by its pid and its start time, because pids are reused."""

    pid: int
    began: int

    @classmethod
    def of(cls, pid):
        """Returns the current process with this pid, or None."""
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        # A zombie has ended, but its parent has not waited for it yet.
        return None if fields[0] == "Z" else cls(pid, int(fields[19]))

    def is_alive(self):
        """Returns whether this process still runs."""
        return Process.of(self.pid) == self

    def signal(self, number):
        """Sends a signal if this process still runs."""
        if self.is_alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass

    def stop(self, timeout=30):
        """Terminates the process, and kills it after `timeout` seconds."""
        self.signal(signal.SIGTERM)
        if not wait_until(lambda: not self.is_alive(), timeout):
            self.signal(signal.SIGKILL)
            wait_until(lambda: not self.is_alive(), 5)


def processes_in(folder):
    """Returns the processes whose working directory is `folder`. All processes of a Postgres work in its data folder."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "cwd") == str(folder):
                found.append(Process.of(int(entry.name)))
        except OSError:
            continue
    return [process for process in found if process]


def wait_until(condition, seconds, every=0.1):
    """Returns whether `condition` becomes true in time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= until:
            return False
        time.sleep(every)
    return True
