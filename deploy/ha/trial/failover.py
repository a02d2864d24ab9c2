#!/usr/bin/env python3
"""Injects faults into a cluster under signed load, and checks that no acknowledged write was lost or done twice."""

import argparse
import copy
import itertools
import json
import os
import pathlib
import random
import secrets
import shutil
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from loopback.cluster import Cluster, run  # noqa: E402
from loopback.layout import DATABASE, NODES, Layout  # noqa: E402
from loopback.programs import PATRONI, HaError, wait_until  # noqa: E402
from trial.faults import FAULTS, CutFromEtcd, Fault, dismantle, equip  # noqa: E402
from trial.load import Connections, DirectWriters, Load, longest_gap  # noqa: E402
from trial.service import Replica, fill_database  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: Seconds after which the test gives up waiting.
TIMEOUT = 120
#: The maximum number of requests from before a fault that are repeated after it.
MAX_REPLAYS = 300
#: Held while a cluster starts, which needs more of the processors than a running one.
STARTING = threading.Lock()
#: Patroni's `loop_wait` in seconds: a fault begins at a random moment of it.
LOOP_WAIT = 3

EPILOG = f"""\
Creates clusters of deploy/ha in a separate folder, each with two replicas of the service behind haproxy. The load consists of
new measurements, each repeated until it is acknowledged; lists of reports; identical requests to both replicas at once; reads
from a standby; and writes to the affected node's PostgreSQL without haproxy. A history is one of these faults under this load:
{chr(10).join(f"  {name:21} {fault.effect}" for name, fault in FAULTS.items())}
The seed selects the moment, the order in which processes continue, and whether connections hang or are refused. After each
fault, requests from before it are repeated byte for byte at the replica that had not processed them. When the cluster is
healthy again by itself, the database is compared with the acknowledged writes.

exit code: 0 if nothing was lost or duplicated, no nonce was accepted twice, a replaced primary acknowledged nothing, and writes
resumed within {Fault.max_gap} s each time, or {CutFromEtcd.max_gap} s if only etcd is unreachable; 1 otherwise, and the folders of the
failed clusters with all logs remain

examples:
  script/failover                     three histories, in about four minutes
  script/failover --faults pause-60,disk --seeds 7
  script/failover --faults all --seeds 1-20 --jobs 6 --rate 6 --dir /dev/shm/failover --results failover.jsonl
                                      400 histories; continues where it was interrupted; in memory, clusters do not wait for a disk
  script/failover --table --results failover.jsonl
  script/failover --asynchronous      without synchronous replication: must find losses, and exit with 1
  script/failover --faults pause-60 --patroni /usr/bin/patroni
                                      with Debian 12's Patroni 3.0.2: must find losses, and exit with 1"""


