"""A private PostgreSQL with a socket that can be mounted into a container."""

import glob
import os
import pwd
import shutil
import subprocess


class Database:
    """A cluster in a folder. Postgres does not run as root; in that case it runs as `postgres`."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "postgres")
        # Containers run as another user, so every user may enter the folder and connect.
        self.socket = os.path.join(self.folder, "run")
        programs = [os.path.dirname(os.path.realpath(shutil.which("initdb") or "")), *glob.glob("/usr/lib/postgresql/*/bin")]
        self.programs = next(folder for folder in programs if os.path.exists(os.path.join(folder, "pg_ctl")))
        os.makedirs(self.socket)
        self.account = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            self.account = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            for path in (self.folder, self.socket):
                os.chown(path, user.pw_uid, user.pw_gid)
        for path in (self.folder, self.socket):
            os.chmod(path, 0o755)
        self._run("initdb", "--auth=trust", "--username=check", "--no-sync", "--encoding=UTF8")

    def url(self, folder):
        """Returns the URL for clients that see the socket in this folder."""
        return f"postgresql://check@/postgres?host={folder}"

    def _run(self, program, *arguments):
        command = [os.path.join(self.programs, program), "--pgdata", os.path.join(self.folder, "data"), *arguments]
        # Into files, because the server keeps its output streams open as long as it runs.
        with open(os.path.join(self.folder, f"{program}.log"), "w+b") as output:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.folder, check=False, **self.account
            )
            if done.returncode:
                output.seek(0)
                raise SystemExit(f"{program}: {output.read().decode()}")

    def start(self):
        """Starts the cluster, and returns when it accepts connections."""
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.socket}'"
        self._run("pg_ctl", "start", "--wait", "--silent", "--options", options)

    def stop(self):
        """Stops the cluster at once, without waiting for its clients."""
        if os.path.exists(os.path.join(self.folder, "data", "postmaster.pid")):
            self._run("pg_ctl", "stop", "--wait", "--silent", "--mode", "immediate")
