"""The files as they are: the unit, the container's file, and what nginx takes for a neighbourhood."""

import http.server
import ipaddress
import itertools
import json
import os
import re
import shutil
import subprocess
import threading
import tomllib

from proxies import NGINX, ROOT, with_other_values, write
from wire import Skipped

UNIT = "deploy/systemd/partner-api.service"
SYSUSERS = "deploy/systemd/partner-api.sysusers"
CONTAINERFILE = "deploy/container/Containerfile"
# systemd's own scale, from 0 to 10. What is left is the network and the host's own root folder.
EXPOSURE = 1.5


def text_of(file):
    """A file of the project."""
    with open(os.path.join(ROOT, file), encoding="utf-8") as source:
        return source.read()


def run(*command, **options):
    """Runs a command; returns its code and what it said."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)
    return done.returncode, done.stdout.decode()


def works_here(what, said):
    """Whether systemd's tool got as far as to look at the unit.

    Without a folder to work in, or older than 250, it does not.
    """
    for reason in ("Failed to initialize", "Failed to setup working directory", "unrecognized option"):
        if said.startswith(reason) or f": {reason}" in said:
            raise Skipped(f"{what} does not work here: {said.strip()}")


class Sick(http.server.BaseHTTPRequestHandler):
    """Answers 501 to whatever is asked, and says nothing of it."""

    def log_message(self, *_):
        """Nothing."""


class Files:
    """Checks of files; each returns what is wrong, or nothing."""

    def __init__(self, program, folder, service):
        self.program, self.folder, self.service = program, folder, service

    def systemd_understands_the_unit(self):
        """`systemd-analyze verify`, with the program where it is here; and its user is one that systemd can make."""
        if not shutil.which("systemd-analyze"):
            raise Skipped("systemd-analyze is not here")
        program = ("ExecStart=/usr/local/bin/partner-api serve", f"ExecStart={self.program} serve", 1)
        unit = write(os.path.join(self.folder, "partner-api.service"), with_other_values(UNIT, [program]))
        code, said = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit)
        works_here("systemd-analyze verify", said)
        if os.geteuid() == 0 and shutil.which("systemd-sysusers"):
            made = os.path.join(self.folder, "root")
            os.makedirs(os.path.join(made, "etc"))
            user = run("systemd-sysusers", f"--root={made}", os.path.join(ROOT, SYSUSERS))[1]
            if not re.search(r"^partner-api:", text_of(os.path.join(made, "etc", "passwd")), re.M):
                return f"{SYSUSERS} makes no user partner-api: {user}"
        # Other units of the machine may have faults of their own; an unknown line of ours is only said, not counted.
        ours = "\n".join(line for line in said.splitlines() if "partner-api" in line)
        return ours or (said if code else "")

    def the_unit_is_hardened(self):
        """`systemd-analyze security`."""
        if not shutil.which("systemd-analyze"):
            raise Skipped("systemd-analyze is not here")
        code, said = run(
            "systemd-analyze",
            "security",
            "--offline=true",
            "--no-pager",
            f"--threshold={int(EXPOSURE * 10)}",
            os.path.join(ROOT, UNIT),
        )
        works_here("systemd-analyze security", said)
        return said if code else ""

    def the_unit_gives_running_requests_their_time(self):
        """More until SIGKILL than the service's own deadline."""
        stop = int(re.search(r"^TimeoutStopSec=(\d+)s$", text_of(UNIT), re.M)[1])
        told = run(self.program, "serve", "--help")[1]
        deadline = int(re.search(r"--shutdown-deadline.*?\[default:\s+(\d+)s\]", told, re.S)[1])
        return "" if stop >= deadline + 10 else f"TimeoutStopSec is {stop} s, the shutdown deadline {deadline} s"

    def what_the_unit_sets_is_what_the_program_reads(self):
        """Variables of its environment, and the codes of its end."""
        told = run(self.program, "serve", "--help")[1]
        named = re.findall(r"^Environment=(PARTNER_API_\w+)=", text_of(UNIT), re.M)
        named += re.findall(r"\b(PARTNER_API_\w+)=", text_of(CONTAINERFILE))
        known = set(re.findall(r"PARTNER_API_\w+", told))
        wrong = [f"{name} is no variable of the program" for name in named if name not in known]
        code, said = run(self.program, "serve", "--pool-size", "none", env={"PATH": os.environ["PATH"]})
        if f"RestartPreventExitStatus={code}" not in text_of(UNIT):
            wrong.append(f"a wrong option ends with {code}, which the unit restarts: {said}")
        return "\n".join(wrong)

    def the_container_is_built_of_what_is_there(self):
        """What is copied, the compiler's version, and packages and features that cargo knows, of which none is forgotten."""
        text, wrong = text_of(CONTAINERFILE), []
        for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.M):
            wrong += [
                f"{path} is not there" for path in line.split()[:-1] if not os.path.exists(os.path.join(ROOT, path))
            ]
        channel = tomllib.loads(text_of("rust-toolchain.toml"))["toolchain"]["channel"]
        if f"/rust:{channel.removesuffix('.0')}-" not in text:
            wrong.append(f"it builds with another compiler than rust-toolchain.toml: {channel}")
        if not re.search(r"^USER [1-9]\d*:[1-9]\d*$", text, re.M):
            wrong.append("it does not run as a numbered user who is not root")
        features = re.search(r"--no-default-features --features (\S+)", text)[1].split(",")
        default = set(tomllib.loads(text_of("crates/cli/Cargo.toml"))["features"]["default"])
        # Both start a PostgreSQL, which is not in there.
        if missing := default - {"embedded-postgres", "sandbox"} - set(features):
            wrong.append(f"it is built without {', '.join(sorted(missing))}")
        selection = re.search(r"cargo build --release (--locked .*?) \\?$", text, re.M)[1].split()
        if not shutil.which("cargo"):
            raise Skipped("cargo is not here")
        code, said = run("cargo", "tree", "--quiet", "--offline", "--depth", "0", *selection, cwd=ROOT)
        if code and "--offline" in said:
            raise Skipped("cargo has not downloaded all packages")
        return "\n".join([*wrong, said] if code else wrong)

    def the_container_has_a_health_check_that_tells(self):
        """Its command as it stands there: with the service, with what answers everything 501, with nothing at the port."""
        command = json.loads(re.search(r"^HEALTHCHECK[^\[]* CMD (\[.*\])$", text_of(CONTAINERFILE), re.M)[1])
        wrong = []
        with http.server.HTTPServer(("127.0.0.1", 0), Sick) as sick:
            threading.Thread(target=sick.handle_request, daemon=True).start()
            for port, healthy in ((self.service.internal.port, True), (sick.server_port, False), (1, False)):
                environment = {"PATH": os.environ["PATH"], "PARTNER_API_INTERNAL_LISTEN": f"127.0.0.1:{port}"}
                code, said = run(*command, env=environment)
                if (code == 0) != healthy:
                    wrong.append(f"port {port}: it ends with {code}: {said}")
        return "\n".join(wrong)

    def nginx_counts_an_ipv6_network_as_one(self):
        """The patterns of its map, tried with addresses as nginx writes them."""
        block = text_of(NGINX).split("$partner_api_client_network {")[1].split("}\n")[0]
        rules = [
            (re.compile(pattern.replace("(?<", "(?P<")), value)
            for pattern, value in re.findall(r'^ *"~(.*)" "(.*)";$', block, re.M)
        ]

        def neighbour(address):
            for pattern, value in rules:
                match = pattern.search(address)
                if match:
                    return re.sub(r"\$\{?(\w+)\}?", lambda name: match[name[1]], value)
            return address

        networks = [
            "2001:db8:0:1::/64",
            "2001:db8::/64",
            "2001:db8:a:b::/64",
            "2001:db8:a::/64",
            "2a02::/64",
            "fe80::/64",
        ]
        networks += ["2a02:0:0:5::/64", "2a02:0:0:6::/64", "2a02:0:5::/64", "2a02:0:5:6::/64", "2a02:5:0:6::/64"]
        parts = (0, 1, 0xABCD, 0xFFFF)
        hosts = [
            sum(part << shift for part, shift in zip(four, (0, 16, 32, 48)))
            for four in itertools.product(parts, repeat=4)
        ]
        wrong, seen = [], {}
        for network in networks:
            names = {neighbour(str(ipaddress.ip_network(network)[host])) for host in hosts}
            if len(names) != 1:
                wrong.append(f"{network} is counted as {sorted(names)}")
            wrong += [f"{network} and {seen[name]} are counted as one: {name}" for name in names if name in seen]
            seen.update({name: network for name in names})
        if neighbour("192.0.2.7") != "192.0.2.7":
            wrong.append("an IPv4 address is not itself")
        return "\n".join(wrong)

    def checks(self):
        """All of them."""
        return [
            self.systemd_understands_the_unit,
            self.the_unit_is_hardened,
            self.the_unit_gives_running_requests_their_time,
            self.what_the_unit_sets_is_what_the_program_reads,
            self.the_container_is_built_of_what_is_there,
            self.the_container_has_a_health_check_that_tells,
            self.nginx_counts_an_ipv6_network_as_one,
        ]
