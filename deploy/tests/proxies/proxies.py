"""The real nginx and haproxy, with the files of deploy/ and a few changed values: ports, folders, shorter times.

Each change names the text that it replaces, and the number of its occurrences. The run fails if they differ, so the tests cannot
diverge from the files.
"""

import os
import re
import shutil
import ssl
import subprocess
import time

from service import free_port
from wire import HOST, Endpoint, Skipped

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
NGINX = "deploy/nginx/partner-api.conf"
NGINX_FOR_INSPECTORS = "deploy/nginx/inspectors.conf"
HAPROXY = "deploy/haproxy/partner-api.cfg"

# The limits in tests: all times in seconds, and the requests or connections per address.
TIME_LIMIT, MAX_PER_ADDRESS = 2, 4


def program(name):
    """Finds a program, also in folders outside an ordinary user's PATH, where Debian installs servers."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")


def with_other_values(file, values):
    """Returns the text of a file of the project with replacements; `values` are (text, replacement, number of occurrences)."""
    with open(os.path.join(ROOT, file), encoding="utf-8") as source:
        text = source.read()
    for old, new, times in values:
        if text.count(old) != times:
            raise SystemExit(
                f"{file}: `{old}` must occur {times} times, but occurs {text.count(old)} times; see deploy/tests/proxies/proxies.py"
            )
        text = text.replace(old, new)
    return text


def write(path, text):
    """Writes a file, and returns its path."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def certificate(folder, host):
    """Creates a self-signed certificate that is valid for a day, and its key. Returns the paths of both."""
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
    """A private proxy in front of the service, with a separate folder."""

    name, arguments = "", ()
    # The host name that it serves, and the folder of the certificate.
    host, certificate_folder = HOST, "partner-api"

    def __init__(self, folder, service):
        self.folder, self.port, self.process = os.path.join(folder, self.name), free_port(), None
        os.makedirs(os.path.join(self.folder, self.certificate_folder))
        chain, key = certificate(os.path.join(self.folder, self.certificate_folder), self.host)
        with open(chain, encoding="ascii") as first, open(key, encoding="ascii") as second:
            self.pem = write(os.path.join(self.folder, "partner-api.pem"), first.read() + second.read())
        self.endpoint = Endpoint(self.name, self.port, ssl.create_default_context(), chain, self.host)
        self.output = os.path.join(self.folder, "output")
        self.configure(service)

    def configure(self, service):
        """Writes the configuration."""
        raise NotImplementedError

    def start(self):
        """Starts the proxy, and returns when it accepts connections."""
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(self.arguments, cwd=self.folder, stdout=output, stderr=output)
        for _ in range(200):
            try:
                self.endpoint.connect(timeout=5).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        raise SystemExit(f"{self.name} did not start:\n{open(self.output, encoding='utf-8').read()}")

    def stop(self):
        """Stops the proxy."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)

    def access_log(self):
        """Returns the access log's lines, one for each request."""
        raise NotImplementedError


class Nginx(Proxy):
    """nginx, with a minimal nginx.conf around the site."""

    name = "nginx"

    def wrapper(self, site):
        """Returns an nginx.conf that includes a site."""
        temporary = "".join(
            f"{kind}_temp_path {self.folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        return (
            # By default, the workers of root's nginx run as another user, who cannot use this folder. Ignored for other users.
            f"user root;\ndaemon off;\nmaster_process on;\npid {self.folder}/pid;\nerror_log {self.folder}/error.log;\n"
            + f"events {{ worker_connections 4096; }}\nhttp {{\n{temporary}include {site};\n}}\n"
        )

    def values(self, service):
        """Returns the file, the path of its log, and the other replacements."""
        return (
            NGINX,
            "/var/log/nginx/partner-api.log",
            [
                ("listen 443 ssl http2;", f"listen 127.0.0.1:{self.port} ssl http2;", 1),
                ("listen [::]:443 ssl http2;", "", 1),
                ("server 127.0.0.1:8080 max_fails", f"server 127.0.0.1:{service.endpoint.port} max_fails", 1),
                ("client_header_timeout 10s;", f"client_header_timeout {TIME_LIMIT}s;", 1),
                ("client_body_timeout 10s;", f"client_body_timeout {TIME_LIMIT}s;", 1),
                ("keepalive_timeout 60s;", f"keepalive_timeout {TIME_LIMIT}s;", 1),
                ("proxy_read_timeout 20s;", f"proxy_read_timeout {TIME_LIMIT}s;", 1),
                ("limit_conn partner_api_client_networks 64;", f"limit_conn partner_api_client_networks {MAX_PER_ADDRESS};", 1),
            ],
        )

    def configure(self, service):
        file, logged, values = self.values(service)
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
        """Runs `nginx -t` on the original file, except for the path of its log. Returns its output if it fails."""
        command = [program("nginx"), "-t", "-q", "-p", self.folder, "-c", f"{self.folder}/shipped-nginx.conf"]
        # nginx binds the ports. In a separate network namespace, they are free and need no privileges.
        for unshare in (["unshare", "--net"], ["unshare", "--net", "--map-root-user"]):
            if (
                shutil.which("unshare")
                and subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode == 0
            ):
                command = [*unshare, *command]
                break
        done = subprocess.run(command, capture_output=True, check=False)
        output = done.stderr.decode()
        if done.returncode and re.search(r"(bind|socket)\(\) .*failed", output):
            raise Skipped(f"the ports of the file cannot be bound here: {output.strip()}")
        return output if done.returncode else ""

    def access_log(self):
        with open(f"{self.folder}/access.log", encoding="utf-8") as log:
            return log.read().splitlines()


