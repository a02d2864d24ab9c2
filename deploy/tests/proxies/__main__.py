"""What the files of deploy/ promise, checked with the real nginx and haproxy in front of the real service.

A private service (database, partner, keys), an nginx and a haproxy are started on free ports of loopback, with the files
of deploy/ and other values in few places (see deploy/tests/proxies/proxies.py), used as partners and as attackers use them, and
stopped. Nothing outside a temporary folder is touched. PARTNER_API_BINARY is the program to use, in place of the debug build
of the tests.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from bounds import Bounds, a_hung_and_a_stopped_service_are_503_in_time_and_served_when_back as gone  # noqa: E402
from files import Files  # noqa: E402
from inspectors import Inspectors  # noqa: E402
from passing import Passing  # noqa: E402
from proxies import ROOT, Haproxy, Nginx, NginxForInspectors  # noqa: E402
from report import Report  # noqa: E402
from service import Service  # noqa: E402


def of_a_proxy(report, proxy, service, keys):
    """All checks of a proxy but those for which the service goes away."""
    report.check(proxy.name, proxy.check_as_shipped)
    # Who is slow takes time and little else: meanwhile the others are made.
    with ThreadPoolExecutor(3) as pool:
        bounds = Bounds(proxy, service, keys[0])
        waiting = [
            pool.submit(report.check, proxy.name, check)
            for check in (
                bounds.silent_and_slow_clients_are_cut,
                bounds.a_body_that_does_not_end_is_cut_and_never_reaches_the_service,
                bounds.one_address_has_its_cap_and_others_are_served,
            )
        ]
        for check in Passing(proxy, service, *keys).checks():
            report.check(proxy.name, check)
        for one in waiting:
            one.result()
    return bounds


def of_the_page(report, proxy, service):
    """All checks of what inspectors come through."""
    report.check(proxy.name, proxy.check_as_shipped)
    for check in Inspectors(proxy, service).checks():
        report.check(proxy.name, check)


def main():
    """Runs the checks."""
    parser = argparse.ArgumentParser(
        prog="script/deploy-check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("only", nargs="*", metavar="WORDS", help="only the checks whose names hold these words")
    parser.add_argument("--program", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    began = time.monotonic()
    report = Report(options.only)
    folder = tempfile.mkdtemp(prefix="deploy-check-")
    # The database's own user must get through.
    os.chmod(folder, 0o755)
    service = Service(os.path.abspath(options.program), folder)
    proxies = []
    try:
        service.start()
        keys = service.furnish()
        service.learns(keys)
        for kind in (Nginx, Haproxy, NginxForInspectors):
            proxies.append(kind(folder, service.door.port, service.internal.port))
            proxies[-1].start()
        *for_partners, for_inspectors = proxies
        with ThreadPoolExecutor(4) as pool:
            files = Files(os.path.abspath(options.program), folder, service)
            of_files = pool.submit(lambda: [report.check("files", check) for check in files.checks()])
            of_page = pool.submit(of_the_page, report, for_inspectors, service)
            running = [pool.submit(of_a_proxy, report, proxy, service, keys) for proxy in for_partners]
            all_bounds = [proxy.result() for proxy in running]
            of_page.result()
            of_files.result()
        title = gone.__name__.replace("_", " ")
        if any(report.wants(f"{proxy.name}: {title}") for proxy in for_partners):
            since = time.monotonic()
            for name, wrong in gone(service, all_bounds).items():
                report.found(f"{name}: {title}", "\n".join(wrong), time.monotonic() - since)
    finally:
        for proxy in proxies:
            proxy.stop()
        service.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return report.end(began)


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
