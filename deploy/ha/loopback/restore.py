"""A restored copy of a cluster, which is a separate Postgres. The cluster itself is never changed."""

import datetime
import os
import pathlib
import re
import shutil

from .layout import ADDRESS, CLUSTER, MAX_SOCKET_PATH, fill, free_port, write
from .programs import HaError, processes_in, wait_until

#: The timeout in seconds for the restored Postgres to replay the archive.
REPLAY_TIMEOUT = 600


def parse_time(text):
    """Parses a time, and formats it in UTC for pgBackRest and Postgres."""
    try:
        # Python before 3.11 supports neither `Z` nor an offset of only hours.
        plain = re.sub(r"(?<=\d)([+-]\d\d)$", r"\1:00", text.strip().replace("Z", "+00:00"))
        time = datetime.datetime.fromisoformat(plain)
    except ValueError:
        raise HaError(f"{text!r} is not a valid time; expected a time like 2026-11-22T01:02:03Z, with any offset") from None
    if time.tzinfo is None:
        raise HaError(f"{text!r} must have an offset from UTC; write {text}Z if it is UTC")
    if time > datetime.datetime.now(datetime.timezone.utc):
        raise HaError(f"{text} is in the future")
    return time.astimezone(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f+00")


class Restored:
    """A restored Postgres in a folder."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, pathlib.Path(folder).resolve()
        self.data, self.sockets, self.log = self.folder / "data", self.folder / "run", self.folder / "postgres.log"
        self.port = free_port()

    def restore(self, to, say):
        """Restores the newest backup before `to` and replays the archive up to `to`, or to its end if `to` is None. Then starts
        a separate primary on the restored data."""
        account, layout = self.cluster.account, self.cluster.layout
        if self.folder.exists() and any(self.folder.iterdir()):
            raise HaError(f"{self.folder} is not empty; name a new folder")
        if self.folder == layout.folder or layout.folder in self.folder.parents:
            raise HaError(f"{self.folder} is inside the cluster's folder; name another one")
        if len(os.fsencode(self.sockets / ".s.PGSQL.65535")) > MAX_SOCKET_PATH:
            raise HaError(f"the path {self.folder} is too long for Postgres' socket; name a shorter one")
        account.folder(self.folder)
        if not account.can_enter(self.folder):
            raise HaError(f"Postgres runs as the user {account.name}, which cannot enter {self.folder}; name another folder")
        account.folder(self.sockets)
        self._archive_until_now(say)
        values = {**layout.values("node1", account, self.cluster.postgres_bin), "DATA": self.data}
        values.update(SOCKETS=self.sockets, RUN=self.sockets, LOGS=self.folder, POSTGRES_PORT=self.port)
        config = self.folder / "pgbackrest.conf"
        write(config, fill("pgbackrest.conf", values), account)
        target = ["--type=time", f"--target={to}", "--target-action=promote"] if to else ["--type=default"]
        say(f"restoring into {self.data}")
        # The copy must not write into the cluster's archive.
        command = ["pgbackrest", f"--config={config}", f"--stanza={CLUSTER}", "--archive-mode=off", *target, "restore"]
        try:
            account.run(command, timeout=24 * 3600)
        except HaError:
            # So that the next attempt can use the folder.
            shutil.rmtree(self.folder)
            raise
        say("replaying the archive")
        self._start()

    def _archive_until_now(self, say):
        """Makes a running cluster archive all changes, so that the most recent moment can be restored as well."""
        if self.cluster.leader():
            self.cluster.pgbackrest("check")
        else:
            say("the cluster does not run: changes that it had not archived, at most a minute, are missing")

    def _start(self):
        # Overrides Patroni's settings, which are part of the backup.
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
        if not wait_until(is_over, REPLAY_TIMEOUT, every=0.3) or process is None or not process.is_alive():
            lines = self.log.read_text().strip().splitlines()[-5:]
            raise HaError(
                "the restored Postgres did not start. \"recovery ended before configured recovery target was reached\" means "
                "that nothing was committed after that moment; omit --to. The last lines of its log:\n  " + "\n  ".join(lines)
            )

    def query(self, sql, database="postgres"):
        """Returns rows from the restored Postgres with columns separated by `|`; None while it does not accept queries."""
        command = [self.cluster.postgres_bin / "psql", "-XAtq", "-h", self.sockets, "-p", self.port, "-U", "postgres"]
        done = self.cluster.account.run([*command, "-d", database, "-f", "-"], stdin=sql, check=False)
        return done.stdout.strip() if done.returncode == 0 else None

    def stop_command(self):
        """Returns the command that stops the copy."""
        command = f"{self.cluster.postgres_bin / 'pg_ctl'} stop -D {self.data}"
        return command if os.geteuid() else f"runuser -u {self.cluster.account.name} -- {command}"

    def stop(self):
        if processes_in(self.data):
            pg_ctl = self.cluster.postgres_bin / "pg_ctl"
            self.cluster.account.run([pg_ctl, "stop", "-D", self.data, "-m", "fast", "-w"], check=False)
