"""Where everything of a cluster on one machine is: folders, ports, passwords, and the files made of the templates."""

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
#: The cluster's name for Patroni and pgBackRest, the database, and the user that the service is there.
CLUSTER, DATABASE, USER = "partner", "partner", "partner_api"
ADDRESS = "127.0.0.1"
#: Blocks of a hundred ports, below those that the kernel gives away.
BLOCKS = range(16400, 30000, 100)
#: The longest path of a socket, in bytes.
LONGEST_SOCKET = 107
NOTE = "cluster.json"


class Ports:
    """The ports of a cluster: a block of a hundred, of which each thing has its own."""

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

    def taken(self):
        """Those that somebody else has."""
        return [port for port in self.all() if not is_free(port)]


def is_free(port):
    """Whether nobody listens on the port of loopback."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True


def free_port():
    """A port of loopback that nobody has just now."""
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return probe.getsockname()[1]


class Layout:
    """A cluster's folder. What it is made of is in `cluster.json`, passwords included: for its owner alone."""

    def __init__(self, folder, note):
        self.folder = folder
        self.ports = Ports(note["port"])
        self.passwords = note["passwords"]

    @classmethod
    def open(cls, folder):
        """The cluster that is in `folder`."""
        folder = pathlib.Path(folder).resolve()
        try:
            return cls(folder, json.loads((folder / NOTE).read_text()))
        except FileNotFoundError:
            raise HaError(f"there is no cluster in {folder}; deploy/ha/up makes one") from None
        except PermissionError:
            raise HaError(f"the cluster in {folder} is somebody else's") from None

    @classmethod
    def exists(cls, folder):
        return (pathlib.Path(folder) / NOTE).exists()

    @classmethod
    def make(cls, folder, port, account):
        """A new cluster's folder. `port` is the first of its hundred ports; None takes a block that is free."""
        folder = pathlib.Path(folder).resolve()
        if folder.exists() and any(entry.name != "lock" for entry in folder.iterdir()):
            raise HaError(f"{folder} is not empty, and holds no cluster; name another folder with --dir")
        longest = folder / NODES[0] / "run" / ".s.PGSQL.65535"
        if len(os.fsencode(longest)) > LONGEST_SOCKET:
            raise HaError(f"{folder} is too long a path for Postgres' sockets; name a shorter one with --dir")
        folder.mkdir(parents=True, exist_ok=True)
        os.chmod(folder, 0o755)
        if not account.reaches(folder):
            with contextlib.suppress(OSError):
                folder.rmdir()
            raise HaError(
                f"Postgres runs as the user {account.name}, which cannot enter {folder}; name a folder with --dir "
                "above which all may be entered by everybody"
            )
        if port is None:
            port = next((base for base in BLOCKS if not Ports(base).taken()), None)
            if port is None:
                raise HaError(f"no block of free ports from {BLOCKS.start} on; name one with --port")
        elif taken := Ports(port).taken():
            raise HaError(f"ports are taken: {', '.join(map(str, taken))}; name another first port with --port")
        roles = ("superuser", "replication", "rewind", "service")
        note = {"port": port, "passwords": {role: secrets.token_urlsafe(24) for role in roles}}
        write(folder / NOTE, json.dumps(note, indent=2))
        return cls(folder, note)

    def node(self, node):
        return self.folder / node

    def data(self, node):
        """Postgres' data folder."""
        return self.folder / node / "data"

    def sockets(self, node):
        return self.folder / node / "run"

    def repository(self):
        """pgBackRest's."""
        return self.folder / "repository"

    def url(self, port):
        """A database URL for the service."""
        return f"postgresql://{USER}:{self.passwords['service']}@{ADDRESS}:{port}/{DATABASE}"

    def values(self, node, account, postgres_bin):
        """What the templates of a node are filled with."""
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
        """The lines of haproxy's that name the three."""
        return "\n".join(
            f"  server {node} {ADDRESS}:{self.ports.postgres(node)} check port {self.ports.rest(node)}" for node in NODES
        )

    @contextlib.contextmanager
    def changing(self):
        """Held by who starts or stops something: two at once would be in each other's way."""
        with open(self.folder / "lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise HaError(f"the cluster in {self.folder} is being started or stopped by somebody else") from None
            yield


def fill(template, values):
    """A template with its names replaced. One that has no value, and a value without its name, is our mistake."""
    text = (TEMPLATES / template).read_text()

    def value(match):
        if match[1] not in values:
            raise HaError(f"{template}: no value for {match[0]}")
        return str(values[match[1]])

    # In comments they stay, for they are spoken of there.
    lines = (
        line if re.match(r"\s*[#;]", line) else re.sub(r"@([A-Z_]+)@", value, line) for line in text.splitlines()
    )
    return "\n".join(lines) + "\n"


def write(path, text, account=None):
    """Writes a file for its owner alone, whole or not at all."""
    new = path.with_name(path.name + ".new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    if account:
        account.give(new, 0o600)
    new.replace(path)
