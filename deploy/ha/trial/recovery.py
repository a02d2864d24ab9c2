#!/usr/bin/env python3
"""Tests a backup, a failover, a mistake, and a restore to the moment before it, on a cluster of deploy/ha."""

import argparse
import datetime
import json
import pathlib
import shutil
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from loopback.cluster import Cluster, run  # noqa: E402
from loopback.layout import ADDRESS, DATABASE, USER, Layout  # noqa: E402
from loopback.programs import HaError, wait_until  # noqa: E402
from loopback.restore import Restored, parse_time  # noqa: E402
from trial.load import INSPECTIONS, MEASUREMENTS, Connections, Request  # noqa: E402
from trial.service import Replica, fill_database  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]

EPILOG = """\
Creates a cluster in a separate folder with a replica of the service, and submits measurements between these steps: a full backup;
killing the primary, so that the archive continues in another timeline; and a mistake that deletes all photos and
overwrites all plates. Then it restores twice into new folders: to the moment before the mistake, where exactly the data from
before it must exist; and to the end of the archive, where everything must exist. A replica of the service must respond to a
signed request on the first copy. The cluster itself must be unchanged.

exit code: 0 if all of this succeeds; 1 otherwise, and the folders with all logs remain

example:
  script/recovery"""

COUNTS = (
    "SELECT (SELECT count(*) FROM measurements WHERE external_id LIKE 'recovery-%'), (SELECT count(*) FROM photos), "
    "(SELECT count(*) FROM vehicles WHERE plate = 'MISTAKE')"
)


def say(line):
    print(line, file=sys.stderr, flush=True)


def submit(replica, partner, names):
    """Submits measurements until each is acknowledged."""
    connections = Connections([replica.address])
    for name in names:
        body = {
            "branch_code": partner.branch_code,
            "plate": "06 TST 4711",
            "external_id": f"recovery-{name}",
            "measurements": {"BRAKE_FRONT_LEFT": 2.85},
        }

        def is_acknowledged():
            request = Request.sign(partner, "POST", MEASUREMENTS, json.dumps(body).encode())  # noqa: B023
            return connections.send(0, request)[0] in (200, 201)

        if not wait_until(is_acknowledged, 60, every=0.3):
            raise HaError(f"measurement {name} was not acknowledged within 60 s")
    connections.close()


def expect(name, found, expected):
    say(f"  {name}: measurements, photos, overwritten plates: {found}")
    if found != expected:
        raise HaError(f"{name}: found {found}, expected {expected}")


def run_test(cluster, program, folder):
    """Runs the test. Returns the seconds of its steps."""
    took, restored, replicas = {}, [], []
    counts = lambda: cluster.psql(COUNTS, database=DATABASE)  # noqa: E731

    def timed(name, work):
        began = time.monotonic()
        work()
        took[name] = round(time.monotonic() - began, 1)

    try:
        cluster.start(say)
        data = fill_database(program, cluster, cluster.layout.folder)
        replicas.append(Replica("replica", program, cluster, data, cluster.layout.folder))
        photos = cluster.psql("SELECT count(*) FROM photos", database=DATABASE)
        submit(replicas[0], data.partner, range(10))
        say("making a full backup")
        timed("full backup", lambda: cluster.pgbackrest("backup", "--type=full"))
        submit(replicas[0], data.partner, range(10, 20))
        victim = cluster.leader()
        say(f"killing the primary, {victim}")
        cluster.kill_node(victim)
        submit(replicas[0], data.partner, range(20, 30))
        cluster.start_node(victim)

        before = datetime.datetime.now(datetime.timezone.utc)
        expect("before the mistake", counts(), f"30|{photos}|0")
        cluster.psql("DELETE FROM photos; UPDATE vehicles SET plate = 'MISTAKE'", database=DATABASE)
        submit(replicas[0], data.partner, range(30, 35))
        vehicles = cluster.psql("SELECT count(*) FROM vehicles", database=DATABASE)
        after = f"35|0|{vehicles}"
        expect("after the mistake", counts(), after)

        for name, to, expected in (("before", parse_time(before.isoformat()), f"30|{photos}|0"), ("latest", None, after)):
            copy = Restored(cluster, folder / name)
            restored.append(copy)
            timed(f"restore, {name}", lambda: copy.restore(to, say))  # noqa: B023
            expect(f"restored, {name}", copy.query(COUNTS, DATABASE), expected)

        say("starting a replica of the service on the restored database")
        url = f"postgresql://{USER}:{cluster.layout.passwords['service']}@{ADDRESS}:{restored[0].port}/{DATABASE}"
        on_copy = {"PARTNER_API_DATABASE_URL": url, "PARTNER_API_READ_DATABASE_URL": ""}
        replicas.append(Replica("on-restored", program, cluster, data, cluster.layout.folder, on_copy))
        connections = Connections([replicas[-1].address])
        status, body = connections.send(0, Request.sign(data.partner, "GET", INSPECTIONS))
        connections.close()
        if status != 200 or not json.loads(body)["data"]:
            raise HaError(f"the service on the restored database returned {status}: {body[:200]!r}")
        expect("the cluster, unchanged", counts(), after)
        return took
    finally:
        for replica in replicas:
            replica.stop()
        for copy in restored:
            copy.stop()
        cluster.kill()


def main():
    parser = argparse.ArgumentParser(
        prog="script/recovery", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = ROOT / "target" / "recovery"
    parser.add_argument(
        "--dir", type=pathlib.Path, default=default, metavar="FOLDER", help="the folder for all files (default: target/recovery)"
    )
    parser.add_argument("--program", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = options.dir.resolve()
    began = time.monotonic()
    if Layout.exists(folder / "cluster"):
        # Left by an interrupted or failed run.
        cluster = Cluster.open(folder / "cluster")
        for name in ("before", "latest"):
            Restored(cluster, folder / name).stop()
        cluster.kill()
        shutil.rmtree(folder)
    cluster = Cluster.open_or_create(folder / "cluster", None)
    try:
        took = run_test(cluster, options.program, folder)
    except BaseException:
        say(f"all logs are in {folder}")
        raise
    shutil.rmtree(folder)
    for name, seconds in took.items():
        print(f"{name:24}{seconds} s")
    print(f"passed after {time.monotonic() - began:.0f} s")
    return 0


sys.exit(run(main))
