#!/usr/bin/env python3
"""Kills the primary again and again under signed load, and proves that nothing acknowledged was lost or done twice."""

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
from trial.load import Lines, Load, longest_gap  # noqa: E402
from trial.service import Replica, fill_database  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: Seconds after a kill within which writes must be back.
BOUND = 30
#: Seconds after which nobody waits for them any longer.
GIVE_UP = 120
#: Requests from before a kill that are sent again after it, at most.
REPLAYS = 300
#: What may be killed: of whose node, and which parts of it.
FAULTS = {
    "primary": ("leader", ("patroni", "etcd", "postgres")),
    "stalled": ("leader", ("patroni", "etcd", "postgres")),
    "postgres": ("leader", ("postgres",)),
    "patroni": ("leader", ("patroni",)),
    "standby": ("sync_standby", ("patroni", "etcd", "postgres")),
}

EPILOG = f"""\
It makes a cluster of deploy/ha in a folder of its own, with two replicas of the service over haproxy. Under load (new
measurements, each sent again until it is acknowledged; lists of reports; one and the same request to both replicas at
once; reads from a standby) it kills with SIGKILL, one after the other and then from the beginning, what --faults names:
  primary    the primary's node: etcd, Patroni and Postgres together
  stalled    the same, after half a second in which the standbys receive nothing
  postgres   the primary's Postgres, under a living Patroni
  patroni    the primary's Patroni, beside a living Postgres
  standby    the synchronous standby's node
Then it sends requests of before the kill once more, byte for byte, to the replica that had not answered them, brings back
what it killed, waits until the cluster is whole, and goes on. In the end it compares the database with what was
acknowledged.

exit code: 0 if nothing was lost or doubled, no nonce was accepted twice, and writes were back within {BOUND} s each time;
1 otherwise, and the folder with all logs is left as it is

examples:
  script/failover                     five kills, some five minutes
  script/failover --kills 1           what CI runs
  script/failover --kills 20 --json
  script/failover --faults postgres,patroni,standby --kills 3
  script/failover --asynchronous      without synchronous replication: must find losses, and end with 1"""