class NginxForInspectors(Nginx):
    """nginx in front of the inspectors' listener."""

    name = certificate_folder = "inspectors"
    host = "inspectors.example.org"
    # The allowed network, and an address outside it.
    ALLOWED, OUTSIDE = "127.0.0.0/16", "127.9.0.1"

    def values(self, service):
        return (
            NGINX_FOR_INSPECTORS,
            "/var/log/nginx/inspectors.log",
            [
                ("listen 443 ssl http2;", f"listen 127.0.0.1:{self.port} ssl http2;", 1),
                ("server 127.0.0.1:9466 max_fails", f"server 127.0.0.1:{service.inspectors.port} max_fails", 1),
                ("allow 10.0.0.0/8;", f"allow {self.ALLOWED};", 1),
            ],
        )


class Haproxy(Proxy):
    """haproxy with the complete file."""

    name = "haproxy"

    def configure(self, service):
        pem = ("/etc/haproxy/partner-api.pem alpn", f"{self.pem} alpn", 2)
        shipped = with_other_values(HAPROXY, [pem])
        write(f"{self.folder}/shipped.cfg", shipped)
        values = [
            pem,
            ("    log /dev/log local0\n", "    log stdout format raw local0\n", 1),
            ("    user haproxy\n    group haproxy\n    chroot /var/lib/haproxy\n", "", 1),
            ("bind 0.0.0.0:443 ssl", f"bind 127.0.0.1:{self.port} ssl", 1),
            (f"    bind [::]:443 v6only ssl crt {self.pem} alpn h2,http/1.1\n", "", 1),
            ("127.0.0.1:8080", f"127.0.0.1:{service.endpoint.port}", 2),
            ("check port 9464", f"check port {service.internal.port}", 1),
            ("timeout client 30s", f"timeout client {TIME_LIMIT}s", 1),
            ("timeout http-request 10s", f"timeout http-request {TIME_LIMIT}s", 1),
            ("timeout http-keep-alive 30s", f"timeout http-keep-alive {TIME_LIMIT}s", 1),
            ("timeout server 20s", f"timeout server {TIME_LIMIT}s", 1),
            ("wait-for-body time 10s", f"wait-for-body time {TIME_LIMIT}s", 1),
            ("sc0_conn_cur gt 64", f"sc0_conn_cur gt {MAX_PER_ADDRESS}", 1),
        ]
        path = write(f"{self.folder}/haproxy.cfg", with_other_values(HAPROXY, values))
        self.arguments = [program("haproxy"), "-db", "-f", path]

    def check_as_shipped(self):
        """Runs `haproxy -c` on the original file, except for the certificate. Returns its output if it fails."""
        command = [program("haproxy"), "-c", "-f", f"{self.folder}/shipped.cfg"]
        done = subprocess.run(command, capture_output=True, check=False)
        output = (done.stdout + done.stderr).decode()
        # Warnings of a newer haproxy are ignored.
        return output if done.returncode else ""

    def access_log(self):
        with open(self.output, encoding="utf-8") as log:
            return [line for line in log.read().splitlines() if line.startswith("{")]
