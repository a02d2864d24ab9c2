"""The faults of script/failover: what each does to a node under load, and how it ends."""

import dataclasses
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

from loopback.cluster import PARTS
from loopback.layout import ADDRESS, NODES
from loopback.programs import HaError, processes_in
from loopback.repair import Repair

#: The size of a node's disk in the cluster for the fault `disk`.
DISK = "1g"
#: Seconds after a step of a clock within which PostgreSQL and Patroni notice it: more than Patroni's `loop_wait`.
STEP_WAIT = 5
#: The timeout in seconds for a standby to be synchronous again after a step.
SETTLE_TIMEOUT = 60
#: Python's own `time.sleep` fails with EINVAL under libfaketime 0.9.10.
SLEEP = "import select, time\ntime.sleep = lambda seconds: select.select([], [], [], seconds)\n"


class Fault:
    """A fault of one node, chosen by its role. `begin` injects it, `seconds` later `end` ends it, and `finish` is called when the
    cluster is healthy again."""

    #: The seconds without writes that no other node can prevent.
    outage = 0
    #: The maximum time in seconds without writes besides `outage`. Twice as long as on an idle machine, because a starved one delays
    #: elections, promotions and connections.
    max_gap = 60

    def __init__(self, effect, role="leader", seconds=0.0, needs=""):
        self.effect, self.role, self.seconds, self.needs = effect, role, seconds, needs

    def begin(self, cluster, node, rng):
        pass

    def during(self, cluster, node):
        """Called twice a second between `begin` and `end`."""

    def end(self, cluster, node, rng):
        pass

    def finish(self, cluster, node):
        """Returns whether something changed, so that the cluster must be checked again."""
        return False


class Kill(Fault):
    """Parts of a node are killed. The trial starts them again."""

    def __init__(self, effect, parts=PARTS, role="leader", is_stalled=False):
        super().__init__(effect, role)
        self.parts, self.is_stalled = parts, is_stalled

    def begin(self, cluster, node, rng):
        receivers = stall(cluster, node) if self.is_stalled else []
        cluster.kill_node(node, self.parts)
        for process in receivers:
            # It ends before it continues to read, so changes that the primary had sent and no standby had received are lost.
            process.signal(signal.SIGTERM)
            process.signal(signal.SIGCONT)


def stall(cluster, victim):
    """Suspends the standbys' receivers for half a second of load, and returns them."""
    receivers = []
    for node in NODES:
        if node != victim:
            for process in processes_in(cluster.layout.data(node)):
                if b"walreceiver" in pathlib.Path(f"/proc/{process.pid}/cmdline").read_bytes():
                    receivers.append(process)
    if len(receivers) != 2:
        raise HaError(f"found {len(receivers)} receivers of the standbys, expected 2")
    for process in receivers:
        process.signal(signal.SIGSTOP)
    time.sleep(0.5)
    return receivers


class Pause(Fault):
    """Parts of a node, or of all nodes but this one, are suspended, and resumed in random order."""

    def __init__(self, effect, seconds, parts=PARTS, is_clock_paused=False, is_of_others=False):
        super().__init__(effect, seconds=seconds, needs="clock" if is_clock_paused else "")
        self.parts, self.is_clock_paused, self.is_of_others = parts, is_clock_paused, is_of_others
        self.outage = seconds if is_of_others else 0

    def begin(self, cluster, node, rng):
        nodes = [one for one in NODES if (one != node) == self.is_of_others]
        self.paused = [process for one in nodes for process in cluster.pause_node(one, self.parts)]
        self.began = time.monotonic()

    def end(self, cluster, node, rng):
        if self.is_clock_paused:
            set_clock(cluster, node, self.began - time.monotonic())
        rng.shuffle(self.paused)
        for process in self.paused:
            process.signal(signal.SIGCONT)

    def finish(self, cluster, node):
        if self.is_clock_paused:
            # The machine synchronizes its clock again.
            set_clock(cluster, node, 0)
        return self.is_clock_paused


class CutFromEtcd(Fault):
    """The Patroni of one node, or of all nodes, reaches no member of etcd; connections hang or are refused."""

    # Less than the lease, after which a primary would be stopped or replaced. The failsafe mode prevents both.
    max_gap = 15

    def __init__(self, effect, seconds, is_of_all):
        super().__init__(effect, seconds=seconds, needs="etcd")
        self.is_of_all = is_of_all

    def begin(self, cluster, node, rng):
        for one in NODES if self.is_of_all else (node,):
            cluster.forwarders[one].cut(is_silent=rng.random() < 0.5)

    def end(self, cluster, node, rng):
        for one in NODES:
            cluster.forwarders[one].restore()


