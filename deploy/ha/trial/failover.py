#!/usr/bin/env python3
"""Kills the primary repeatedly under signed load, and checks that no acknowledged write was lost or done twice."""

import argparse
import json
import pathlib
import secrets
import shutil
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from loopback.cluster import Cluster, run  # noqa: E402
from loopback.layout import DATABASE, NODES, Layout  # noqa: E402
from loopback.programs import HaError, processes_in, wait_until  # noqa: E402
from trial.load import Connections, Load, longest_gap  # noqa: E402
from trial.service import Replica, fill_database  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: The maximum time in seconds without writes after a kill.
MAX_WRITE_GAP = 30
#: Seconds after which the test gives up waiting.
TIMEOUT = 120
#: The maximum number of requests from before a kill that are repeated after it.
MAX_REPLAYS = 300
#: The possible faults: the role of the affected node, and the killed parts.
FAULTS = {
    "primary": ("leader", ("patroni", "etcd", "postgres")),
    "stalled": ("leader", ("patroni", "etcd", "postgres")),
    "postgres": ("leader", ("postgres",)),
    "patroni": ("leader", ("patroni",)),
    "standby": ("sync_standby", ("patroni", "etcd", "postgres")),
}

EPILOG = f"""\
Creates a cluster of deploy/ha in a separate folder, with two replicas of the service behind haproxy. The load consists of new
measurements, each repeated until it is acknowledged; lists of reports; identical requests to both replicas at once; and
reads from a standby. Under this load, the test kills with SIGKILL, in turn, the parts that --faults names:
  primary    the primary's node: etcd, Patroni and Postgres together
  stalled    the same, after half a second in which the standbys receive nothing
  postgres   the primary's Postgres, while Patroni runs
  patroni    the primary's Patroni, while Postgres runs
  standby    the synchronous standby's node
After each kill, it repeats requests from before the kill, byte for byte, at the replica that had not processed them. Then it
restarts the killed parts and waits until the cluster is healthy. At the end it compares the database with the acknowledged
measurements.

exit code: 0 if nothing was lost or duplicated, no nonce was accepted twice, and writes resumed within {MAX_WRITE_GAP} s each
time; 1 otherwise, and the folder with all logs remains

examples:
  script/failover                     five kills, in about five minutes
  script/failover --kills 1
  script/failover --kills 20 --json
  script/failover --faults postgres,patroni,standby --kills 3
  script/failover --asynchronous      without synchronous replication: must find losses, and exit with 1"""


