"""A private PostgreSQL, on a socket that a container can be given as a volume."""

import glob
import os
import pwd
import shutil
import subprocess


class Database:
    """A cluster in a folder. Postgres refuses to be run by root: it is run by `postgres` then."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "postgres")
        # What containers see, whose user is another one: all may come in, and Postgres lets all connect.
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
        """Its address, for who sees the socket in this folder."""
        return f"postgresql://check@/postgres?host={folder}"

    def _run(self, program, *words):
        command = [os.path.join(self.programs, program), "--pgdata", os.path.join(self.folder, "data"), *words]
        # To files, for the server keeps what it is given for as long as it runs.
        with open(os.path.join(self.folder, f"{program}.log"), "w+b") as said:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=self.folder, check=False, **self.account
            )
            if done.returncode:
                said.seek(0)
                raise SystemExit(f"{program}: {said.read().decode()}")

    def start(self):
        """Starts it, and returns when it answers."""
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.socket}'"
        self._run("pg_ctl", "start", "--wait", "--silent", "--options", options)

    def stop(self):
        """Stops it at once, whoever uses it."""
        if os.path.exists(os.path.join(self.folder, "data", "postmaster.pid")):
            self._run("pg_ctl", "stop", "--wait", "--silent", "--mode", "immediate")