class FullDisk(Fault):
    """A node's disk is full, with the data of etcd and PostgreSQL and all logs."""

    def __init__(self, effect, seconds):
        super().__init__(effect, seconds=seconds, needs="disk")

    def begin(self, cluster, node, rng):
        self.is_wal_switched = rng.random() < 0.5
        self.during(cluster, node)

    def during(self, cluster, node):
        with open(cluster.layout.node(node) / "ballast", "ab") as file:
            free = os.statvfs(file.fileno())
            if free.f_bavail:
                try:
                    os.posix_fallocate(file.fileno(), file.tell(), free.f_bavail * free.f_frsize)
                except OSError:
                    pass
        if self.is_wal_switched:
            # Uses up the segments that PostgreSQL keeps for later, so that it stops.
            try:
                cluster.psql("SELECT pg_switch_wal()", node, timeout=5)
            except HaError:
                pass

    def end(self, cluster, node, rng):
        (cluster.layout.node(node) / "ballast").unlink()


class ClockStep(Fault):
    """The clock of the primary or of its synchronous standby steps; when a standby is synchronous again, the primary is killed; when
    the cluster is healthy, the clock steps back."""

    def __init__(self, effect, seconds, role):
        super().__init__(effect, role=role, needs="clock")
        self.step = seconds

    def begin(self, cluster, node, rng):
        set_clock(cluster, node, self.step)
        time.sleep(STEP_WAIT)
        # A step ahead ends the standbys' connections (`wal_sender_timeout`). Until Patroni has selected a synchronous standby again,
        # no standby may be promoted.
        cluster.wait_healthy(SETTLE_TIMEOUT)
        cluster.kill_node(node if self.role == "leader" else cluster.leader())

    def finish(self, cluster, node):
        set_clock(cluster, node, 0)
        return True


class DoublePromotion(Fault):
    """The synchronous standby is promoted beside the primary, and archives its timeline; then deploy/ha/cluster repair keeps the primary."""

    # The repair stops the cluster, and copies it twice.
    outage = 120

    def begin(self, cluster, node, rng):
        self.paused = cluster.pause_node(node, ("patroni", "fence"))
        pg_ctl = [cluster.postgres_bin / "pg_ctl", "promote", "-D", cluster.layout.data(node), "-w"]
        cluster.account.run(pg_ctl)

    def end(self, cluster, node, rng):
        for process in self.paused:
            process.signal(signal.SIGCONT)
        Repair(cluster, cluster.leader(but=node)).run(lambda line: None)


FAULTS = {
    "primary": Kill("the primary's machine is killed: etcd, Patroni and PostgreSQL together"),
    "stalled": Kill("the same, after half a second in which the standbys receive nothing", is_stalled=True),
    "postgres": Kill("the primary's PostgreSQL is killed, while Patroni runs", ("postgres",)),
    "patroni": Kill("the primary's Patroni is killed, while PostgreSQL runs", ("patroni",)),
    "standby": Kill("the synchronous standby's machine is killed", role="sync_standby"),
    "pause-20": Pause("the primary's machine is suspended for 20 s", 20),
    "pause-60": Pause("the same for 60 s", 60),
    "pause-180": Pause("the same for 180 s", 180),
    "pause-clock": Pause("the same for 60 s, and its clock continues where it stood", 60, is_clock_paused=True),
    "pause-patroni": Pause("the primary's Patroni is suspended for 60 s, while PostgreSQL and the fence run", 60, ("patroni",)),
    "pause-unfenced": Pause("the same, and the fence is suspended too", 60, ("patroni", "fence")),
    "standbys": Pause(
        "both standbys are suspended for 30 s, but not their etcd", 30, ("patroni", "fence", "postgres"), is_of_others=True
    ),
    "etcd-primary": CutFromEtcd("the primary's Patroni reaches no etcd for 60 s, while the others do", 60, False),
    "etcd-all": CutFromEtcd("no Patroni reaches etcd for 60 s", 60, True),
    "double-promotion": DoublePromotion(
        "the synchronous standby is promoted by hand, and 10 s later deploy/ha/cluster repair keeps the primary", "sync_standby", 10
    ),
    "disk": FullDisk("the disk of the primary's machine is full for 45 s", 45),
    "clock-ahead": ClockStep("the primary's clock steps 120 s ahead; with a synchronous standby again, the primary is killed", 120, "leader"),
    "clock-behind": ClockStep("the same 120 s back", -120, "leader"),
    "clock-standby-ahead": ClockStep("the synchronous standby's clock steps 120 s ahead, as above", 120, "sync_standby"),
    "clock-standby-behind": ClockStep("the same 120 s back", -120, "sync_standby"),
}


