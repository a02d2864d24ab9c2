"""A restored copy of a cluster: a Postgres of its own, beside the cluster and never over it."""

import datetime
import os
import pathlib
import re
import shutil

from .layout import ADDRESS, CLUSTER, LONGEST_SOCKET, fill, free_port, write
from .programs import HaError, processes_in, wait_until

#: Seconds that the restored Postgres may take to read the archive up to the wanted moment.
RECOVERY = 600


def moment(text):
    """A time as pgBackRest and Postgres read it, in UTC."""
    try:
        # Before 3.11 Python knows neither `Z` nor an offset of hours alone.
        plain = re.sub(r"(?<=\d)([+-]\d\d)$", r"\1:00", text.strip().replace("Z", "+00:00"))
        time = datetime.datetime.fromisoformat(plain)
    except ValueError:
        raise HaError(f"{text!r} is no time; write it as 2026-11-22T01:02:03Z, or with another offset") from None
    if time.tzinfo is None:
        raise HaError(f"{text!r} says no offset from UTC; write it as {text}Z if it is UTC")
    if time > datetime.datetime.now(datetime.timezone.utc):
        raise HaError(f"{text} is still to come")
    return time.astimezone(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f+00")


class Restored:
    """A restored Postgres in a folder."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, pathlib.Path(folder).resolve()
        self.data, self.sockets, self.log = self.folder / "data", self.folder / "run", self.folder / "postgres.log"
        self.port = free_port()

    def restore(self, to, say):
        """Restores the newest backup from before `to` (None: the newest of all) and what the archive has since, up to `to`,
        and starts a Postgres on it, which is a primary of its own."""
        account, where = self.cluster.account, self.cluster.layout
        if self.folder.exists() and any(self.folder.iterdir()):
            raise HaError(f"{self.folder} is not empty; what is there is not written over: name a new folder")
        if self.folder == where.folder or where.folder in self.folder.parents:
            raise HaError(f"{self.folder} is in the cluster's own folder; name another one")
        if len(os.fsencode(self.sockets / ".s.PGSQL.65535")) > LONGEST_SOCKET:
            raise HaError(f"{self.folder} is too long a path for Postgres' socket; name a shorter one")
        account.folder(self.folder)
        if not account.reaches(self.folder):
            raise HaError(f"Postgres runs as the user {account.name}, which cannot enter {self.folder}; name another folder")
        account.folder(self.sockets)
        self._archive_until_now(say)
        values = {**where.values("node1", account, self.cluster.postgres_bin), "DATA": self.data}
        values.update(SOCKETS=self.sockets, RUN=self.sockets, LOGS=self.folder, POSTGRES_PORT=self.port)
        config = self.folder / "pgbackrest.conf"
        write(config, fill("pgbackrest.conf", values), account)
        target = ["--type=time", f"--target={to}", "--target-action=promote"] if to else ["--type=default"]
        say(f"restoring into {self.data}")
        # It must never write into the archive of the cluster that it is a copy of.
        command = ["pgbackrest", f"--config={config}", f"--stanza={CLUSTER}", "--archive-mode=off", *target, "restore"]
        try:
            account.run(command, timeout=24 * 3600)
        except HaError:
            # Nothing was restored, and the next attempt may use the folder.
            shutil.rmtree(self.folder)
            raise
        say("reading the archive")
        self._start()

    def _archive_until_now(self, say):
        """Has the running cluster archive what it has written, so that a moment just gone can be restored, too."""
        if self.cluster.leader():
            self.cluster.pgbackrest("check")
        else:
            say("the cluster does not run: what it had not archived, a minute at most, is not there")

    def _start(self):
        # What Patroni wrote for the node that was backed up is in its configuration still.
        settings = {
            "listen_addresses": ADDRESS,
            "port": self.port,
            "unix_socket_directories": self.sockets,
            "hba_file": self.data / "pg_hba.conf",
            "ident_file": self.data / "pg_ident.conf",
            "synchronous_standby_names": "",
            "primary_conninfo": "",
            "primary_slot_name": "",
            "cluster_name": "restored",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        account = self.cluster.account
        process = account.start([self.cluster.postgres_bin / "postgres", "-D", self.data, *options], self.log)
        is_over = lambda: process is None or not process.is_alive() or self.query("SELECT pg_is_in_recovery()") == "f"  # noqa: E731
        if not wait_until(is_over, RECOVERY, every=0.3) or process is None or not process.is_alive():
            words = self.log.read_text().strip().splitlines()[-5:]
            raise HaError(
                "the restored Postgres did not come up. \"recovery ended before configured recovery target was reached\" means "
                "that nothing was committed after that moment: leave --to out. Its last words:\n  " + "\n  ".join(words)
            )

    def query(self, sql, database="postgres"):
        """Rows from the restored Postgres, columns separated by `|`; None while it cannot be asked."""
        command = [self.cluster.postgres_bin / "psql", "-XAtq", "-h", self.sockets, "-p", self.port, "-U", "postgres"]
        done = self.cluster.account.run([*command, "-d", database, "-f", "-"], stdin=sql, check=False)
        return done.stdout.strip() if done.returncode == 0 else None

    def stop_command(self):
        """What stops it."""
        command = f"{self.cluster.postgres_bin / 'pg_ctl'} stop -D {self.data}"
        return command if os.geteuid() else f"runuser -u {self.cluster.account.name} -- {command}"

    def stop(self):
        if processes_in(self.data):
            pg_ctl = self.cluster.postgres_bin / "pg_ctl"
            self.cluster.account.run([pg_ctl, "stop", "-D", self.data, "-m", "fast", "-w"], check=False)