def parse():
    parser = argparse.ArgumentParser(
        prog="script/failover", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=5, metavar="NUMBER", help="the number of kills (default: 5)")
    parser.add_argument(
        "--faults", type=lambda text: text.split(","), default=["primary", "stalled"], metavar="FAULT,...",
        help="the faults, in turn (default: primary,stalled)",
    )
    parser.add_argument("--rate", type=float, default=60, metavar="NUMBER", help="maximum measurements per second (default: 60)")
    folder = ROOT / "target" / "failover"
    parser.add_argument(
        "--dir", type=pathlib.Path, default=folder, metavar="FOLDER", help="the cluster's folder (default: target/failover)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")
    parser.add_argument("--keep", action="store_true", help="always keep the cluster's folder")
    parser.add_argument(
        "--asynchronous", action="store_true", help="disable synchronous replication, to show that the test can fail"
    )
    parser.add_argument("--program", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kills < 1 or options.rate <= 0:
        parser.error("--kills and --rate must be greater than 0")
    if unknown := set(options.faults) - set(FAULTS):
        parser.error(f"--faults: unknown faults {', '.join(sorted(unknown))}; expected some of {', '.join(FAULTS)}")
    if options.asynchronous:
        options.faults = ["stalled"]
    return options


def say(line):
    print(line, file=sys.stderr, flush=True)


class Trial:
    """A cluster under load, and the effects of the kills."""

    def __init__(self, cluster, load, is_asynchronous):
        self.cluster, self.load, self.is_asynchronous = cluster, load, is_asynchronous
        self.kills = []
        self.repeated = self.accepted_again = self.without_verdict = 0

    def kill(self, number, fault):
        """Kills, waits for writes, repeats old requests, and restarts the killed parts."""
        role, parts = FAULTS[fault]
        victim = next((member["name"] for member in self.cluster.members() if member["role"] == role), None)
        if victim is None:
            raise HaError(f"there is no {role} to kill")
        receivers = self.stall(victim) if fault == "stalled" else []
        killed_at = time.monotonic()
        killed = self.cluster.kill_node(victim, parts)
        for process in receivers:
            # It ends before it continues to read, so changes that the primary had sent and no standby had received are lost.
            process.signal(signal.SIGTERM)
            process.signal(signal.SIGCONT)
        say(f"kill {number}, {fault}: {killed} processes of {victim}")
        # haproxy closes the sessions to a primary without Patroni only after a moment.
        time.sleep(2)
        if not wait_until(lambda: self.load.failure or self.cluster.leader(), TIMEOUT):
            raise HaError(f"no primary within {TIMEOUT} s of the kill")
        seen_at = time.monotonic()
        if not wait_until(lambda: self.load.failure or self.load.acknowledged[-1].at > seen_at, TIMEOUT) or self.load.failure:
            raise HaError(f"no write within {TIMEOUT} s of the kill, or the load failed: {self.load.failure}")
        primary = self.cluster.leader() or "none"
        say(f"  {primary} is the primary; repeating earlier requests")
        self.repeat_requests(killed_at)
        self.cluster.start_node(victim)
        self.wait_healthy()
        healthy_at = time.monotonic()
        say(f"  healthy again after {healthy_at - killed_at:.1f} s")
        time.sleep(2)
        self.kills.append(
            {"fault": fault, "node": victim, "primary": primary, "killed_at": killed_at, "healthy_at": healthy_at}
        )

    def wait_healthy(self):
        self.cluster.wait_healthy(is_synchronous=not self.is_asynchronous)

    def stall(self, victim):
        """Suspends the standbys' receivers for half a second of load, and returns them."""
        receivers = []
        for node in NODES:
            if node != victim:
                for process in processes_in(self.cluster.layout.data(node)):
                    command = pathlib.Path(f"/proc/{process.pid}/cmdline").read_bytes()
                    if b"walreceiver" in command:
                        receivers.append(process)
        if len(receivers) != 2:
            raise HaError(f"found {len(receivers)} receivers of the standbys, expected 2")
        for process in receivers:
            process.signal(signal.SIGSTOP)
        time.sleep(0.5)
        return receivers

    def repeat_requests(self, killed_at):
        """Repeats requests from before and during the failover: at the replica that had not processed them, and requests without
        a response at both. No nonce may be accepted twice."""
        connections = Connections(self.load.addresses)
        # Identical requests were sent to both replicas already.
        once = {}
        for attempt in list(self.load.attempts):
            once.setdefault(attempt.request.headers["X-Partner-Nonce"], []).append(attempt)
        once = [attempts[0] for attempts in once.values() if len(attempts) == 1 and attempts[0].at > killed_at - 5]
        accepted = [attempt for attempt in once if attempt.status in (200, 201)][:MAX_REPLAYS]
        unknown = [attempt for attempt in once if attempt.status in (0, 503)][:MAX_REPLAYS]
        for attempt in accepted:
            self.accepted_again += self.verdict(connections, 1 - attempt.replica, attempt.request)
        for attempt in unknown:
            verdicts = [self.verdict(connections, replica, attempt.request) for replica in (1 - attempt.replica, attempt.replica)]
            self.accepted_again += all(verdicts)
        connections.close()
        self.repeated += len(accepted) + len(unknown)

    def verdict(self, connections, replica, request):
        """Returns whether the replica accepts the request. Retries after a 503, because the outcome is then unknown."""
        for _ in range(20):
            status, body = connections.send(replica, request)
            if status in (200, 201):
                return True
            if status == 401 and b"replay_detected" in body:
                return False
            time.sleep(0.2)
        self.without_verdict += 1
        return False

    def result(self):
        """Compares the database with the acknowledged measurements."""
        rows = self.cluster.psql(
            "SELECT external_id, id, encode(raw_sha256, 'hex'), status FROM measurements "
            f"WHERE external_id LIKE '{self.load.run}-%'",
            database=DATABASE,
        )
        held = {}
        for row in rows.splitlines():
            external_id, *rest = row.split("|")
            held.setdefault(external_id, []).append(rest)
        lost, doubled, ids = set(), {name for name, records in held.items() if len(records) > 1}, {}
        for one in self.load.acknowledged:
            ids.setdefault(one.external_id, set()).add(one.measurement_id)
            states = {(record[0], record[1]): record[2] for record in held.get(one.external_id, [])}
            state = states.get((one.measurement_id, one.raw_sha256))
            if state is None or (one.is_applied and state != "APPLIED"):
                lost.add(one.external_id)
        # Two IDs for one external ID: the first was lost, or both were recorded.
        doubled |= {name for name, several in ids.items() if len(several) > 1}
        counts = {node: self.cluster.psql("SELECT count(*) FROM measurements", node, DATABASE) for node in NODES}
        load = self.load
        writes = [one.at for one in load.acknowledged]
        for kill in self.kills:
            begin, end = kill["killed_at"], kill["healthy_at"]
            kill["acknowledged"] = sum(begin <= at <= end for at in writes)
            kill["writes_gap"] = longest_gap(writes, begin, end)
            kill["service_reads_gap"] = longest_gap(load.service_reads, begin, end)
            kill["standby_reads_gap"] = longest_gap(load.standby_reads, begin, end)
        return {
            "kills": [{name: value for name, value in kill.items() if not name.endswith("_at")} for kill in self.kills],
            "acknowledged": len(ids),
            "lost": sorted(lost),
            "doubled": sorted(doubled),
            "sent_again": self.repeated,
            "nonces_accepted_twice": self.accepted_again + len(load.duplicates_accepted_twice),
            "without_verdict": self.without_verdict,
            "duplicates": load.duplicates,
            "longest_gap": {
                name: max(kill[f"{name}_gap"] for kill in self.kills) for name in ("writes", "service_reads", "standby_reads")
            },
            "measurements_by_node": counts,
            "unexpected_responses": load.unexpected_responses[:10],
        }


def violations(result):
    """Returns messages about violated guarantees; empty if there are none."""
    found = []
    for name, message in (("lost", "acknowledged measurements lost"), ("doubled", "external IDs duplicated")):
        if result[name]:
            found.append(f"{len(result[name])} {message}, such as {result[name][0]}")
    if result["nonces_accepted_twice"]:
        found.append(f"{result['nonces_accepted_twice']} nonces accepted twice")
    if result["without_verdict"]:
        found.append(f"{result['without_verdict']} repeated requests got only 503")
    if not result["sent_again"] or not result["duplicates"]:
        found.append("no request was repeated, so nonces were not tested")
    if result["longest_gap"]["writes"] > MAX_WRITE_GAP:
        found.append(f"writes were unavailable for {result['longest_gap']['writes']:.1f} s; the limit is {MAX_WRITE_GAP} s")
    if result["longest_gap"]["standby_reads"] > MAX_WRITE_GAP / 3:
        found.append(f"reads from standbys were unavailable for {result['longest_gap']['standby_reads']:.1f} s")
    if len(set(result["measurements_by_node"].values())) > 1:
        found.append(f"the nodes differ: {result['measurements_by_node']}")
    if result["unexpected_responses"]:
        found.append(f"unexpected responses, such as {result['unexpected_responses'][0]}")
    return found


def table(result):
    """Formats the result as a table."""
    head = ["kill", "fault", "node", "new primary", "acknowledged", "no writes", "no reads of service", "no reads of standby"]
    lines = [head]
    for number, kill in enumerate(result["kills"], 1):
        gaps = [f"{kill[name]:.1f} s" for name in ("writes_gap", "service_reads_gap", "standby_reads_gap")]
        lines.append([str(number), kill["fault"], kill["node"], kill["primary"], str(kill["acknowledged"]), *gaps])
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    rows = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
    longest = result["longest_gap"]
    summary = {
        "kills": len(result["kills"]),
        "acknowledged": result["acknowledged"],
        "lost": len(result["lost"]),
        "duplicated": len(result["doubled"]),
        "requests repeated": result["sent_again"],
        "sent to both at once": result["duplicates"],
        "nonces accepted twice": result["nonces_accepted_twice"],
        "longest without writes": f"{longest['writes']:.1f} s",
        "  reads of the service": f"{longest['service_reads']:.1f} s",
        "  reads of a standby": f"{longest['standby_reads']:.1f} s",
    }
    return "\n".join([*rows, "", *(f"{name:24}{value}" for name, value in summary.items())])


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if Layout.exists(options.dir):
        # Left by an interrupted or failed run.
        Cluster.open(options.dir).kill()
        shutil.rmtree(options.dir)
    began = time.monotonic()
    cluster = Cluster.open_or_create(options.dir, None)
    folder, replicas, load, passed = cluster.layout.folder, [], None, False
    try:
        cluster.start(say)
        if options.asynchronous:
            cluster.rest(cluster.leader(), "/config", "PATCH", {"synchronous_mode": False})
            if not wait_until(lambda: cluster.psql("SHOW synchronous_standby_names") == "", 60):
                raise HaError("failed to disable synchronous replication")
        say("filling the database, starting two replicas of the service")
        data = fill_database(options.program, cluster, folder)
        replicas = [Replica(f"replica{number}", options.program, cluster, data, folder) for number in (1, 2)]
        password = {"PGPASSWORD": cluster.layout.passwords["service"], "PGCONNECT_TIMEOUT": "2"}
        port = cluster.layout.ports.read
        reader = [cluster.postgres_bin / "psql", "-XAtq", "-h", "127.0.0.1", "-p", port, "-U", "partner_api"]
        reader += ["-d", DATABASE, "-c", "SELECT pg_is_in_recovery(), count(*) FROM inspections"]

        def read_standby():
            done = cluster.account.run(reader, environment=password, check=False, timeout=10)
            return done.stdout.startswith("t|")

        load = Load(data.partner, [replica.address for replica in replicas], secrets.token_hex(4), options.rate, read_standby)
        load.start()
        if not wait_until(lambda: len(load.acknowledged) >= 100 or load.failure, 60) or load.failure:
            raise HaError(f"the load did not start: {load.failure}, {load.unexpected_responses[:3]}")
        trial = Trial(cluster, load, options.asynchronous)
        for number in range(1, options.kills + 1):
            trial.kill(number, options.faults[(number - 1) % len(options.faults)])
        load.stop()
        trial.wait_healthy()
        wait_until(lambda: len({cluster.psql("SELECT count(*) FROM measurements", node, DATABASE) for node in NODES}) == 1, 30)
        result = trial.result()
        found = violations(result)
        passed = not found
        result["seconds"] = round(time.monotonic() - began)
        print(json.dumps({**result, "faults": found}, indent=2) if options.json else table(result))
        for fault in found:
            print(f"FAILED: {fault}", file=sys.stderr)
        say(f"{'passed' if passed else 'failed'} after {result['seconds']} s")
        return 0 if passed else 1
    finally:
        if load:
            load.stopping.set()
        for replica in replicas:
            replica.stop()
        cluster.kill()
        if passed and not options.keep:
            shutil.rmtree(folder)
        else:
            say(f"all logs are in {folder}")


sys.exit(run(main))
