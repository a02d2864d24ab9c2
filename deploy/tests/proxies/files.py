"""Checks of the files themselves: the systemd units, the Containerfile, and nginx's map of client networks."""

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
JOBS = ("deploy/systemd/partner-api-backup", "deploy/systemd/partner-api-purge")
SYSUSERS = "deploy/systemd/partner-api.sysusers"
CONTAINERFILE = "deploy/container/Containerfile"
# The maximum exposure on systemd's scale from 0 to 10. The rest is the network and the host's root folder. The backup is verified in
# a private cluster, which needs shared memory and its own users.
EXPOSURE = {UNIT: 1.5, f"{JOBS[0]}.service": 2.0, f"{JOBS[1]}.service": 1.5}


def text_of(file):
    """Returns the text of a file of the project."""
    with open(os.path.join(ROOT, file), encoding="utf-8") as source:
        return source.read()


def run(*command, **options):
    """Runs a command, and returns its exit code and its output."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)
    return done.returncode, done.stdout.decode()


def skip_unless_it_works(tool, output):
    """Skips the check if systemd's tool failed before it read the unit: it is older than 250, or has no working folder."""
    for reason in ("Failed to initialize", "Failed to setup working directory", "unrecognized option"):
        if output.startswith(reason) or f": {reason}" in output:
            raise Skipped(f"{tool} does not work here: {output.strip()}")


class AlwaysFailing(http.server.BaseHTTPRequestHandler):
    """Responds to every request with 501."""

    def log_message(self, *_):
        """Logs nothing."""


