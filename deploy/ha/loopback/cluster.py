"""Starts, queries and stops a cluster of three nodes on one machine, and kills a node as if its machine had failed."""

import json
import os
import pathlib
import signal
import sys
import urllib.error
import urllib.request

from .layout import ADDRESS, CLUSTER, DATABASE, NODES, USER, Layout, fill, write
from .programs import PATRONI, Account, HaError, Process, missing_packages, postgres_bin, processes_in, wait_until

#: Timeouts in seconds, on a busy machine, for the first start and for the return of a node.
START_TIMEOUT, RECOVERY_TIMEOUT = 180, 120
#: The timeout in seconds for etcd to determine the version of its cluster after a start.
ETCD_VERSION_TIMEOUT = 20
#: The parts of a node.
PARTS = ("patroni", "fence", "etcd", "postgres")
FENCE = pathlib.Path(__file__).resolve().parents[1] / "fence"


def open_json(request, timeout):
    """Sends a request, without proxies from the environment, and returns the response."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=timeout) as response:
        return json.load(response)


class Cluster:
    """A cluster in a folder."""

    def __init__(self, layout, account=None):
        self.layout = layout
        self.account = account or Account.choose()
        self.postgres_bin = postgres_bin()
        self.patroni = PATRONI
        #: Returns more environment variables for a node's Patroni and PostgreSQL.
        self.environment = lambda node: {}

    @classmethod
    def open(cls, folder):
        """Opens the existing cluster in `folder`, which need not run."""
        return cls(Layout.open(folder))

    @classmethod
    def open_or_create(cls, folder, port):
        """Opens the cluster in `folder`, or creates one without starting it."""
        if missing := missing_packages():
            raise HaError(f"missing: {', '.join(missing)}; script/setup --ha installs them (Debian, Ubuntu)")
        if Layout.exists(folder):
            cluster = cls.open(folder)
            if port is not None and port != cluster.layout.ports.base:
                raise HaError(f"the cluster in {folder} uses the ports from {cluster.layout.ports.base}; omit --port")
            return cluster
        account = Account.choose()
        if account.run([PATRONI, "--version"], check=False).returncode:
            raise HaError(
                f"the user {account.name} cannot run {PATRONI}; delete .venv, and run script/setup --ha with a python3 that every "
                "user may run"
            )
        cluster = cls(Layout.create(folder, port, account), account)
        cluster._write_files()
        return cluster

    # Processes

    def _processes_file(self):
        return self.layout.folder / "processes.json"

    def processes(self):
        """Returns the started processes that still run: {"node1": {"etcd": Process, ...}, "haproxy": {...}}."""
        try:
            recorded = json.loads(self._processes_file().read_text())
        except FileNotFoundError:
            return {}
        alive = {
            part: {name: process for name, pair in of.items() if (process := Process(*pair)).is_alive()}
            for part, of in recorded.items()
        }
        return {part: of for part, of in alive.items() if of}

    def _record(self, part, name, process):
        running = self.processes()
        running.setdefault(part, {})[name] = process
        recorded = {part: {name: [one.pid, one.began] for name, one in of.items()} for part, of in running.items()}
        write(self._processes_file(), json.dumps(recorded, indent=2))

    def _start(self, part, name, command, log, environment=None):
        if name in self.processes().get(part, {}):
            return False
        process = self.account.start(command, log, environment)
        if process is None:
            raise HaError(f"{name} of {part} exited at once; see {log}")
        self._record(part, name, process)
        return True

    # Files

    def _write_files(self):
        layout, account = self.layout, self.account
        account.folder(layout.repository())
        for node in NODES:
            home = account.folder(layout.node(node))
            account.folder(layout.sockets(node))
            values = layout.values(node, account, self.postgres_bin)
            for template, data in (("etcd.yml", home / "etcd"), ("patroni.yml", home / "data"), ("pgbackrest.conf", home / "data")):
                write(home / template, fill(template, {**values, "DATA": data}), account)
        proxy = account.folder(layout.folder / "haproxy")
        ports = {"WRITE_PORT": layout.ports.write, "READ_PORT": layout.ports.read, "SERVERS": layout.servers()}
        write(proxy / "haproxy.cfg", fill("haproxy.cfg", ports), account)
        bouncer = account.folder(layout.folder / "pgbouncer")
        values = {"DATABASE": DATABASE, "READ_PORT": layout.ports.read, "BOUNCER_PORT": layout.ports.bouncer}
        write(bouncer / "pgbouncer.ini", fill("pgbouncer.ini", {**values, "USERS": bouncer / "users"}), account)
        write(bouncer / "users", f'"{USER}" "{layout.passwords["service"]}"\n', account)

    # Starting

    def start_node(self, node):
        """Starts etcd, Patroni and the fence of a node; Patroni starts Postgres. Running processes are not changed."""
        home = self.layout.node(node)
        if etcd := self._start_etcd(node):
            wait_until(lambda: self._has_version(node), ETCD_VERSION_TIMEOUT)
        command = [self.patroni, home / "patroni.yml"]
        patroni = self._start(node, "patroni", command, home / "patroni.log", self.environment(node))
        url = f"http://{ADDRESS}:{self.layout.ports.rest(node)}"
        command = [PATRONI.with_name("python3"), FENCE, "--patroni", url, "--data", self.layout.data(node)]
        fence = self._start(node, "fence", command, home / "fence.log")
        return etcd or patroni or fence

    def _start_etcd(self, node):
        home = self.layout.node(node)
        return self._start(node, "etcd", ["etcd", "--config-file", home / "etcd.yml"], home / "etcd.log")

    def _has_version(self, node):
        """Returns whether the node's etcd knows the version of the cluster, without which Patroni ends at its start."""
        try:
            return open_json(f"http://{ADDRESS}:{self.layout.ports.client(node)}/version", 2)["etcdcluster"] != "not_decided"
        except (OSError, ValueError):
            return False

    def start_part(self, part):
        """Starts a node, haproxy or pgbouncer. Returns whether anything was started."""
        if part in NODES:
            return self.start_node(part)
        folder = self.layout.folder / part
        command = {"haproxy": ["-db", "-f", folder / "haproxy.cfg"], "pgbouncer": [folder / "pgbouncer.ini"]}[part]
        return self._start(part, part, [part, *command], folder / f"{part}.log")

    def start(self, say):
        """Starts the parts that do not run, and waits until the cluster is healthy. Returns whether anything was started."""
        # All of them first, because one alone does not become a cluster.
        etcds = [node for node in NODES if self._start_etcd(node)]
        wait_until(lambda: all(self._has_version(node) for node in etcds), ETCD_VERSION_TIMEOUT)
        started = [part for part in (*NODES, "haproxy", "pgbouncer") if self.start_part(part) or part in etcds]
        if started:
            say(f"started: {', '.join(started)}; waiting for a primary")
        if not wait_until(lambda: self.leader(), START_TIMEOUT):
            raise HaError(f"there is no primary after {START_TIMEOUT} s; see node*/patroni.log in {self.layout.folder}")
        self._prepare_database(say)
        if started:
            say("waiting for both standbys, one of them synchronous")
        self.wait_healthy(START_TIMEOUT)
        return bool(started)

    def _prepare_database(self, say):
        """Creates the service's user and database, and pgBackRest's stanza, unless they exist."""
        password = self.layout.passwords["service"]
        if self.psql(f"SELECT 1 FROM pg_roles WHERE rolname = '{USER}'") == "":
            # Sent through standard input, because other users can list the arguments of a command.
            self.psql(f"CREATE ROLE {USER} LOGIN PASSWORD '{password}'")
        if self.psql(f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'") == "":
            self.psql(f"CREATE DATABASE {DATABASE} OWNER {USER}")
        if not (self.layout.repository() / "archive" / CLUSTER / "archive.info").exists():
            say("creating pgBackRest's stanza")
            self.pgbackrest("stanza-create")

    # Queries

    def members(self):
        """Returns the members according to Patroni: name, role (leader, sync_standby, replica), state, lag, timeline."""
        for node in NODES:
            try:
                return self.rest(node, "/cluster")["members"]
            except (OSError, ValueError):
                continue
        return []

    def rest(self, node, path, method="GET", body=None, timeout=5):
        """Sends a request to a node's Patroni, and returns the response."""
        request = urllib.request.Request(
            f"http://{ADDRESS}:{self.layout.ports.rest(node)}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
        )
        return open_json(request, timeout)

    def is_primary(self, node):
        """Asks the node itself, because Patroni's list may still contain a failed primary."""
        try:
            return self.rest(node, "/primary", timeout=2)["role"] in ("master", "primary")
        except (OSError, ValueError, urllib.error.HTTPError):
            return False

    def leader(self, but=None):
        """Returns the node whose Postgres accepts writes, other than `but`, or None."""
        return next((node for node in NODES if node != but and self.is_primary(node)), None)

    def is_healthy(self, is_synchronous=True):
        """Returns whether there is a primary with two standbys that follow it, one of them synchronous."""
        roles = sorted(member["role"] for member in self.members())
        leader = self.leader()
        if roles != ["leader", "replica", "sync_standby" if is_synchronous else "replica"] or leader is None:
            return False
        # Patroni's list contains a failed node until its lease expires, so the primary is asked for its standbys.
        sql = "SELECT count(*), count(*) FILTER (WHERE sync_state = 'sync') FROM pg_stat_replication WHERE state = 'streaming'"
        try:
            return self.psql(sql, leader) == ("2|1" if is_synchronous else "2|0")
        except HaError:
            return False

    def wait_healthy(self, seconds=RECOVERY_TIMEOUT, is_synchronous=True):
        if not wait_until(lambda: self.is_healthy(is_synchronous), seconds, every=0.5):
            raise HaError(f"not healthy after {seconds} s: {json.dumps(self.members())}; see the logs in {self.layout.folder}")

    def psql(self, sql, node=None, database="postgres", timeout=300):
        """Executes SQL as the superuser on a node, by default on the primary. Returns rows with columns separated by `|`."""
        node = node or self.leader()
        if node is None:
            raise HaError("there is no primary")
        layout = self.layout
        command = [self.postgres_bin / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", layout.sockets(node)]
        command += ["-p", layout.ports.postgres(node), "-U", "postgres", "-d", database, "-f", "-"]
        return self.account.run(command, stdin=sql, timeout=timeout).stdout.strip()

    def pgbackrest(self, *arguments, node=None, timeout=600):
        """Runs pgBackRest on a node, by default on the primary."""
        node = node or self.leader()
        if node is None:
            raise HaError("there is no primary")
        config = self.layout.node(node) / "pgbackrest.conf"
        return self.account.run(
            ["pgbackrest", f"--config={config}", f"--stanza={CLUSTER}", *arguments], timeout=timeout
        ).stdout

    # Stopping

    def _processes_of(self, node, parts):
        started = self.processes().get(node, {})
        # Patroni first. Otherwise it could notice that Postgres died and release its lease.
        found = [started[name] for name in PARTS if name in parts and name in started]
        return found + (processes_in(self.layout.data(node)) if "postgres" in parts else [])

    def pause_node(self, node, parts=PARTS):
        """Suspends all processes of a node, like a paused virtual machine, or only some parts. Returns them."""
        paused = []
        # Repeated, because a process may have started another one meanwhile.
        while new := [process for process in self._processes_of(node, parts) if process not in paused]:
            for process in new:
                process.signal(signal.SIGSTOP)
            paused += new
        return paused

    def kill_node(self, node, parts=PARTS):
        """Kills all processes of a node with SIGKILL, like a power failure, or only some parts."""
        killed = self._processes_of(node, parts)
        for process in killed:
            process.signal(signal.SIGKILL)
        if not wait_until(lambda: not any(process.is_alive() for process in killed), 10):
            raise HaError(f"failed to kill {node}")
        return len(killed)

    def kill(self):
        """Kills everything at once, for a cluster that is not used any longer."""
        for node in NODES:
            self.kill_node(node)
        self.stop()

    def stop(self):
        """Stops everything gracefully. Returns the parts that were running."""
        running = self.processes()
        leader = self.leader()
        # Standbys first, so that none of them is promoted.
        for nodes in ([node for node in NODES if node != leader], [node for node in NODES if node == leader]):
            for node in nodes:
                self._stop_part(node, "fence")
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
        self._processes_file().unlink(missing_ok=True)
        return sorted(running)

    def stop_node(self, node):
        """Stops Patroni and Postgres of a node. Its etcd runs on."""
        self._stop_part(node, "fence")
        self._stop_part(node, "patroni")
        self._stop_postgres(node)

    def _stop_part(self, node, name):
        if process := self.processes().get(node, {}).get(name):
            process.stop(60)

    def _stop_postgres(self, node):
        """Stops a Postgres that Patroni has left running."""
        data = self.layout.data(node)
        if processes_in(data):
            self.account.run([self.postgres_bin / "pg_ctl", "stop", "-D", data, "-m", "fast", "-w"], check=False)
        for process in processes_in(data):
            process.signal(signal.SIGKILL)


def arguments(parser):
    """Adds the option that all commands of deploy/ha have."""
    root = pathlib.Path(__file__).resolve().parents[3]
    default = root / "target" / "ha"
    parser.add_argument(
        "--dir", metavar="FOLDER", type=pathlib.Path, default=default, help="the cluster's folder (default: target/ha)"
    )


def run(main):
    """Runs a command's `main`, and prints errors as one line."""
    try:
        return main()
    except HaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has closed the pipe. Prevents another error when Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141

