"""The real nginx and haproxy, with the files of deploy/ and other values in a few places: ports, folders, shorter times.

Each place is named by the text that stands in the file. A text that is not there any more, or stands there more often than
is said, ends the run: so the files and what is tested cannot drift apart.
"""

import os
import re
import shutil
import ssl
import subprocess
import time

from service import free_port
from wire import HOST, Door, Skipped

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
NGINX = "deploy/nginx/partner-api.conf"
NGINX_FOR_INSPECTORS = "deploy/nginx/inspectors.conf"
HAPROXY = "deploy/haproxy/partner-api.cfg"

# The bounds of a test's run: of all times in seconds, and of requests or connections of one address.
BOUND, CAP = 2, 4


def program(name):
    """Debian's servers are where the PATH of an ordinary user does not lead."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")


def with_other_values(file, values):
    """The text of a file of the project, each of `values` (text, other text, how often it stands there) replaced."""
    with open(os.path.join(ROOT, file), encoding="utf-8") as source:
        text = source.read()
    for old, new, times in values:
        if text.count(old) != times:
            raise SystemExit(
                f"{file}: `{old}` stands there {text.count(old)} times, not {times}: see deploy/tests/proxies/proxies.py"
            )
        text = text.replace(old, new)
    return text


def write(path, text):
    """Writes a file, and returns its path."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def certificate(folder, host):
    """A certificate of its own for an hour or so, and its key; returns the paths of both."""
    chain, key = os.path.join(folder, "fullchain.pem"), os.path.join(folder, "privkey.pem")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += [
        "-days",
        "1",
        "-subj",
        f"/CN={host}",
        "-addext",
        f"subjectAltName=DNS:{host}",
        "-keyout",
        key,
        "-out",
        chain,
    ]
    subprocess.run(command, check=True, capture_output=True)
    return chain, key


