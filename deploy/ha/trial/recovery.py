#!/usr/bin/env python3
"""Backup, failover, a mistake, and a restore to the moment before it: tried on a cluster of deploy/ha."""

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
from loopback.restore import Restored, moment  # noqa: E402
from trial.load import INSPECTIONS, MEASUREMENTS, Lines, Request  # noqa: E402
from trial.service import Replica, fill_database  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]

EPILOG = """\
It makes a cluster in a folder of its own, with a replica of the service; submits measurements; makes a full backup; submits
more; kills the primary, so that the archive goes on in another timeline; submits more; deletes all photos and mixes up all
plates, as a careless UPDATE does; submits more. Then it restores twice into new folders: to the moment before the mistake,
where everything from before it must be, and nothing else; and as far as the archive goes, where everything must be. On the
first a replica of the service answers a signed request. The cluster itself must be as it was.

exit code: 0 if all that is so, else 1, and the folders with all logs are left as they are

example:
  script/recovery"""

PICTURE = (
    "SELECT (SELECT count(*) FROM measurements WHERE external_id LIKE 'recovery-%'), (SELECT count(*) FROM photos), "
    "(SELECT count(*) FROM vehicles WHERE plate = 'MISTAKE')"
)


def say(line):
    print(line, file=sys.stderr, flush=True)


def submit(replica, partner, names):
    """Submits measurements until each is acknowledged."""
    lines = Lines([replica.address])
    for name in names:
        body = {
            "branch_code": partner.branch_code,
            "plate": "06 TST 4711",
            "external_id": f"recovery-{name}",
            "measurements": {"BRAKE_FRONT_LEFT": 2.85},
        }

        def is_acknowledged():
            request = Request.sign(partner, "POST", MEASUREMENTS, json.dumps(body).encode())  # noqa: B023
            return lines.send(0, request)[0] in (200, 201)

        if not wait_until(is_acknowledged, 60, every=0.3):
            raise HaError(f"the measurement {name} was not acknowledged within 60 s")
    lines.close()


def expect(what, found, expected):
    say(f"  {what}: measurements, photos, mixed-up plates: {found}")
    if found != expected:
        raise HaError(f"{what}: {found}, and should be {expected}")


def rehearse(cluster, program, folder):
    """The whole of it. Returns what took how long."""
    took, restored, replicas = {}, [], []
    picture = lambda: cluster.psql(PICTURE, database=DATABASE)  # noqa: E731

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
        say("a full backup")
        timed("full backup", lambda: cluster.pgbackrest("backup", "--type=full"))
        submit(replicas[0], data.partner, range(10, 20))
        victim = cluster.leader()
        say(f"killing the primary, {victim}")
        cluster.kill_node(victim)
        submit(replicas[0], data.partner, range(20, 30))
        cluster.start_node(victim)

        before = datetime.datetime.now(datetime.timezone.utc)
        expect("before the mistake", picture(), f"30|{photos}|0")
        cluster.psql("DELETE FROM photos; UPDATE vehicles SET plate = 'MISTAKE'", database=DATABASE)
        submit(replicas[0], data.partner, range(30, 35))
        vehicles = cluster.psql("SELECT count(*) FROM vehicles", database=DATABASE)
        after = f"35|0|{vehicles}"
        expect("after the mistake", picture(), after)

        for name, to, expected in (("before", moment(before.isoformat()), f"30|{photos}|0"), ("latest", None, after)):
            copy = Restored(cluster, folder / name)
            restored.append(copy)
            timed(f"restore, {name}", lambda: copy.restore(to, say))  # noqa: B023
            expect(f"restored, {name}", copy.query(PICTURE, DATABASE), expected)

        say("a replica of the service on the restored database")
        url = f"postgresql://{USER}:{cluster.layout.passwords['service']}@{ADDRESS}:{restored[0].port}/{DATABASE}"
        on_copy = {"PARTNER_API_DATABASE_URL": url, "PARTNER_API_READ_DATABASE_URL": ""}
        replicas.append(Replica("on-restored", program, cluster, data, cluster.layout.folder, on_copy))
        lines = Lines([replicas[-1].address])
        status, said = lines.send(0, Request.sign(data.partner, "GET", INSPECTIONS))
        lines.close()
        if status != 200 or not json.loads(said)["data"]:
            raise HaError(f"the service on the restored database answered {status}: {said[:200]!r}")
        expect("the cluster, all the while", picture(), after)
        return took
    finally:
        for replica in replicas:
            replica.stop()
        for copy in restored:
            copy.stop()
        cluster.end()


def main():
    parser = argparse.ArgumentParser(
        prog="script/recovery", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = ROOT / "target" / "recovery"
    parser.add_argument(
        "--dir", type=pathlib.Path, default=default, metavar="FOLDER", help="where all is made (default: target/recovery)"
    )
    parser.add_argument("--program", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = options.dir.resolve()
    began = time.monotonic()
    if Layout.exists(folder / "cluster"):
        # Of a run that was interrupted, or that failed.
        cluster = Cluster.open(folder / "cluster")
        for name in ("before", "latest"):
            Restored(cluster, folder / name).stop()
        cluster.end()
        shutil.rmtree(folder)
    cluster = Cluster.open_or_make(folder / "cluster", None)
    try:
        took = rehearse(cluster, options.program, folder)
    except BaseException:
        say(f"all logs are in {folder}")
        raise
    shutil.rmtree(folder)
    for name, seconds in took.items():
        print(f"{name:24}{seconds} s")
    print(f"restored as it should be, after {time.monotonic() - began:.0f} s")
    return 0


sys.exit(run(main))
