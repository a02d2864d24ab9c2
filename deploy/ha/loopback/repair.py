"""The repair of a cluster after two of its nodes were promoted, so that the archive contains a timeline that its primary does not
descend from. Standbys then fail to start: "requested timeline 2 is not a child of this server's history"."""

import datetime
import re

from .cluster import START_TIMEOUT
from .layout import CLUSTER, NODES
from .programs import HaError, processes_in, wait_until


class Repair:
    """The repair of a cluster, which keeps one node's data."""

    def __init__(self, cluster, keep):
        self.cluster, self.keep = cluster, keep
        self.data = cluster.layout.data(keep)

    def run(self, say):
        """Stops the cluster, puts the kept node on a timeline newer than all others, sets the data of the other nodes aside, and
        starts the cluster, which copies the kept node. Returns the folders that were set aside."""
        cluster = self.cluster
        for node in (*(node for node in NODES if node != self.keep), self.keep):
            say(f"stopping {node}")
            cluster.stop_node(node)
        timeline = self._promote()
        say(f"{self.keep} is on timeline {timeline}")
        cluster.start_node(self.keep)
        aside = []
        for node in NODES:
            if node != self.keep:
                aside.append(self._set_aside(node))
                cluster.start_node(node)
        say("waiting until both standbys have copied it")
        cluster.wait_healthy(START_TIMEOUT)
        return aside

    def _promote(self):
        """Starts the kept node alone, promotes it, and stops it. Returns its timeline, which is neither in its data nor in the
        archive."""
        cluster, account = self.cluster, self.cluster.account
        home, pg_ctl = cluster.layout.node(self.keep), [cluster.postgres_bin / "pg_ctl", "-D", self.data]
        (self.data / "standby.signal").touch()
        account.set_owner(self.data / "standby.signal", 0o600)
        settings = {
            "recovery_target_timeline": "current",
            # Patroni sets this for standbys only. Without it, a timeline of the archive could be selected again.
            "restore_command": f'pgbackrest --config={home / "pgbackrest.conf"} --stanza={CLUSTER} archive-get %f "%p"',
            # Reachable only through the socket, so that no client writes before there are standbys.
            "listen_addresses": "",
            "primary_conninfo": "",
            "synchronous_standby_names": "",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        log = home / "repair.log"
        account.start([cluster.postgres_bin / "postgres", "-D", self.data, *options], log)

        def is_in_recovery():
            try:
                return cluster.psql("SELECT pg_is_in_recovery()", self.keep)
            except HaError:
                return None

        if not wait_until(is_in_recovery, START_TIMEOUT, every=0.3):
            raise HaError(f"PostgreSQL of {self.keep} did not start; see {log}")
        account.run([*pg_ctl, "promote", "-w", "-t", START_TIMEOUT], timeout=2 * START_TIMEOUT)
        timeline = cluster.psql("CHECKPOINT; SELECT timeline_id FROM pg_control_checkpoint()", self.keep)
        account.run([*pg_ctl, "stop", "-m", "fast"], timeout=2 * START_TIMEOUT)
        return timeline

    def _set_aside(self, node):
        data = self.cluster.layout.data(node)
        if not wait_until(lambda: not processes_in(data), 10):
            raise HaError(f"PostgreSQL of {node} still runs")
        name = re.sub(r"\W", "", datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")[:19])
        return data.rename(data.with_name(f"data-{name}"))
