"""The image: built of this checkout, and what is in it."""

import json
import os
import re
import subprocess
import tarfile
import tempfile
from functools import cached_property

from bases import Bases, made_of
from podman import LABEL
from wire import Skipped

FOLDER = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
CONTAINERFILE = "deploy/container/Containerfile"
IGNORED = f"{CONTAINERFILE}.dockerignore"

# What our layers have beside files of Debian's packages: program, licences, and what is known of packages and authorities.
OURS = re.compile(
    r"usr/local/bin/partner-api|usr/share/doc/partner-api/LICENSE(-\w+)?"
    r"|etc/(ca-certificates\.conf|hosts|ld\.so\.cache|resolv\.conf|ssl/certs/.*)"
    r"|var/(lib/(apt/extended_states|dpkg/.*)|log/(apt/.*|dpkg\.log|alternatives\.log)|cache/(debconf/.*|ldconfig/.*))"
)
LIST = re.compile(r"var/lib/dpkg/info/.*\.list$")
# What a careless user has beside the sources, and what none of it may come into an image.
DECOYS = (
    ".git/config .sandbox/sandbox.json .venv/bin/python data/files/photo.jpg master.key deploy/live/master.key .env a/.env "
    "partner-api.env tls/privkey.pem node_modules/a/index.js samples/node_modules/a/index.js target/debug/partner-api "
    "codegen/target/x samples/python/__pycache__/a.pyc store.p12"
).split()


def merged(path):
    """A path as it is in a Debian whose /bin is /usr/bin."""
    return re.sub(r"^(bin|sbin|lib\w*)/", r"usr/\1/", path.removeprefix("./").removeprefix("/"))


