"""The image: its build from this checkout, and checks of its contents."""

import json
import os
import re
import subprocess
import tarfile
import tempfile
from functools import cached_property

from bases import Bases, base_images
from podman import LABEL
from wire import Skipped

FOLDER = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
CONTAINERFILE = "deploy/container/Containerfile"
IGNORED = f"{CONTAINERFILE}.dockerignore"

# The files of our layers that do not belong to Debian packages: the program, licenses, and data about packages and certificate
# authorities.
OURS = re.compile(
    r"usr/local/bin/partner-api|usr/share/doc/partner-api/LICENSE-\w+"
    r"|etc/(ca-certificates\.conf|hosts|ld\.so\.cache|resolv\.conf|ssl/certs/.*)"
    r"|var/(lib/(apt/extended_states|dpkg/.*)|log/(apt/.*|dpkg\.log|alternatives\.log)|cache/(debconf/.*|ldconfig/.*))"
)
LIST = re.compile(r"var/lib/dpkg/info/.*\.list$")
# Files that may be in a checkout and must not get into an image.
DECOYS = (
    ".git/config .sandbox/sandbox.json .venv/bin/python data/files/photo.jpg master.key deploy/live/master.key .env a/.env "
    "partner-api.env tls/privkey.pem node_modules/a/index.js samples/node_modules/a/index.js target/debug/partner-api "
    "codegen/target/x samples/python/__pycache__/a.pyc store.p12"
).split()


def canonical_path(path):
    """Returns a path with /bin, /sbin and /lib resolved to their folders in /usr."""
    return re.sub(r"^(bin|sbin|lib\w*)/", r"usr/\1/", path.removeprefix("./").removeprefix("/"))