class Proxy:
    """A proxy in front of the service: an nginx or a haproxy of our own, with a folder of its own."""

    name, arguments = "", ()
    # The name that it serves, and the folder in which its file looks for the certificate.
    host, kept_in = HOST, "partner-api"

    def __init__(self, folder, upstream, internal):
        self.folder, self.port, self.process = os.path.join(folder, self.name), free_port(), None
        os.makedirs(os.path.join(self.folder, self.kept_in))
        chain, key = certificate(os.path.join(self.folder, self.kept_in), self.host)
        with open(chain, encoding="ascii") as first, open(key, encoding="ascii") as second:
            self.pem = write(os.path.join(self.folder, "partner-api.pem"), first.read() + second.read())
        self.door = Door(self.name, self.port, ssl.create_default_context(), chain, self.host)
        self.output = os.path.join(self.folder, "output")
        self.configure(upstream, internal)

    def configure(self, upstream, internal):
        """Writes the configuration."""
        raise NotImplementedError

    def start(self):
        """Starts it, and returns when it takes connections."""
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(self.arguments, cwd=self.folder, stdout=output, stderr=output)
        for _ in range(200):
            try:
                self.door.connect(timeout=5).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        raise SystemExit(f"{self.name} did not start:\n{open(self.output, encoding='utf-8').read()}")

    def stop(self):
        """Stops it."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)

    def access_log(self):
        """What it has logged of requests, one line each."""
        raise NotImplementedError


class Nginx(Proxy):
    """nginx, with nothing around the site but what any nginx.conf has."""

    name = "nginx"

    def wrapper(self, site):
        """An nginx.conf around a site."""
        temporary = "".join(
            f"{kind}_temp_path {self.folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        return (
            # The workers of root's nginx are somebody else, who cannot use this folder. For others, this says nothing.
            f"user root;\ndaemon off;\nmaster_process on;\npid {self.folder}/pid;\nerror_log {self.folder}/error.log;\n"
            + f"events {{ worker_connections 4096; }}\nhttp {{\n{temporary}include {site};\n}}\n"
        )

    def values(self, upstream, internal):
        """The file, the folder of its log as it stands there, and what else is other in the test."""
        return (
            NGINX,
            "/var/log/nginx/partner-api.log",
            [
                ("listen 443 ssl http2;", f"listen 127.0.0.1:{self.port} ssl http2;", 1),
                ("listen [::]:443 ssl http2;", "", 1),
                ("server 127.0.0.1:8080 max_fails", f"server 127.0.0.1:{upstream} max_fails", 1),
                ("client_header_timeout 10s;", f"client_header_timeout {BOUND}s;", 1),
                ("client_body_timeout 10s;", f"client_body_timeout {BOUND}s;", 1),
                ("keepalive_timeout 60s;", f"keepalive_timeout {BOUND}s;", 1),
                ("proxy_read_timeout 20s;", f"proxy_read_timeout {BOUND}s;", 1),
                ("limit_conn partner_api_client_networks 64;", f"limit_conn partner_api_client_networks {CAP};", 1),
            ],
        )

    def configure(self, upstream, internal):
        file, logged, values = self.values(upstream, internal)
        log = (logged, f"{self.folder}/access.log", 1)
        write(f"{self.folder}/shipped.conf", with_other_values(file, [log]))
        write(f"{self.folder}/shipped-nginx.conf", self.wrapper(f"{self.folder}/shipped.conf"))
        write(f"{self.folder}/site.conf", with_other_values(file, [log, *values]))
        write(f"{self.folder}/nginx.conf", self.wrapper(f"{self.folder}/site.conf"))
        self.arguments = [
            program("nginx"),
            "-p",
            self.folder,
            "-c",
            f"{self.folder}/nginx.conf",
            "-e",
            f"{self.folder}/error.log",
        ]

    def check_as_shipped(self):
        """`nginx -t` of the file as it is, but for the folder of its log. What it says, if it is not content."""
        command = [program("nginx"), "-t", "-q", "-p", self.folder, "-c", f"{self.folder}/shipped-nginx.conf"]
        # It binds the ports: in a network of its own nobody has them, and everybody may.
        for alone in (["unshare", "--net"], ["unshare", "--net", "--map-root-user"]):
            if (
                shutil.which("unshare")
                and subprocess.run([*alone, "true"], capture_output=True, check=False).returncode == 0
            ):
                command = [*alone, *command]
                break
        done = subprocess.run(command, capture_output=True, check=False)
        said = done.stderr.decode()
        if done.returncode and re.search(r"(bind|socket)\(\) .*failed", said):
            raise Skipped(f"the ports of the file cannot be had here: {said.strip()}")
        return said if done.returncode else ""

    def access_log(self):
        with open(f"{self.folder}/access.log", encoding="utf-8") as log:
            return log.read().splitlines()


class NginxForInspectors(Nginx):
    """nginx in front of the internal listener."""

    name = kept_in = "inspectors"
    host = "inspectors.example.org"
    # The network that the page is for, and an address of another one.
    ALLOWED, OUTSIDE = "127.0.0.0/16", "127.9.0.1"

    def values(self, upstream, internal):
        return (
            NGINX_FOR_INSPECTORS,
            "/var/log/nginx/inspectors.log",
            [
                ("listen 443 ssl http2;", f"listen 127.0.0.1:{self.port} ssl http2;", 1),
                ("server 127.0.0.1:9464 max_fails", f"server 127.0.0.1:{internal} max_fails", 1),
                ("allow 10.0.0.0/8;", f"allow {self.ALLOWED};", 1),
            ],
        )


class Haproxy(Proxy):
    """haproxy, with the whole file."""

    name = "haproxy"

    def configure(self, upstream, internal):
        pem = ("/etc/haproxy/partner-api.pem alpn", f"{self.pem} alpn", 2)
        shipped = with_other_values(HAPROXY, [pem])
        write(f"{self.folder}/shipped.cfg", shipped)
        values = [
            pem,
            ("    log /dev/log local0\n", "    log stdout format raw local0\n", 1),
            ("    user haproxy\n    group haproxy\n    chroot /var/lib/haproxy\n", "", 1),
            ("bind 0.0.0.0:443 ssl", f"bind 127.0.0.1:{self.port} ssl", 1),
            (f"    bind [::]:443 v6only ssl crt {self.pem} alpn h2,http/1.1\n", "", 1),
            ("127.0.0.1:8080", f"127.0.0.1:{upstream}", 2),
            ("check port 9464", f"check port {internal}", 1),
            ("timeout client 30s", f"timeout client {BOUND}s", 1),
            ("timeout http-request 10s", f"timeout http-request {BOUND}s", 1),
            ("timeout http-keep-alive 30s", f"timeout http-keep-alive {BOUND}s", 1),
            ("timeout server 20s", f"timeout server {BOUND}s", 1),
            ("wait-for-body time 10s", f"wait-for-body time {BOUND}s", 1),
            ("sc0_conn_cur gt 64", f"sc0_conn_cur gt {CAP}", 1),
        ]
        path = write(f"{self.folder}/haproxy.cfg", with_other_values(HAPROXY, values))
        self.arguments = [program("haproxy"), "-db", "-f", path]

    def check_as_shipped(self):
        """`haproxy -c` of the file as it is, but for the certificate. What it says, if it is not content."""
        command = [program("haproxy"), "-c", "-f", f"{self.folder}/shipped.cfg"]
        done = subprocess.run(command, capture_output=True, check=False)
        said = (done.stdout + done.stderr).decode()
        # A warning of a newer haproxy is no fault of the file's; what it does not understand is.
        return said if done.returncode else ""

    def access_log(self):
        with open(self.output, encoding="utf-8") as log:
            return [line for line in log.read().splitlines() if line.startswith("{")]