class Image:
    """An image, and the checks of what it is; each returns what is wrong, or nothing."""

    def __init__(self, podman, name, folder):
        self.podman, self.name, self.folder = podman, name, folder

    def build(self):
        """Builds it as the Containerfile says that it is built, with the words that this machine needs beside."""
        bases = Bases(self.podman)
        with open(os.path.join(FOLDER, CONTAINERFILE), encoding="utf-8") as file:
            images = made_of(file.read())
        words = [word for image in images for word in bases.ready(image)]
        if self.podman.build(*words, "--file", CONTAINERFILE, "--tag", self.name, ".", of=images):
            raise SystemExit("the image was not built")

    @cached_property
    def facts(self):
        """What podman knows of it."""
        return json.loads(self.podman.do("image", "inspect", self.name))[0]

    def _layers(self, image):
        """For each layer of an image its files, as pairs of entry and content; the content only of dpkg's lists."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            archive = os.path.join(folder, "image.tar")
            self.podman.do("save", "--quiet", "--format", "docker-archive", "--output", archive, image, patience=600)
            with tarfile.open(archive) as outer:
                for layer in json.load(outer.extractfile("manifest.json"))[0]["Layers"]:
                    with tarfile.open(fileobj=outer.extractfile(layer)) as inner:
                        yield [
                            (entry, inner.extractfile(entry).read() if LIST.search(entry.name) else b"")
                            for entry in inner
                            if not entry.isdir()
                        ]

    def the_layers_hold_the_program_and_nothing_else_of_the_project(self):
        """Whatever is in a layer, even if a later one hides it, is a file of Debian's or one that is expected."""
        layers = list(self._layers(self.name))
        listed = {merged(line) for layer in layers for _, text in layer for line in text.decode().splitlines()}
        sizes = [sum(entry.size for entry, _ in layer) for layer in layers]
        program = sum(entry.size for layer in layers for entry, _ in layer if entry.name.endswith("bin/partner-api"))
        base, *ours = sizes
        print(
            f"         {sum(sizes) / 1e6:.0f} MB: {base / 1e6:.0f} are Debian's, {program / 1e6:.0f} the program,"
            f" {(sum(ours) - program) / 1e6:.1f} the rest",
            flush=True,
        )
        wrong = [] if program else ["there is no program"]
        for layer in layers[1:]:
            for entry, _ in layer:
                path = merged(entry.name)
                # What a layer takes away from those below is an empty file of this name.
                taken = os.path.basename(path).startswith(".wh.") and not entry.size
                if path not in listed and not taken and not OURS.fullmatch(path):
                    wrong.append(f"{path}, {entry.size} bytes, is neither Debian's nor expected")
        return "\n".join(wrong[:20])

    def it_says_who_runs_it_and_how(self):
        """User, port, volume, signal, health check, and an environment without secrets."""
        config, wrong = self.facts["Config"], []
        environment = dict(entry.split("=", 1) for entry in config["Env"])
        port = environment.get("PARTNER_API_LISTEN", "").rpartition(":")[2]
        expected = {
            "User": "10001:10001",
            "ExposedPorts": {f"{port}/tcp": {}},
            "Volumes": {environment.get("PARTNER_API_DATA_DIR"): {}},
            "StopSignal": "SIGTERM",
        }
        wrong += [f"{name}: {config.get(name)}" for name, value in expected.items() if config.get(name) != value]
        secret = [name for name in environment if re.search("PASSWORD|SECRET|TOKEN|DATABASE_URL|MASTER_KEY$", name)]
        wrong += [f"{name} is set in the image" for name in secret]
        if not (self.facts.get("HealthCheck") or self.facts.get("Healthcheck") or {}).get("Test"):
            wrong.append("it has no health check")
        return "\n".join(wrong)

    def what_is_built_of_this_checkout_is_nothing_that_git_ignores(self):
        """All files that a build would copy: git knows them, or would."""
        sources = self._context(FOLDER)
        asked = "\0".join(sources)
        command = ["git", "check-ignore", "--no-index", "-z", "--stdin"]
        done = subprocess.run(command, cwd=FOLDER, input=asked.encode(), capture_output=True, check=False)
        if done.returncode not in (0, 1):
            raise Skipped(f"git does not know this folder: {done.stderr.decode().strip()}")
        wrong = [f"{path} would come into the build" for path in done.stdout.decode().split("\0") if path]
        wrong += [f"{path} would come into the build" for path in sources if path.split("/")[0] == ".git"]
        needed = ["Cargo.toml", "Cargo.lock", "LICENSE", "spec/partner-api.yaml"]
        wrong += [f"{path} would be missing from the build" for path in needed if path not in sources]
        return "\n".join(wrong[:20])

    def keys_data_and_environments_beside_the_sources_stay_out(self):
        """A folder with one of each beside a source."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            for path in (*DECOYS, "crates/cli/src/main.rs"):
                os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(folder, path), "w", encoding="ascii") as file:
                    file.write("decoy")
            found = self._context(folder)
        wrong = [f"{path} would come into an image" for path in found if path != "crates/cli/src/main.rs"]
        return "\n".join(wrong if "crates/cli/src/main.rs" in found else [*wrong, "the source is missing"])

    def _context(self, folder):
        """The files of a folder that a build copies."""
        with tempfile.TemporaryDirectory(dir=self.folder) as beside:
            containerfile = os.path.join(beside, "Containerfile")
            with open(containerfile, "w", encoding="ascii") as file:
                file.write("FROM scratch\nCOPY . /\n")
            name = f"localhost/{self.podman.mark}-context"
            words = ["--layers=false", "--label", LABEL, "--format", "docker", "--ignorefile", os.path.join(FOLDER, IGNORED)]
            self.podman.do("build", *self.podman.of_builds, *words, "--file", containerfile, "--tag", name, folder)
            try:
                return [entry.name.removeprefix("./") for layer in self._layers(name) for entry, _ in layer]
            finally:
                self.podman.do("rmi", "--force", name)

    def checks(self):
        """All of them."""
        return [
            self.what_is_built_of_this_checkout_is_nothing_that_git_ignores,
            self.keys_data_and_environments_beside_the_sources_stay_out,
            self.it_says_who_runs_it_and_how,
            self.the_layers_hold_the_program_and_nothing_else_of_the_project,
        ]


def prune(podman):
    """Removes all images that this program has left: what it built, with the steps of it, and what it made to build on."""
    images = podman.images()
    if images:
        podman.do("rmi", "--force", *images, patience=600)
    print(f"{len(images)} images were removed. What cargo keeps between builds is podman's: /var/tmp/buildah-cache*")