class Image:
    """An image and its checks. Each check returns the problems, or an empty string."""

    def __init__(self, podman, name, folder):
        self.podman, self.name, self.folder = podman, name, folder

    def build(self):
        """Builds the image as the Containerfile describes, with the additional arguments that this machine needs."""
        bases = Bases(self.podman)
        with open(os.path.join(FOLDER, CONTAINERFILE), encoding="utf-8") as file:
            images = base_images(file.read())
        arguments = [argument for image in images for argument in bases.provide(image)]
        if self.podman.build(*arguments, "--file", CONTAINERFILE, "--tag", self.name, ".", of=images):
            raise SystemExit("failed to build the image")

    @cached_property
    def facts(self):
        """The image's description from podman."""
        return json.loads(self.podman.run_checked("image", "inspect", self.name))[0]

    def _layers(self, image):
        """Yields the files of each layer of an image, as pairs of entry and content. Only dpkg's lists have content."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            archive = os.path.join(folder, "image.tar")
            self.podman.run_checked("save", "--quiet", "--format", "docker-archive", "--output", archive, image, timeout=600)
            with tarfile.open(archive) as outer:
                for layer in json.load(outer.extractfile("manifest.json"))[0]["Layers"]:
                    with tarfile.open(fileobj=outer.extractfile(layer)) as inner:
                        yield [
                            (entry, inner.extractfile(entry).read() if LIST.search(entry.name) else b"")
                            for entry in inner
                            if not entry.isdir()
                        ]

    def the_layers_contain_only_the_program_of_the_project(self):
        """Each file of a layer, even if a later layer hides it, belongs to Debian or is expected."""
        layers = list(self._layers(self.name))
        listed = {canonical_path(line) for layer in layers for _, text in layer for line in text.decode().splitlines()}
        sizes = [sum(entry.size for entry, _ in layer) for layer in layers]
        program = sum(entry.size for layer in layers for entry, _ in layer if entry.name.endswith("bin/partner-api"))
        base, *ours = sizes
        print(
            f"         {sum(sizes) / 1e6:.0f} MB: Debian {base / 1e6:.0f}, the program {program / 1e6:.0f},"
            f" others {(sum(ours) - program) / 1e6:.1f}",
            flush=True,
        )
        problems = [] if program else ["the program is missing"]
        for layer in layers[1:]:
            for entry, _ in layer:
                path = canonical_path(entry.name)
                # An empty file with this name marks a deletion from the layers below.
                is_deletion = os.path.basename(path).startswith(".wh.") and not entry.size
                if path not in listed and not is_deletion and not OURS.fullmatch(path):
                    problems.append(f"{path}, {entry.size} bytes, is neither part of Debian nor expected")
        return "\n".join(problems[:20])

    def its_metadata_are_complete(self):
        """User, port, volume, stop signal, health check, and an environment without secrets."""
        config, problems = self.facts["Config"], []
        environment = dict(entry.split("=", 1) for entry in config["Env"])
        port = environment.get("PARTNER_API_LISTEN", "").rpartition(":")[2]
        expected = {
            "User": "10001:10001",
            "ExposedPorts": {f"{port}/tcp": {}},
            "Volumes": {environment.get("PARTNER_API_DATA_DIR"): {}},
            "StopSignal": "SIGTERM",
        }
        problems += [f"{name}: {config.get(name)}" for name, value in expected.items() if config.get(name) != value]
        secret = [name for name in environment if re.search("PASSWORD|SECRET|TOKEN|DATABASE_URL|MASTER_KEY$", name)]
        problems += [f"{name} is set in the image" for name in secret]
        if not (self.facts.get("HealthCheck") or self.facts.get("Healthcheck") or {}).get("Test"):
            problems.append("it has no health check")
        return "\n".join(problems)

    def the_build_context_contains_no_ignored_files(self):
        """Git ignores none of the files that a build copies."""
        sources = self._context(FOLDER)
        paths = "\0".join(sources)
        command = ["git", "check-ignore", "--no-index", "-z", "--stdin"]
        done = subprocess.run(command, cwd=FOLDER, input=paths.encode(), capture_output=True, check=False)
        if done.returncode not in (0, 1):
            raise Skipped(f"this folder is not a git work tree: {done.stderr.decode().strip()}")
        problems = [f"{path} would be part of the build" for path in done.stdout.decode().split("\0") if path]
        problems += [f"{path} would be part of the build" for path in sources if path.split("/")[0] == ".git"]
        needed = ["Cargo.toml", "Cargo.lock", "LICENSE-MIT", "spec/partner-api.yaml"]
        problems += [f"{path} would be missing from the build" for path in needed if path not in sources]
        return "\n".join(problems[:20])

    def the_build_context_excludes_keys_data_and_environments(self):
        """Tries a folder with one of each and one source file."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            for path in (*DECOYS, "crates/cli/src/main.rs"):
                os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(folder, path), "w", encoding="ascii") as file:
                    file.write("decoy")
            found = self._context(folder)
        problems = [f"{path} would be part of an image" for path in found if path != "crates/cli/src/main.rs"]
        return "\n".join(problems if "crates/cli/src/main.rs" in found else [*problems, "the source is missing"])

    def _context(self, folder):
        """Returns the files of a folder that a build copies."""
        with tempfile.TemporaryDirectory(dir=self.folder) as temporary:
            containerfile = os.path.join(temporary, "Containerfile")
            with open(containerfile, "w", encoding="ascii") as file:
                file.write("FROM scratch\nCOPY . /\n")
            name = f"localhost/{self.podman.mark}-context"
            arguments = ["--layers=false", "--label", LABEL, "--format", "docker", "--ignorefile", os.path.join(FOLDER, IGNORED)]
            self.podman.run_checked("build", *self.podman.build_options, *arguments, "--file", containerfile, "--tag", name, folder)
            try:
                return [entry.name.removeprefix("./") for layer in self._layers(name) for entry, _ in layer]
            finally:
                self.podman.run_checked("rmi", "--force", name)

    def checks(self):
        """Returns all checks."""
        return [
            self.the_build_context_contains_no_ignored_files,
            self.the_build_context_excludes_keys_data_and_environments,
            self.its_metadata_are_complete,
            self.the_layers_contain_only_the_program_of_the_project,
        ]


def prune(podman):
    """Removes all images of earlier runs: the built ones with their intermediate steps, and the base images."""
    images = podman.images()
    if images:
        podman.run_checked("rmi", "--force", *images, timeout=600)
    print(f"removed {len(images)} images; podman keeps cargo's cache in /var/tmp/buildah-cache*")
