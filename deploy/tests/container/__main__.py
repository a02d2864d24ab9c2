"""Builds the container image of deploy/container from this checkout, inspects it, and uses it as operators and partners do.

Creates a private database and containers with unique names, and removes them at the end, even after Ctrl-C. Keeps the images
and cargo's cache, which make the next build faster; --prune removes the images. Run it as root if the base images cannot be
pulled, or if the machine is itself a container.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "proxies")]

from contained import Contained  # noqa: E402
from database import Database  # noqa: E402
from image import FOLDER, Image, prune  # noqa: E402
from podman import Podman, PodmanError  # noqa: E402
from report import Report  # noqa: E402
from running import Running  # noqa: E402

BUILT = "localhost/partner-api-check"
EXAMPLES = """\
examples:
  script/container-check                              builds the image (minutes), then runs all checks (a minute)
  script/container-check --image localhost/partner-api    checks an existing image of this checkout
  script/container-check --image localhost/partner-api-check healthy    only the checks whose names contain this word
  script/container-check --prune                      removes the images of earlier runs
"""


def terminate(number, _):
    """Exits on a signal, so that the program cleans up."""
    raise SystemExit(128 + number)


def check_image(podman, image, report, folder):
    """Runs all checks of an image."""
    for check in image.checks():
        report.check("image", check)
    database = Database(folder)
    try:
        database.start()
        service = Contained(podman, image.name, database, folder)
        service.start()
        keys = service.create_keys()
        # The container sees another client address, so the allowlist of the second key rejects all requests.
        service.wait_for_keys(keys)
        for check in Running(service, database, keys, folder).checks():
            report.check("container", check)
    finally:
        # A second Ctrl-C would interrupt the cleanup.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        podman.remove_all()
        database.stop()


def main():
    """Builds the image and runs the checks."""
    parser = argparse.ArgumentParser(
        prog="script/container-check",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("only", nargs="*", metavar="WORDS", help="only the checks whose names contain one of these words")
    parser.add_argument("--image", metavar="NAME", help="check this image instead of building one")
    parser.add_argument("--prune", action="store_true", help="remove the images of earlier runs, without any check")
    parser.add_argument("--narrow", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, terminate)
    began = time.monotonic()
    podman = Podman(options.narrow)
    if options.prune:
        prune(podman)
        return 0
    report = Report(options.only)
    folder = tempfile.mkdtemp(prefix="container-check-")
    # The users of the database and of the container must be able to enter.
    os.chmod(folder, 0o755)
    try:
        image = Image(podman, options.image or BUILT, folder)
        if not options.image:
            image.build()
            print(f"The image {BUILT} was built in {time.monotonic() - began:.0f} s", flush=True)
        check_image(podman, image, report, folder)
    except PodmanError as error:
        report.found("podman", str(error), time.monotonic() - began)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return report.end(began)


if __name__ == "__main__":
    os.chdir(FOLDER)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
