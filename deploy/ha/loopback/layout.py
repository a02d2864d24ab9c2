"""The folders, ports, passwords and configuration files of a cluster on one machine."""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import secrets
import socket

from .programs import HaError

TEMPLATES = pathlib.Path(__file__).resolve().parents[1] / "templates"
NODES = ("node1", "node2", "node3")
#: The cluster's name for Patroni and pgBackRest, the database, and the service's user.
CLUSTER, DATABASE, USER = "partner", "partner", "partner_api"
ADDRESS = "127.0.0.1"
#: Blocks of a hundred ports, below the ephemeral range.
BLOCKS = range(16400, 30000, 100)
#: The maximum length of a socket's path in bytes.
MAX_SOCKET_PATH = 107
STATE_FILE = "cluster.json"


class Ports:
    """The ports of a cluster, in a block of a hundred."""

    def __init__(self, base):
        self.base = base
        self.write, self.read, self.bouncer = base, base + 1, base + 2

    def postgres(self, node):
        return self.base + 10 + NODES.index(node)

    def rest(self, node):
        return self.base + 20 + NODES.index(node)

    def client(self, node):
        return self.base + 30 + NODES.index(node)

    def peer(self, node):
        return self.base + 40 + NODES.index(node)

    def all(self):
        of_nodes = (self.postgres, self.rest, self.client, self.peer)
        return [self.write, self.read, self.bouncer, *(port(node) for port in of_nodes for node in NODES)]

    def used(self):
        """Returns the ports that are in use."""
        return [port for port in self.all() if not is_free(port)]


def is_free(port):
    """Returns whether a loopback port is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True


def free_port():
    """Returns a free loopback port."""
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return probe.getsockname()[1]


class Layout:
    """A cluster's folder. `cluster.json`, readable only by its owner, contains the ports and passwords."""

    def __init__(self, folder, state):
        self.folder = folder
        self.ports = Ports(state["port"])
        self.passwords = state["passwords"]

    @classmethod
    def open(cls, folder):
        """Opens the existing cluster in `folder`."""
        folder = pathlib.Path(folder).resolve()
        try:
            return cls(folder, json.loads((folder / STATE_FILE).read_text()))
        except FileNotFoundError:
            raise HaError(f"there is no cluster in {folder}; create one with deploy/ha/cluster up") from None
        except PermissionError:
            raise HaError(f"the cluster in {folder} belongs to another user") from None

    @classmethod
    def exists(cls, folder):
        return (pathlib.Path(folder) / STATE_FILE).exists()

    @classmethod
    def create(cls, folder, port, account):
        """Creates the folder of a new cluster. `port` is the first of its hundred ports; None selects a free block."""
        folder = pathlib.Path(folder).resolve()
        if folder.exists() and any(entry.name != "lock" for entry in folder.iterdir()):
            raise HaError(f"{folder} is not empty and contains no cluster; name another folder with --dir")
        longest = folder / NODES[0] / "run" / ".s.PGSQL.65535"
        if len(os.fsencode(longest)) > MAX_SOCKET_PATH:
            raise HaError(f"the path {folder} is too long for Postgres' sockets; name a shorter one with --dir")
        folder.mkdir(parents=True, exist_ok=True)
        os.chmod(folder, 0o755)
        if not account.can_enter(folder):
            with contextlib.suppress(OSError):
                folder.rmdir()
            raise HaError(
                f"Postgres runs as the user {account.name}, which cannot enter {folder}; name a folder with --dir "
                "whose parent folders every user may enter"
            )
        if port is None:
            port = next((base for base in BLOCKS if not Ports(base).used()), None)
            if port is None:
                raise HaError(f"failed to find a block of free ports from {BLOCKS.start}; name one with --port")
        elif used := Ports(port).used():
            raise HaError(f"these ports are in use: {', '.join(map(str, used))}; name another first port with --port")
        roles = ("superuser", "replication", "rewind", "service")
        state = {"port": port, "passwords": {role: secrets.token_urlsafe(24) for role in roles}}
        write(folder / STATE_FILE, json.dumps(state, indent=2))
        return cls(folder, state)

    def node(self, node):
        return self.folder / node

    def data(self, node):
        """Returns Postgres' data folder."""
        return self.folder / node / "data"

    def sockets(self, node):
        return self.folder / node / "run"

    def repository(self):
        """Returns pgBackRest's repository."""
        return self.folder / "repository"

    def url(self, port):
        """Returns a database URL for the service."""
        return f"postgresql://{USER}:{self.passwords['service']}@{ADDRESS}:{port}/{DATABASE}"

    def values(self, node, account, postgres_bin):
        """Returns the values of a node's templates."""
        home = self.node(node)
        return {
            "CLUSTER": CLUSTER,
            "NODE": node,
            "ADDRESS": ADDRESS,
            "NETWORK": "127.0.0.1/32",
            "ACCOUNT": account.name,
            "CLIENT_PORT": self.ports.client(node),
            "PEER_PORT": self.ports.peer(node),
            "REST_PORT": self.ports.rest(node),
            "POSTGRES_PORT": self.ports.postgres(node),
            "MEMBERS": ",".join(f"{name}=http://{ADDRESS}:{self.ports.peer(name)}" for name in NODES),
            "ETCD": ", ".join(f'"{ADDRESS}:{self.ports.client(name)}"' for name in NODES),
            "POSTGRES_BIN": postgres_bin,
            "SOCKETS": self.sockets(node),
            "PGPASS": home / "pgpass",
            "PGBACKREST": home / "pgbackrest.conf",
            "REPOSITORY": self.repository(),
            "RUN": self.sockets(node),
            "LOGS": home,
            "SUPERUSER_PASSWORD": self.passwords["superuser"],
            "REPLICATION_PASSWORD": self.passwords["replication"],
            "REWIND_PASSWORD": self.passwords["rewind"],
        }

    def servers(self):
        """Returns haproxy's lines for the three servers."""
        return "\n".join(
            f"  server {node} {ADDRESS}:{self.ports.postgres(node)} check port {self.ports.rest(node)}" for node in NODES
        )

    @contextlib.contextmanager
    def exclusive(self):
        """Locks the cluster while something is started or stopped."""
        with open(self.folder / "lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise HaError(f"another process is starting or stopping the cluster in {self.folder}") from None
            yield


def fill(template, values):
    """Returns a template with its placeholders replaced. Every placeholder must have a value."""
    text = (TEMPLATES / template).read_text()

    def value(match):
        if match[1] not in values:
            raise HaError(f"{template}: no value for {match[0]}")
        return str(values[match[1]])

    # Comments explain the placeholders, so they are not replaced there.
    lines = (
        line if re.match(r"\s*[#;]", line) else re.sub(r"@([A-Z_]+)@", value, line) for line in text.splitlines()
    )
    return "\n".join(lines) + "\n"


def write(path, text, account=None):
    """Writes a file atomically, readable only by its owner."""
    new = path.with_name(path.name + ".new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    if account:
        account.set_owner(new, 0o600)
    new.replace(path)