def parse():
    parser = argparse.ArgumentParser(
        prog="script/failover", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--faults", type=lambda text: [*FAULTS] if text == "all" else text.split(","), default=["primary", "stalled", "pause-20"],
        metavar="FAULT,...", help="the faults, or `all` (default: primary,stalled,pause-20)",
    )
    parser.add_argument("--seeds", type=seeds, default=[1], metavar="FROM-TO", help="the seeds of each fault (default: 1)")
    parser.add_argument("--jobs", type=int, default=1, metavar="NUMBER", help="the number of clusters at a time (default: 1)")
    parser.add_argument(
        "--rate", type=float, default=60, metavar="NUMBER",
        help="maximum measurements per second, with reads in proportion (default: 60)",
    )
    folder = ROOT / "target" / "failover"
    parser.add_argument(
        "--dir", type=pathlib.Path, default=folder, metavar="FOLDER", help="the clusters' folder (default: target/failover)"
    )
    parser.add_argument(
        "--results", type=pathlib.Path, metavar="FILE", help="append the result of each history as JSON, and omit those in the file"
    )
    parser.add_argument("--table", action="store_true", help="only print the table of --results")
    parser.add_argument("--keep", action="store_true", help="always keep the clusters' folders")
    parser.add_argument(
        "--asynchronous", action="store_true", help="disable synchronous replication, to show that the test can fail"
    )
    parser.add_argument("--patroni", type=pathlib.Path, default=PATRONI, metavar="PROGRAM", help="another Patroni")
    parser.add_argument("--program", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.jobs < 1 or options.rate <= 0:
        parser.error("--jobs and --rate must be greater than 0")
    if unknown := set(options.faults) - set(FAULTS):
        parser.error(f"--faults: unknown faults {', '.join(sorted(unknown))}; expected some of {', '.join(FAULTS)}")
    if options.table and not options.results:
        parser.error("--table needs --results")
    if options.asynchronous:
        options.faults = ["stalled"]
    return options


def seeds(text):
    """Parses `7` or `1-20`."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def say(line):
    print(line, file=sys.stderr, flush=True)


class Trial:
    """A cluster with two replicas of the service under load."""

    def __init__(self, options, folder, needs):
        self.options, self.needs = options, needs
        self.replicas, self.load, self.numbers = [], None, itertools.count(1)
        self.direct_acknowledged, self.lost = set(), set()
        self.repeated = self.accepted_again = self.without_verdict = 0
        if Layout.exists(folder):
            # Left by an interrupted run.
            old = Cluster.open(folder)
            old.kill()
            dismantle(old)
            shutil.rmtree(folder)
        self.cluster = Cluster.open_or_create(folder, None)
        self.cluster.patroni = options.patroni

    def start(self):
        cluster, options, folder = self.cluster, self.options, self.cluster.layout.folder
        equip(cluster, self.needs)
        cluster.start(lambda line: None)
        if options.asynchronous:
            cluster.rest(cluster.leader(), "/config", "PATCH", {"synchronous_mode": False})
            if not wait_until(lambda: cluster.psql("SHOW synchronous_standby_names") == "", 60):
                raise HaError("failed to disable synchronous replication")
        data = fill_database(options.program, cluster, folder)
        DirectWriters.prepare(cluster)
        for number in (1, 2):
            self.replicas.append(Replica(f"replica{number}", options.program, cluster, data, folder))
        password = {"PGPASSWORD": cluster.layout.passwords["service"], "PGCONNECT_TIMEOUT": "2"}
        port = cluster.layout.ports.read
        reader = [cluster.postgres_bin / "psql", "-XAtq", "-h", "127.0.0.1", "-p", port, "-U", "partner_api"]
        reader += ["-d", DATABASE, "-c", "SELECT pg_is_in_recovery(), count(*) FROM inspections"]

        def read_standby():
            try:
                done = cluster.account.run(reader, environment=password, check=False, timeout=10)
            except HaError:
                # The standbys are suspended.
                return False
            return done.stdout.startswith("t|")

        addresses = [replica.address for replica in self.replicas]
        load = self.load = Load(data.partner, addresses, secrets.token_hex(4), options.rate, read_standby)
        load.start()
        if not wait_until(lambda: len(load.acknowledged) >= 100 or load.failure, 60) or load.failure:
            raise HaError(f"the load did not start: {load.failure}, {load.unexpected_responses[:3]}")

    def stop(self):
        if self.load:
            self.load.stopping.set()
        for replica in self.replicas:
            replica.stop()
        self.cluster.kill()
        dismantle(self.cluster)

    def history(self, name, seed):
        """Runs a history, and returns its result."""
        # A copy, because a fault keeps what it must end, and the same fault may be running in another cluster.
        fault = copy.copy(FAULTS[name])
        rng, cluster, load = random.Random(f"{name} {seed}"), self.cluster, self.load
        result = {"fault": name, "seed": seed, "load": round(os.getloadavg()[0], 1), "violations": []}
        time.sleep(rng.uniform(0, LOOP_WAIT))
        node = next((member["name"] for member in cluster.members() if member["role"] == fault.role), None)
        if node is None:
            raise HaError(f"there is no {fault.role}")
        result["node"] = node
        self.repeated = self.accepted_again = self.without_verdict = 0
        doubled_before, twins_before = len(load.duplicates_accepted_twice), load.duplicates
        # Only to primaries: what a standby acknowledges after a promotion by hand is lost.
        is_written = fault.role == "leader"
        direct = DirectWriters(cluster, node, self.numbers, 2 if is_written else 0)
        try:
            if not wait_until(lambda: direct.acknowledged or not is_written, 10):
                raise HaError(f"{node} acknowledges no direct write")
            began = time.monotonic()
            fault.begin(cluster, node, rng)
            replaced_at = self.wait(fault, node, began + fault.seconds)
            fault.end(cluster, node, rng)
            ended = time.monotonic()
            healthy = self.recover(fault, name, node, began, result)
        finally:
            direct.stop()
        after = [at for at in direct.refused if at > ended]
        self.direct_acknowledged |= {number for _, number in direct.acknowledged}
        writes = [one.at for one in list(load.acknowledged)]
        result.update(
            acknowledged=sum(began <= at <= healthy for at in writes),
            acknowledged_directly=len(direct.acknowledged),
            unavailable=round(longest_gap(writes, began, healthy), 1),
            unavailable_reads=round(longest_gap(list(load.service_reads), began, healthy), 1),
            healthy_after=round(healthy - ended, 1),
            refused_after=round(after[0] - ended, 1) if after and replaced_at else None,
            acknowledged_by_replaced=sum(at > replaced_at for at, _ in direct.acknowledged) if replaced_at else 0,
            **self.compare(),
            repeated=self.repeated,
            sent_to_both=load.duplicates - twins_before,
            nonces_accepted_twice=self.accepted_again + len(load.duplicates_accepted_twice) - doubled_before,
            without_verdict=self.without_verdict,
        )
        result["violations"] += violations(result, fault, load)
        return result

    def recover(self, fault, name, node, began, result):
        """Waits until writes resume and the cluster is healthy, and repeats earlier requests. Returns when it was healthy. If it does
        not recover, the writes are compared nevertheless."""
        try:
            self.wait_for_writes(name)
            result["primary"] = self.cluster.leader()
            self.repeat_requests(began)
            for one in NODES:
                self.cluster.start_node(one)
            self.wait_healthy()
            healthy = time.monotonic()
            if fault.finish(self.cluster, node):
                self.wait_for_writes(name)
                self.repeat_requests(began)
                self.wait_healthy()
            return healthy
        except HaError as error:
            result["violations"].append(str(error))
            failed = time.monotonic()
            # Without a primary, nothing could be compared.
            for one in NODES:
                self.cluster.start_node(one)
            wait_until(self.cluster.leader, TIMEOUT)
            return failed

    def wait(self, fault, node, until):
        """Waits for the end of a fault. Returns when another node became the primary, or None."""
        replaced_at = None
        while time.monotonic() < until:
            fault.during(self.cluster, node)
            if self.load.failure:
                raise HaError(f"the load failed: {self.load.failure}")
            if replaced_at is None and any(self.cluster.is_primary(other) for other in NODES if other != node):
                replaced_at = time.monotonic()
            time.sleep(max(0, min(0.5, until - time.monotonic())))
        return replaced_at

    def wait_for_writes(self, name):
        # haproxy closes the sessions to a primary without Patroni only after a moment.
        time.sleep(2)
        load = self.load
        if not wait_until(lambda: load.failure or self.cluster.leader(), TIMEOUT):
            raise HaError(f"no primary within {TIMEOUT} s of {name}")
        seen_at = time.monotonic()
        if not wait_until(lambda: load.failure or load.acknowledged[-1].at > seen_at, TIMEOUT) or load.failure:
            raise HaError(f"no write within {TIMEOUT} s of {name}, or the load failed: {load.failure}")

    def wait_healthy(self):
        self.cluster.wait_healthy(is_synchronous=not self.options.asynchronous)

    def repeat_requests(self, began):
        """Repeats requests from before and during the failover: at the replica that had not processed them, and requests without
        a response at both. No nonce may be accepted twice."""
        connections = Connections(self.load.addresses)
        # Identical requests were sent to both replicas already.
        once = {}
        for attempt in list(self.load.attempts):
            once.setdefault(attempt.request.headers["X-Partner-Nonce"], []).append(attempt)
        once = [attempts[0] for attempts in once.values() if len(attempts) == 1 and attempts[0].at > began - 5]
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

    def compare(self):
        """Compares the database with the acknowledged writes, and the nodes with each other."""
        acknowledged = list(self.load.acknowledged)
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
        for one in acknowledged:
            ids.setdefault(one.external_id, set()).add(one.measurement_id)
            states = {(record[0], record[1]): record[2] for record in held.get(one.external_id, [])}
            state = states.get((one.measurement_id, one.raw_sha256))
            if state is None or (one.is_applied and state != "APPLIED"):
                lost.add(one.external_id)
        # Two IDs for one external ID: the first was lost, or both were recorded.
        doubled |= {name for name, several in ids.items() if len(several) > 1}
        stored = {int(row) for row in self.cluster.psql("SELECT number FROM failover.direct", database=DATABASE).split()}
        # The standbys must have what the primary acknowledged before this query, once they have replayed it.
        count = f"SELECT count(*) FROM measurements WHERE external_id = ANY(ARRAY{[*ids]}::text[])"

        def same():
            try:
                return {self.cluster.psql(count, node, DATABASE) for node in NODES} == {str(len(ids))}
            except HaError:
                return False

        return {
            "lost": sorted(lost),
            "lost_directly": len(self.direct_acknowledged - stored),
            "doubled": sorted(doubled),
            "nodes_agree": wait_until(same, 30),
        }


def violations(result, fault, load):
    """Returns messages about violated guarantees; empty if there are none."""
    found = []
    for name, message in (("lost", "acknowledged measurements lost"), ("doubled", "external IDs duplicated")):
        if result[name]:
            found.append(f"{len(result[name])} {message}, such as {result[name][0]}")
    for name, message in (
        ("lost_directly", "acknowledged direct writes lost"),
        ("acknowledged_by_replaced", "direct writes acknowledged by a replaced primary"),
        ("nonces_accepted_twice", "nonces accepted twice"),
        ("without_verdict", "repeated requests got only 503"),
    ):
        if result[name]:
            found.append(f"{result[name]} {message}")
    if not result["repeated"] or not result["sent_to_both"]:
        found.append("no request was repeated, so nonces were not tested")
    limit = fault.max_gap + fault.outage
    if result["unavailable"] > limit:
        found.append(f"writes were unavailable for {result['unavailable']} s; the limit is {limit:.0f} s")
    if not result["nodes_agree"]:
        found.append("the nodes differ")
    if load.unexpected_responses:
        found.append(f"unexpected responses, such as {load.unexpected_responses[0]}")
    return found


def table(results):
    """Formats the results as a table with a row for each fault."""
    lines = [["fault", "histories", "acknowledged", "lost", "duplicated", "nonces twice", "no writes", "no reads", "refused after"]]
    lines[0] += ["healthy after", "failed seeds"]
    for name in FAULTS:
        of = [result for result in results if result["fault"] == name]
        whole = [result for result in of if "unavailable" in result]
        if not of:
            continue
        total = lambda key: sum(len(one[key]) if isinstance(one[key], list) else one[key] for one in whole)  # noqa: B023, E731
        most = lambda key: max((one[key] for one in whole if one[key] is not None), default=None)  # noqa: B023, E731
        seconds = lambda key: "-" if most(key) is None else f"{most(key):.1f} s"  # noqa: B023, E731
        lines.append(
            [
                name,
                str(len(of)),
                str(total("acknowledged") + total("acknowledged_directly")),
                str(total("lost") + total("lost_directly")),
                str(total("doubled")),
                str(total("nonces_accepted_twice")),
                *(seconds(key) for key in ("unavailable", "unavailable_reads", "refused_after", "healthy_after")),
                " ".join(str(one["seed"]) for one in of if one["violations"]) or "-",
            ]
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


class Queue:
    """The histories that have not been run, and the results of the others."""

    def __init__(self, options):
        self.file, self.lock = options.results, threading.Lock()
        self.results = []
        if self.file and self.file.exists():
            self.results = [json.loads(line) for line in self.file.read_text().splitlines()]
        done = {(result["fault"], result["seed"]) for result in self.results}
        pairs = [(name, seed) for seed in options.seeds for name in options.faults]
        self.pending = [] if options.table else [pair for pair in pairs if pair not in done]
        self.is_complete = True

    def take(self, needs):
        """Returns the next history, preferably one that needs the same cluster; None if there is none."""
        with self.lock:
            fitting = [pair for pair in self.pending if FAULTS[pair[0]].needs == needs]
            pair = next(iter(fitting or self.pending), None)
            if pair:
                self.pending.remove(pair)
            return pair

    def add(self, result):
        with self.lock:
            self.results.append(result)
            if self.file:
                with open(self.file, "a") as file:
                    file.write(json.dumps(result) + "\n")
        say(f"{result['fault']} {result['seed']}: " + ("; ".join(result["violations"]) or "passed"))

    def give_up(self, reason):
        """Ends the run, so that the histories that have not been run fail it."""
        say(reason)
        self.is_complete = False
        self.pending.clear()


def start(options, folder, needs):
    """Starts a trial. Repeats it, because a busy machine may exceed the time-outs of a start."""
    for attempts_left in (2, 1, 0):
        with STARTING:
            trial = Trial(options, folder, needs)
            try:
                trial.start()
                return trial
            except Exception as error:  # noqa: BLE001 - nothing may be left running
                trial.stop()
                if not attempts_left:
                    raise
                say(f"starting a cluster again: {error}")


def work(options, queue, folder):
    """Runs histories on a cluster in the folder, which is created again for other needs and after a failure."""
    trial = None
    try:
        while pair := queue.take(trial.needs if trial else ""):
            name, seed = pair
            if trial and trial.needs != FAULTS[name].needs:
                trial.stop()
                shutil.rmtree(folder)
                trial = None
            trial = trial or start(options, folder, FAULTS[name].needs)
            try:
                result = trial.history(name, seed)
            except Exception as error:  # noqa: BLE001 - a failed history must not end the others
                result = {"fault": name, "seed": seed, "violations": [str(error) or repr(error)]}
            queue.add(result)
            if result["violations"]:
                trial.stop()
                trial = None
                kept = folder.with_name(f"failed-{name}-{seed}")
                shutil.rmtree(kept, ignore_errors=True)
                folder.replace(kept)
                say(f"all logs are in {kept}")
    except Exception as error:  # noqa: BLE001 - shown as one line; the histories that it leaves out are a failure
        queue.give_up(f"failed to start a cluster: {error}")
    finally:
        if trial:
            trial.stop()
            if not options.keep:
                shutil.rmtree(folder)


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    queue = Queue(options)
    began = time.monotonic()
    workers = [
        threading.Thread(target=work, args=(options, queue, options.dir.resolve() / str(number)))
        for number in range(1, min(options.jobs, len(queue.pending)) + 1)
    ]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    except (KeyboardInterrupt, SystemExit):
        queue.give_up("stopping after the running histories")
        for worker in workers:
            worker.join()
        raise
    print(table(queue.results))
    failed = sum(bool(result["violations"]) for result in queue.results)
    if not options.table:
        say(f"{'passed' if queue.is_complete and not failed else 'failed'} after {time.monotonic() - began:.0f} s")
    return 0 if queue.is_complete and not failed else 1


sys.exit(run(main))