# What the faults need


def equip(cluster, needs):
    """Prepares a cluster that has not been started for faults with these needs."""
    if needs == "disk":
        if os.geteuid():
            raise HaError("the fault disk needs root, because each node gets a file system of its own")
        for node in NODES:
            home = cluster.layout.node(node)
            kept = {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()}
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "failover", str(home)], check=True)
            cluster.account.set_owner(home, 0o700)
            for name, content in kept.items():
                (home / name).write_bytes(content)
                cluster.account.set_owner(home / name, 0o600)
            cluster.account.folder(cluster.layout.sockets(node))
    elif needs == "etcd":
        cluster.forwarders = {node: Forwarder([cluster.layout.ports.client(member) for member in NODES]) for node in NODES}
        # Patroni would otherwise ask etcd for its addresses, and connect to them.
        cluster.environment = lambda node: {
            "PATRONI_ETCD3_HOSTS": ",".join(f"'{ADDRESS}:{port}'" for port in cluster.forwarders[node].ports),
            "PATRONI_ETCD3_USE_PROXIES": "true",
        }
    elif needs == "clock":
        library = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
        if library is None:
            raise HaError("faults of the clock need libfaketime; install the package faketime (Debian, Ubuntu)")
        for node in NODES:
            set_clock(cluster, node, 0)
            path = cluster.layout.node(node) / "sitecustomize.py"
            path.write_text(SLEEP)
            path.chmod(0o644)
        # Processes of the node read their clock's offset from the file each second. etcd ignores it, and measures leases with
        # another clock.
        cluster.environment = lambda node: {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(cluster.layout.node(node) / "clock"),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "PYTHONPATH": str(cluster.layout.node(node)),
        }


def dismantle(cluster):
    """Ends what `equip` has begun, after the cluster was stopped; also for a cluster that an interrupted run has left. Keeps the
    logs."""
    for node in NODES:
        home = cluster.layout.node(node)
        if os.path.ismount(home):
            logs = {path: path.read_bytes() for path in home.glob("*.log")}
            subprocess.run(["umount", "--lazy", str(home)], check=True)
            for path, content in logs.items():
                path.write_bytes(content)
    for forwarder in getattr(cluster, "forwarders", {}).values():
        forwarder.close()


def set_clock(cluster, node, seconds):
    """Sets the offset of a node's clock."""
    path = cluster.layout.node(node) / "clock"
    path.with_suffix(".new").write_text(f"{seconds:+.0f}\n")
    cluster.account.set_owner(path.with_suffix(".new"), 0o600)
    path.with_suffix(".new").replace(path)


@dataclasses.dataclass
class Forwarder:
    """Forwards ports to the given ones, until it is cut."""

    targets: list

    def __post_init__(self):
        self.listeners = [socket.create_server((ADDRESS, 0)) for _ in self.targets]
        self.ports = [listener.getsockname()[1] for listener in self.listeners]
        self.is_open, self.is_silent, self.connections = threading.Event(), False, set()
        self.is_open.set()
        for listener, target in zip(self.listeners, self.targets):
            threading.Thread(target=self._accept, args=(listener, target), daemon=True).start()

    def cut(self, is_silent):
        """Lets connections hang, or closes them and each new one."""
        self.is_silent = is_silent
        self.is_open.clear()
        if not is_silent:
            self._close_connections()

    def restore(self):
        """Forwards new connections again. Those that hung are closed, like after a partition."""
        if not self.is_open.is_set():
            self._close_connections()
            self.is_open.set()

    def close(self):
        for listener in self.listeners:
            listener.close()
        self._close_connections()

    def _close_connections(self):
        for connection in list(self.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _accept(self, listener, target):
        while True:
            try:
                client = listener.accept()[0]
            except OSError:
                return
            if not self.is_open.is_set() and not self.is_silent:
                client.close()
                continue
            threading.Thread(target=self._connect, args=(client, target), daemon=True).start()

    def _connect(self, client, target):
        try:
            server = socket.create_connection((ADDRESS, target))
        except OSError:
            client.close()
            return
        self.connections |= {client, server}
        other = threading.Thread(target=self._pump, args=(server, client), daemon=True)
        other.start()
        self._pump(client, server)
        other.join()
        self.connections -= {client, server}
        client.close()
        server.close()

    def _pump(self, source, sink):
        try:
            while data := source.recv(65536):
                while not self.is_open.wait(1):
                    if not self.is_silent:
                        return
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