class Files:
    """Checks of files. Each returns the problems, or an empty string."""

    def __init__(self, program, folder, service):
        self.program, self.folder, self.service = program, folder, service

    def systemd_accepts_the_units(self):
        """Runs `systemd-analyze verify` with the path of the local program, and creates the units' user."""
        if not shutil.which("systemd-analyze"):
            raise Skipped("systemd-analyze is not installed")
        units = []
        for file in [UNIT, *(f"{job}.{kind}" for job in JOBS for kind in ("service", "timer"))]:
            calls = text_of(file).count("ExecStart=/usr/local/bin/partner-api ")
            program = [("ExecStart=/usr/local/bin/partner-api ", f"ExecStart={self.program} ", calls)] if calls else []
            units.append(write(os.path.join(self.folder, os.path.basename(file)), with_other_values(file, program)))
        code, output = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units)
        skip_unless_it_works("systemd-analyze verify", output)
        if os.geteuid() == 0 and shutil.which("systemd-sysusers"):
            made = os.path.join(self.folder, "root")
            os.makedirs(os.path.join(made, "etc"))
            user = run("systemd-sysusers", f"--root={made}", os.path.join(ROOT, SYSUSERS))[1]
            if not re.search(r"^partner-api:", text_of(os.path.join(made, "etc", "passwd")), re.M):
                return f"{SYSUSERS} does not create the user partner-api: {user}"
        # Ignore errors of other units. An unknown line in our unit is printed but does not change the exit code.
        ours = "\n".join(line for line in output.splitlines() if "partner-api" in line)
        return ours or (output if code else "")

    def the_units_are_hardened(self):
        """Runs `systemd-analyze security`."""
        if not shutil.which("systemd-analyze"):
            raise Skipped("systemd-analyze is not installed")
        problems = []
        for unit, exposure in EXPOSURE.items():
            code, output = run(
                "systemd-analyze",
                "security",
                "--offline=true",
                "--no-pager",
                f"--threshold={int(exposure * 10)}",
                os.path.join(ROOT, unit),
            )
            skip_unless_it_works("systemd-analyze security", output)
            problems += [output] if code else []
        return "\n".join(problems)

    def the_program_knows_the_commands_of_the_units(self):
        """Asks for the help of each command, and looks for the options in it."""
        problems = []
        for unit in EXPOSURE:
            for line in re.findall(r"^ExecStart=/usr/local/bin/partner-api (.*)$", text_of(unit), re.M):
                words = list(itertools.takewhile(str.isalpha, line.split()))
                code, help_text = run(self.program, *words, "--help")
                options = re.findall(r"--[a-z-]+", line)
                if code or any(f"{option} " not in help_text for option in options):
                    problems.append(f"{unit}: {line}: {help_text}")
        return "\n".join(problems)

    def the_unit_waits_for_running_requests(self):
        """The time until SIGKILL is longer than the service's shutdown deadline."""
        stop = int(re.search(r"^TimeoutStopSec=(\d+)s$", text_of(UNIT), re.M)[1])
        help_text = run(self.program, "serve", "--help")[1]
        deadline = int(re.search(r"--shutdown-deadline.*?\[default:\s+(\d+)s\]", help_text, re.S)[1])
        return "" if stop >= deadline + 10 else f"TimeoutStopSec is {stop} s, the shutdown deadline {deadline} s"

    def the_program_knows_the_units_settings(self):
        """Checks the environment variables and the exit code."""
        help_text = run(self.program, "serve", "--help")[1]
        named = re.findall(r"^Environment=(PARTNER_API_\w+)=", text_of(UNIT), re.M)
        named += re.findall(r"\b(PARTNER_API_\w+)=", text_of(CONTAINERFILE))
        known = set(re.findall(r"PARTNER_API_\w+", help_text))
        problems = [f"{name} is not a variable of the program" for name in named if name not in known]
        code, output = run(self.program, "serve", "--pool-size", "none", env={"PATH": os.environ["PATH"]})
        if f"RestartPreventExitStatus={code}" not in text_of(UNIT):
            problems.append(f"an invalid option exits with {code}, which the unit restarts: {output}")
        return "\n".join(problems)

    def the_containerfile_matches_the_project(self):
        """Checks the copied files, the compiler's version, and the packages and features of cargo."""
        text, problems = text_of(CONTAINERFILE), []
        for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.M):
            problems += [
                f"{path} does not exist" for path in line.split()[:-1] if not os.path.exists(os.path.join(ROOT, path))
            ]
        channel = tomllib.loads(text_of("rust-toolchain.toml"))["toolchain"]["channel"]
        if f"/rust:{channel.removesuffix('.0')}-" not in text:
            problems.append(f"it does not build with the compiler of rust-toolchain.toml: {channel}")
        if not re.search(r"^USER [1-9]\d*:[1-9]\d*$", text, re.M):
            problems.append("it must run as a numeric user other than root")
        features = re.search(r"--no-default-features --features (\S+)", text)[1].split(",")
        default = set(tomllib.loads(text_of("crates/cli/Cargo.toml"))["features"]["default"])
        # Both start a PostgreSQL, which the image does not contain.
        if missing := default - {"embedded-postgres", "sandbox"} - set(features):
            problems.append(f"it is built without the features {', '.join(sorted(missing))}")
        selection = re.search(r"cargo build --release (--locked .*?) \\?$", text, re.M)[1].split()
        if not shutil.which("cargo"):
            raise Skipped("cargo is not installed")
        code, output = run("cargo", "tree", "--quiet", "--offline", "--depth", "0", *selection, cwd=ROOT)
        if code and "--offline" in output:
            raise Skipped("cargo has not downloaded all packages")
        return "\n".join([*problems, output] if code else problems)

    def the_containers_health_check_works(self):
        """Runs its command with the service, with a server that always responds with 501, and with an unused port."""
        command = json.loads(re.search(r"^HEALTHCHECK[^\[]* CMD (\[.*\])$", text_of(CONTAINERFILE), re.M)[1])
        problems = []
        with http.server.HTTPServer(("127.0.0.1", 0), AlwaysFailing) as failing:
            threading.Thread(target=failing.handle_request, daemon=True).start()
            for port, healthy in ((self.service.internal.port, True), (failing.server_port, False), (1, False)):
                environment = {"PATH": os.environ["PATH"], "PARTNER_API_INTERNAL_LISTEN": f"127.0.0.1:{port}"}
                code, output = run(*command, env=environment)
                if (code == 0) != healthy:
                    problems.append(f"port {port}: it exits with {code}: {output}")
        return "\n".join(problems)

    def nginx_counts_an_ipv6_network_as_one(self):
        """Tries the patterns of its map with addresses in nginx's notation."""
        block = text_of(NGINX).split("$partner_api_client_network {")[1].split("}\n")[0]
        rules = [
            (re.compile(pattern.replace("(?<", "(?P<")), value)
            for pattern, value in re.findall(r'^ *"~(.*)" "(.*)";$', block, re.M)
        ]

        def client_network(address):
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
        problems, seen = [], {}
        for network in networks:
            names = {client_network(str(ipaddress.ip_network(network)[host])) for host in hosts}
            if len(names) != 1:
                problems.append(f"{network} is counted as {sorted(names)}")
            problems += [f"{network} and {seen[name]} are counted as one: {name}" for name in names if name in seen]
            seen.update({name: network for name in names})
        if client_network("192.0.2.7") != "192.0.2.7":
            problems.append("an IPv4 address is changed")
        return "\n".join(problems)

    def checks(self):
        """Returns all checks."""
        return [
            self.systemd_accepts_the_units,
            self.the_units_are_hardened,
            self.the_program_knows_the_commands_of_the_units,
            self.the_unit_waits_for_running_requests,
            self.the_program_knows_the_units_settings,
            self.the_containerfile_matches_the_project,
            self.the_containers_health_check_works,
            self.nginx_counts_an_ipv6_network_as_one,
        ]
