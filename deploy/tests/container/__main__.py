"""The container of deploy/container: built of this checkout, looked into, and used as operators and partners use it.

A private database and containers are made for it, with names of their own, and removed at the end, also after Ctrl-C.
Images stay, and what cargo keeps between builds, for the next one is faster with them; --prune removes the images. It is
run by root where the images to build on cannot be pulled, or where the machine is itself a container.
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
  script/container-check                              builds the image (minutes), then makes all checks (a minute)
  script/container-check --image localhost/partner-api    checks an image that is there, of this checkout
  script/container-check --image localhost/partner-api-check healthy    only the checks whose names hold this word
  script/container-check --prune                      removes the images that earlier runs left
"""


def ended(number, _):
    """A signal that ends the program lets it clean up."""
    raise SystemExit(128 + number)


def look(podman, image, report, folder):
    """All checks of an image."""
    for check in image.checks():
        report.check("image", check)
    database = Database(folder)
    try:
        database.start()
        service = Contained(podman, image.name, database, folder)
        service.start()
        keys = service.furnish()
        # It sees another address than the one that is asked from, so the second key's allowlist lets nobody in.
        service.learns(keys)
        for check in Running(service, database, keys, folder).checks():
            report.check("container", check)
    finally:
        # A second Ctrl-C would leave behind what is being removed.
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
    parser.add_argument("only", nargs="*", metavar="WORDS", help="only the checks whose names hold these words")
    parser.add_argument("--image", metavar="NAME", help="check this image, and build none")
    parser.add_argument("--prune", action="store_true", help="remove the images that this has left, and check nothing")
    parser.add_argument("--narrow", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ended)
    began = time.monotonic()
    podman = Podman(options.narrow)
    if options.prune:
        prune(podman)
        return 0
    report = Report(options.only)
    folder = tempfile.mkdtemp(prefix="container-check-")
    # The database's own user must get through, and the container's.
    os.chmod(folder, 0o755)
    try:
        image = Image(podman, options.image or BUILT, folder)
        if not options.image:
            image.build()
            print(f"The image {BUILT} was built in {time.monotonic() - began:.0f} s", flush=True)
        look(podman, image, report, folder)
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
