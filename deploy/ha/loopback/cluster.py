"""A cluster of three on one machine: starts it, asks it, stops it, and kills one of its nodes as if the machine had died."""

import json
import os
import pathlib
import signal
import sys
import urllib.error
import urllib.request

from .layout import ADDRESS, CLUSTER, DATABASE, NODES, USER, Layout, fill, write
from .programs import Account, HaError, Process, missing_packages, postgres_bin, processes_in, wait_until

#: Seconds that a machine with other things to do may take over the first start, and over a node's coming back.
FIRST_START, COME_BACK = 180, 120


class Cluster:
    """The cluster in a folder."""

    def __init__(self, where, account=None):
        self.layout = where
        self.account = account or Account.choose()
        self.postgres_bin = postgres_bin()

    @classmethod
    def open(cls, folder):
        """The cluster that is in `folder`, whether it runs or not."""
        return cls(Layout.open(folder))

    @classmethod
    def open_or_make(cls, folder, port):
        """The cluster that is in `folder`, or a new one, of which nothing runs."""
        if missing := missing_packages():
            raise HaError(f"missing: {', '.join(missing)}; script/setup --ha installs them (Debian, Ubuntu)")
        if Layout.exists(folder):
            cluster = cls.open(folder)
            if port is not None and port != cluster.layout.ports.base:
                raise HaError(f"the cluster in {folder} has the ports from {cluster.layout.ports.base} on; leave out --port")
            return cluster
        account = Account.choose()
        cluster = cls(Layout.make(folder, port, account), account)
        cluster._write_files()
        return cluster

    # What runs

    def _note(self):
        return self.layout.folder / "processes.json"

    def processes(self):
        """What was started and still runs: {"node1": {"etcd": Process, ...}, "haproxy": {...}}."""
        try:
            noted = json.loads(self._note().read_text())
        except FileNotFoundError:
            return {}
        alive = {
            part: {name: process for name, pair in of.items() if (process := Process(*pair)).is_alive()}
            for part, of in noted.items()
        }
        return {part: of for part, of in alive.items() if of}

    def _started(self, part, name, process):
        running = self.processes()
        running.setdefault(part, {})[name] = process
        noted = {part: {name: [one.pid, one.began] for name, one in of.items()} for part, of in running.items()}
        write(self._note(), json.dumps(noted, indent=2))

    def _start(self, part, name, command, log):
        if name in self.processes().get(part, {}):
            return False
        process = self.account.start(command, log)
        if process is None:
            raise HaError(f"{name} of {part} ended at once; its words are in {log}")
        self._started(part, name, process)
        return True

    # Files

    def _write_files(self):
        where, account = self.layout, self.account
        account.folder(where.repository())
        for node in NODES:
            home = account.folder(where.node(node))
            account.folder(where.sockets(node))
            values = where.values(node, account, self.postgres_bin)
            for template, data in (("etcd.yml", home / "etcd"), ("patroni.yml", home / "data"), ("pgbackrest.conf", home / "data")):
                write(home / template, fill(template, {**values, "DATA": data}), account)
        proxy = account.folder(where.folder / "haproxy")
        ports = {"WRITE_PORT": where.ports.write, "READ_PORT": where.ports.read, "SERVERS": where.servers()}
        write(proxy / "haproxy.cfg", fill("haproxy.cfg", ports), account)
        bouncer = account.folder(where.folder / "pgbouncer")
        values = {"DATABASE": DATABASE, "READ_PORT": where.ports.read, "BOUNCER_PORT": where.ports.bouncer}
        write(bouncer / "pgbouncer.ini", fill("pgbouncer.ini", {**values, "USERS": bouncer / "users"}), account)
        write(bouncer / "users", f'"{USER}" "{where.passwords["service"]}"\n', account)

    # Starting

    def start_node(self, node):
        """Starts etcd and Patroni of a node, which starts its Postgres; what runs already is left alone."""
        home = self.layout.node(node)
        etcd = self._start(node, "etcd", ["etcd", "--config-file", home / "etcd.yml"], home / "etcd.log")
        return self._start(node, "patroni", ["patroni", home / "patroni.yml"], home / "patroni.log") or etcd

    def start_part(self, part):
        """Starts a node, haproxy or pgbouncer. Returns whether there was anything to be started."""
        if part in NODES:
            return self.start_node(part)
        folder = self.layout.folder / part
        command = {"haproxy": ["-db", "-f", folder / "haproxy.cfg"], "pgbouncer": [folder / "pgbouncer.ini"]}[part]
        return self._start(part, part, [part, *command], folder / f"{part}.log")

    def start(self, say):
        """Starts what does not run, and waits until it is whole. Returns whether anything had to be started."""
        started = [part for part in (*NODES, "haproxy", "pgbouncer") if self.start_part(part)]
        if started:
            say(f"started: {', '.join(started)}; waiting for a primary")
        if not wait_until(lambda: self.leader(), FIRST_START):
            raise HaError(f"there is no primary after {FIRST_START} s; see node*/patroni.log in {self.layout.folder}")
        self._prepare_database(say)
        if started:
            say("waiting for both standbys, one of them synchronous")
        self.wait_whole(FIRST_START)
        return bool(started)

    def _prepare_database(self, say):
        """The service's user and database, and pgBackRest's stanza, where they are not there yet."""
        password = self.layout.passwords["service"]
        if self.psql(f"SELECT 1 FROM pg_roles WHERE rolname = '{USER}'") == "":
            # Through standard input: others can list what stands in a command.
            self.psql(f"CREATE ROLE {USER} LOGIN PASSWORD '{password}'")
        if self.psql(f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'") == "":
            self.psql(f"CREATE DATABASE {DATABASE} OWNER {USER}")
        if not (self.layout.repository() / "archive" / CLUSTER / "archive.info").exists():
            say("making pgBackRest's stanza")
            self.pgbackrest("stanza-create")

    # Asking

    def members(self):
        """What Patroni says of the members: each with name, role (leader, sync_standby, replica), state, lag, timeline."""
        for node in NODES:
            try:
                return self.rest(node, "/cluster")["members"]
            except (OSError, ValueError):
                continue
        return []

    def rest(self, node, path, method="GET", body=None, timeout=5):
        """An answer of a node's Patroni."""
        request = urllib.request.Request(
            f"http://{ADDRESS}:{self.layout.ports.rest(node)}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
        )
        # Not by a proxy of the environment's.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=timeout) as answer:
            return json.load(answer)

    def is_primary(self, node):
        """Whether the node says so itself; Patroni's list may still name one that has died."""
        try:
            return self.rest(node, "/primary", timeout=2)["role"] in ("master", "primary")
        except (OSError, ValueError, urllib.error.HTTPError):
            return False

    def leader(self):
        """The node whose Postgres takes writes, or None."""
        return next((node for node in NODES if self.is_primary(node)), None)

    def is_whole(self, is_synchronous=True):
        """A primary, and two standbys that follow it, one of them synchronous."""
        roles = sorted(member["role"] for member in self.members())
        leader = self.leader()
        if roles != ["leader", "replica", "sync_standby" if is_synchronous else "replica"] or leader is None:
            return False
        # Patroni's list names one that has died for as long as its lease lasts: the primary knows who follows it.
        sql = "SELECT count(*), count(*) FILTER (WHERE sync_state = 'sync') FROM pg_stat_replication WHERE state = 'streaming'"
        try:
            return self.psql(sql, leader) == ("2|1" if is_synchronous else "2|0")
        except HaError:
            return False

    def wait_whole(self, seconds=COME_BACK, is_synchronous=True):
        if not wait_until(lambda: self.is_whole(is_synchronous), seconds, every=0.5):
            raise HaError(f"not whole after {seconds} s: {json.dumps(self.members())}; see the logs in {self.layout.folder}")

    def psql(self, sql, node=None, database="postgres", timeout=300):
        """Executes SQL as the superuser on a node, else on the primary; returns rows, columns separated by `|`."""
        node = node or self.leader()
        if node is None:
            raise HaError("there is no primary")
        where = self.layout
        command = [self.postgres_bin / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", where.sockets(node)]
        command += ["-p", where.ports.postgres(node), "-U", "postgres", "-d", database, "-f", "-"]
        return self.account.run(command, stdin=sql, timeout=timeout).stdout.strip()

    def pgbackrest(self, *arguments, node=None, timeout=600):
        """Runs pgBackRest beside the primary."""
        node = node or self.leader()
        if node is None:
            raise HaError("there is no primary")
        config = self.layout.node(node) / "pgbackrest.conf"
        return self.account.run(
            ["pgbackrest", f"--config={config}", f"--stanza={CLUSTER}", *arguments], timeout=timeout
        ).stdout

    # Stopping

    def kill_node(self, node, parts=("patroni", "etcd", "postgres")):
        """Ends all of a node at once with SIGKILL, as a machine that loses its power, or some of its parts."""
        started = self.processes().get(node, {})
        # Patroni first: it must not see Postgres die, and give its lease back.
        killed = [started[name] for name in ("patroni", "etcd") if name in parts and name in started]
        if "postgres" in parts:
            killed += processes_in(self.layout.data(node))
        for process in killed:
            process.signal(signal.SIGKILL)
        if not wait_until(lambda: not any(process.is_alive() for process in killed), 10):
            raise HaError(f"{node} could not be killed")
        return len(killed)

    def end(self):
        """Ends everything at once: for what is deleted next, or only looked at."""
        for node in NODES:
            self.kill_node(node)
        self.stop()

    def stop(self):
        """Stops everything in order. Returns the parts that ran."""
        running = self.processes()
        leader = self.leader()
        # Standbys first, so that none of them is promoted meanwhile.
        for nodes in ([node for node in NODES if node != leader], [node for node in NODES if node == leader]):
            patronis = [running[node]["patroni"] for node in nodes if "patroni" in running.get(node, {})]
            for patroni in patronis:
                patroni.signal(signal.SIGTERM)
            for patroni in patronis:
                patroni.stop(60)
            for node in nodes:
                self._stop_postgres(node)
        for part in running.values():
            for process in part.values():
                process.stop()
        self._note().unlink(missing_ok=True)
        return sorted(running)

    def _stop_postgres(self, node):
        """Stops a Postgres whose Patroni has ended without it."""
        data = self.layout.data(node)
        if processes_in(data):
            self.account.run([self.postgres_bin / "pg_ctl", "stop", "-D", data, "-m", "fast", "-w"], check=False)
        for process in processes_in(data):
            process.signal(signal.SIGKILL)


def arguments(parser):
    """The option that all of deploy/ha's commands have."""
    root = pathlib.Path(__file__).resolve().parents[3]
    default = root / "target" / "ha"
    parser.add_argument(
        "--dir", metavar="FOLDER", type=pathlib.Path, default=default, help="the cluster's folder (default: target/ha)"
    )


def run(main):
    """Runs a command's `main`, and tells what went wrong in a line."""
    try:
        return main()
    except HaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read has seen enough. Nothing of it is to be said at the end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141

