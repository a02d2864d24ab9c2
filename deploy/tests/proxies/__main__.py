"""Checks the files of deploy/ with the real nginx and haproxy in front of the real service.

Starts a private service (database, partner, keys), an nginx and a haproxy on free loopback ports, with the files of deploy/ and a
few changed values (see deploy/tests/proxies/proxies.py). Uses them as partners and attackers do, and stops them. Writes only into a
temporary folder. PARTNER_API_BINARY names the program to use instead of the debug build.
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

from limits import Limits, an_unavailable_service_gets_503_in_time_and_is_used_again as check_outages  # noqa: E402
from files import Files  # noqa: E402
from inspectors import Inspectors  # noqa: E402
from forwarding import Forwarding  # noqa: E402
from proxies import ROOT, Haproxy, Nginx, NginxForInspectors  # noqa: E402
from report import Report  # noqa: E402
from service import Service  # noqa: E402


def check_proxy(report, proxy, service, keys):
    """Runs all checks of a proxy, except those that stop the service."""
    report.check(proxy.name, proxy.check_as_shipped)
    # The checks with slow clients mostly wait, so the others run in parallel.
    with ThreadPoolExecutor(3) as pool:
        limits = Limits(proxy, service, keys[0])
        waiting = [
            pool.submit(report.check, proxy.name, check)
            for check in (
                limits.silent_and_slow_clients_are_disconnected,
                limits.an_incomplete_body_is_cut_off_and_never_reaches_the_service,
                limits.one_address_is_limited_and_others_are_served,
            )
        ]
        for check in Forwarding(proxy, service, *keys).checks():
            report.check(proxy.name, check)
        for one in waiting:
            one.result()
    return limits


def check_inspectors_page(report, proxy, service):
    """Runs all checks of the proxy for inspectors."""
    report.check(proxy.name, proxy.check_as_shipped)
    for check in Inspectors(proxy, service).checks():
        report.check(proxy.name, check)


def main():
    """Runs the checks."""
    parser = argparse.ArgumentParser(
        prog="script/deploy-check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("only", nargs="*", metavar="WORDS", help="only the checks whose names contain one of these words")
    parser.add_argument("--program", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    began = time.monotonic()
    report = Report(options.only)
    folder = tempfile.mkdtemp(prefix="deploy-check-")
    # The database's user must be able to enter.
    os.chmod(folder, 0o755)
    service = Service(os.path.abspath(options.program), folder)
    proxies = []
    try:
        service.start()
        keys = service.create_keys()
        service.wait_for_keys(keys)
        for kind in (Nginx, Haproxy, NginxForInspectors):
            proxies.append(kind(folder, service))
            proxies[-1].start()
        *for_partners, for_inspectors = proxies
        with ThreadPoolExecutor(4) as pool:
            files = Files(os.path.abspath(options.program), folder, service)
            of_files = pool.submit(lambda: [report.check("files", check) for check in files.checks()])
            of_page = pool.submit(check_inspectors_page, report, for_inspectors, service)
            running = [pool.submit(check_proxy, report, proxy, service, keys) for proxy in for_partners]
            all_limits = [proxy.result() for proxy in running]
            of_page.result()
            of_files.result()
        title = check_outages.__name__.replace("_", " ")
        if any(report.wants(f"{proxy.name}: {title}") for proxy in for_partners):
            since = time.monotonic()
            for name, problems in check_outages(service, all_limits).items():
                report.found(f"{name}: {title}", "\n".join(problems), time.monotonic() - since)
    finally:
        for proxy in proxies:
            proxy.stop()
        service.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return report.end(began)


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