def parse():
    parser = argparse.ArgumentParser(
        prog="script/failover", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=5, metavar="NUMBER", help="how often something is killed (default: 5)")
    parser.add_argument(
        "--faults", type=lambda text: text.split(","), default=["primary", "stalled"], metavar="FAULT,...",
        help="what is killed in turn (default: primary,stalled)",
    )
    parser.add_argument("--rate", type=float, default=60, metavar="NUMBER", help="measurements a second, at most (default: 60)")
    folder = ROOT / "target" / "failover"
    parser.add_argument(
        "--dir", type=pathlib.Path, default=folder, metavar="FOLDER", help="where the cluster is made (default: target/failover)"
    )
    parser.add_argument("--json", action="store_true", help="the table for scripts")
    parser.add_argument("--keep", action="store_true", help="leave the cluster's folder in any case")
    parser.add_argument(
        "--asynchronous", action="store_true", help="switch synchronous replication off, to see that the proof can fail"
    )
    parser.add_argument("--program", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kills < 1 or options.rate <= 0:
        parser.error("--kills and --rate are greater than 0")
    if unknown := set(options.faults) - set(FAULTS):
        parser.error(f"--faults: {', '.join(sorted(unknown))}: expected some of {', '.join(FAULTS)}")
    if options.asynchronous:
        options.faults = ["stalled"]
    return options


def say(line):
    print(line, file=sys.stderr, flush=True)


class Trial:
    """A cluster under load, and what the kills did."""

    def __init__(self, cluster, load, is_asynchronous):
        self.cluster, self.load, self.is_asynchronous = cluster, load, is_asynchronous
        self.kills = []
        self.sent_again = self.accepted_again = self.without_verdict = 0

    def kill(self, number, fault):
        """Kills, waits for writes, sends old requests again, and brings back what was killed."""
        role, parts = FAULTS[fault]
        victim = next((member["name"] for member in self.cluster.members() if member["role"] == role), None)
        if victim is None:
            raise HaError(f"there is no {role} to be killed")
        receivers = self.stall(victim) if fault == "stalled" else []
        killed_at = time.monotonic()
        killed = self.cluster.kill_node(victim, parts)
        for process in receivers:
            # It ends before it has read on: what the primary had sent and nobody had received is gone with it.
            process.signal(signal.SIGTERM)
            process.signal(signal.SIGCONT)
        say(f"kill {number}, {fault}: {killed} processes of {victim}")
        # Sessions to a primary whose Patroni was killed are cut after a moment only.
        time.sleep(2)
        if not wait_until(lambda: self.load.failure or self.cluster.leader(), GIVE_UP):
            raise HaError(f"no primary within {GIVE_UP} s of the kill")
        seen_at = time.monotonic()
        if not wait_until(lambda: self.load.failure or self.load.acknowledged[-1].at > seen_at, GIVE_UP) or self.load.failure:
            raise HaError(f"no write within {GIVE_UP} s of the kill, or the load failed: {self.load.failure}")
        primary = self.cluster.leader() or "none"
        say(f"  {primary} is the primary; sending requests of before once more")
        self.send_again(killed_at)
        self.cluster.start_node(victim)
        self.wait_whole()
        whole_at = time.monotonic()
        say(f"  whole again after {whole_at - killed_at:.1f} s")
        time.sleep(2)
        self.kills.append(
            {"fault": fault, "node": victim, "primary": primary, "killed_at": killed_at, "whole_at": whole_at}
        )

    def wait_whole(self):
        self.cluster.wait_whole(is_synchronous=not self.is_asynchronous)

    def stall(self, victim):
        """Stops the standbys' receivers for half a second of load; returns them."""
        receivers = []
        for node in NODES:
            if node != victim:
                for process in processes_in(self.cluster.layout.data(node)):
                    words = pathlib.Path(f"/proc/{process.pid}/cmdline").read_bytes()
                    if b"walreceiver" in words:
                        receivers.append(process)
        if len(receivers) != 2:
            raise HaError(f"{len(receivers)} of the standbys' receivers were found, not 2")
        for process in receivers:
            process.signal(signal.SIGSTOP)
        time.sleep(0.5)
        return receivers

    def send_again(self, killed_at):
        """Sends what was sent before and during the failover once more: to the replica that had not answered it, and what
        nobody had answered to both. No nonce may be accepted twice."""
        lines = Lines(self.load.addresses)
        # The twins' were sent to both already.
        once = {}
        for attempt in list(self.load.attempts):
            once.setdefault(attempt.request.headers["X-Partner-Nonce"], []).append(attempt)
        once = [attempts[0] for attempts in once.values() if len(attempts) == 1 and attempts[0].at > killed_at - 5]
        accepted = [attempt for attempt in once if attempt.status in (200, 201)][:REPLAYS]
        unknown = [attempt for attempt in once if attempt.status in (0, 503)][:REPLAYS]
        for attempt in accepted:
            self.accepted_again += self.verdict(lines, 1 - attempt.replica, attempt.request)
        for attempt in unknown:
            verdicts = [self.verdict(lines, replica, attempt.request) for replica in (1 - attempt.replica, attempt.replica)]
            self.accepted_again += all(verdicts)
        lines.close()
        self.sent_again += len(accepted) + len(unknown)

    def verdict(self, lines, replica, request):
        """Whether the replica accepts the request. An answer of 503 is none, and is asked for again."""
        for _ in range(20):
            status, said = lines.send(replica, request)
            if status in (200, 201):
                return True
            if status == 401 and b"replay_detected" in said:
                return False
            time.sleep(0.2)
        self.without_verdict += 1
        return False

    def result(self):
        """Compares the database with what was acknowledged."""
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
        # Two ids for one external id: the first was lost, or both were kept.
        doubled |= {name for name, several in ids.items() if len(several) > 1}
        counts = {node: self.cluster.psql("SELECT count(*) FROM measurements", node, DATABASE) for node in NODES}
        load = self.load
        writes = [one.at for one in load.acknowledged]
        for kill in self.kills:
            begin, end = kill["killed_at"], kill["whole_at"]
            kill["acknowledged"] = sum(begin <= at <= end for at in writes)
            kill["writes_gap"] = longest_gap(writes, begin, end)
            kill["service_reads_gap"] = longest_gap(load.service_reads, begin, end)
            kill["standby_reads_gap"] = longest_gap(load.standby_reads, begin, end)
        return {
            "kills": [{name: value for name, value in kill.items() if not name.endswith("_at")} for kill in self.kills],
            "acknowledged": len(ids),
            "lost": sorted(lost),
            "doubled": sorted(doubled),
            "sent_again": self.sent_again,
            "nonces_accepted_twice": self.accepted_again + len(load.twins_accepted_twice),
            "without_verdict": self.without_verdict,
            "twins": load.twins,
            "longest_gap": {
                name: max(kill[f"{name}_gap"] for kill in self.kills) for name in ("writes", "service_reads", "standby_reads")
            },
            "measurements_by_node": counts,
            "surprises": load.surprises[:10],
        }


def faults(result):
    """What is wrong with a result, in words; none: it held."""
    found = []
    for name, words in (("lost", "acknowledged measurements lost"), ("doubled", "external ids doubled")):
        if result[name]:
            found.append(f"{len(result[name])} {words}, such as {result[name][0]}")
    if result["nonces_accepted_twice"]:
        found.append(f"{result['nonces_accepted_twice']} nonces accepted twice")
    if result["without_verdict"]:
        found.append(f"{result['without_verdict']} requests sent again got no verdict")
    if not result["sent_again"] or not result["twins"]:
        found.append("nothing was sent again, so nothing is known of nonces")
    if result["longest_gap"]["writes"] > BOUND:
        found.append(f"writes were gone for {result['longest_gap']['writes']:.1f} s; the bound is {BOUND} s")
    if result["longest_gap"]["standby_reads"] > BOUND / 3:
        found.append(f"reads from standbys were gone for {result['longest_gap']['standby_reads']:.1f} s")
    if len(set(result["measurements_by_node"].values())) > 1:
        found.append(f"the nodes differ: {result['measurements_by_node']}")
    if result["surprises"]:
        found.append(f"unexpected answers, such as {result['surprises'][0]}")
    return found


def table(result):
    """The result for people."""
    head = ["kill", "what", "node", "primary then", "acknowledged", "writes gone", "service's reads gone", "standby reads gone"]
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
        "doubled": len(result["doubled"]),
        "requests sent again": result["sent_again"],
        "sent to both at once": result["twins"],
        "nonces accepted twice": result["nonces_accepted_twice"],
        "longest gap of writes": f"{longest['writes']:.1f} s",
        "of the service's reads": f"{longest['service_reads']:.1f} s",
        "of reads from a standby": f"{longest['standby_reads']:.1f} s",
    }
    return "\n".join([*rows, "", *(f"{name:24}{value}" for name, value in summary.items())])


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if Layout.exists(options.dir):
        # Of a run that was interrupted, or that failed.
        Cluster.open(options.dir).end()
        shutil.rmtree(options.dir)
    began = time.monotonic()
    cluster = Cluster.open_or_make(options.dir, None)
    folder, replicas, load, is_well = cluster.layout.folder, [], None, False
    try:
        cluster.start(say)
        if options.asynchronous:
            cluster.rest(cluster.leader(), "/config", "PATCH", {"synchronous_mode": False})
            if not wait_until(lambda: cluster.psql("SHOW synchronous_standby_names") == "", 60):
                raise HaError("synchronous replication cannot be switched off")
        say("filling the database, starting two replicas of the service")
        data = fill_database(options.program, cluster, folder)
        replicas = [Replica(f"replica{number}", options.program, cluster, data, folder) for number in (1, 2)]
        password = {"PGPASSWORD": cluster.layout.passwords["service"], "PGCONNECT_TIMEOUT": "2"}
        where = cluster.layout
        reader = [cluster.postgres_bin / "psql", "-XAtq", "-h", "127.0.0.1", "-p", where.ports.read, "-U", "partner_api"]
        reader += ["-d", DATABASE, "-c", "SELECT pg_is_in_recovery(), count(*) FROM inspections"]

        def read_standby():
            done = cluster.account.run(reader, environment=password, check=False, timeout=10)
            return done.stdout.startswith("t|")

        load = Load(data.partner, [replica.address for replica in replicas], secrets.token_hex(4), options.rate, read_standby)
        load.start()
        if not wait_until(lambda: len(load.acknowledged) >= 100 or load.failure, 60) or load.failure:
            raise HaError(f"the load does not begin: {load.failure}, {load.surprises[:3]}")
        trial = Trial(cluster, load, options.asynchronous)
        for number in range(1, options.kills + 1):
            trial.kill(number, options.faults[(number - 1) % len(options.faults)])
        load.stop()
        trial.wait_whole()
        wait_until(lambda: len({cluster.psql("SELECT count(*) FROM measurements", node, DATABASE) for node in NODES}) == 1, 30)
        result = trial.result()
        found = faults(result)
        is_well = not found
        result["seconds"] = round(time.monotonic() - began)
        print(json.dumps({**result, "faults": found}, indent=2) if options.json else table(result))
        for fault in found:
            print(f"FAILED: {fault}", file=sys.stderr)
        say(f"{'held' if is_well else 'did not hold'}, after {result['seconds']} s")
        return 0 if is_well else 1
    finally:
        if load:
            load.stopping.set()
        for replica in replicas:
            replica.stop()
        cluster.end()
        if is_well and not options.keep:
            shutil.rmtree(folder)
        else:
            say(f"all logs are in {folder}")


sys.exit(run(main))
