"""The images that the Containerfile builds on: the registry's or, where it cannot be reached, made of Debian's packages."""

import os
import re
import shutil
import subprocess
import tempfile

from podman import LABEL, PodmanError

HERE = "localhost/container-check"
# What a builder of ours needs beside Rust; the registry's image has more.
PACKAGES = "ca-certificates cmake g++ gcc libc6-dev make perl pkg-config"
# As the registry's image has it: apt keeps no copies of what it unpacked.
CLEAN = """\
APT::Update::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
"""
# What the registry's slim image is without.
DOCUMENTATION = ("usr/share/doc", "usr/share/info", "usr/share/locale", "usr/share/man")
MINUTES = 60


def made_of(containerfile):
    """The images of its FROM lines that are no stages of its own."""
    stages = set(re.findall(r"^FROM .* AS (\S+)$", containerfile, re.M))
    return [image for image in re.findall(r"^FROM (\S+)", containerfile, re.M) if image not in stages]


class Bases:
    """Has each image of a Containerfile ready."""

    def __init__(self, podman):
        self.podman = podman

    def ready(self, image):
        """Words for `podman build`, by which it finds an image: none where the image has its own name."""
        ours = image.replace("docker.io/library/", f"{HERE}-")
        if self._is_here(image):
            return []
        if not self._is_here(ours):
            print(f"Pulling {image}", flush=True)
            code, _, told = self.podman.tried("pull", "--quiet", image, patience=10 * MINUTES)
            if code == 0:
                return []
            print(f"It cannot be pulled ({told.splitlines()[-1]}): making one like it of Debian's packages", flush=True)
            self._make(image, ours)
        print(f"In place of {image}, which cannot be pulled here: {ours}", flush=True)
        return ["--build-context", f"{image}=container-image://{ours}"]

    def _is_here(self, image):
        return self.podman.tried("image", "exists", image)[0] == 0

    def _make(self, image, ours):
        slim = re.fullmatch(r"docker\.io/library/debian:(\w+)-slim", image)
        rust = re.fullmatch(r"docker\.io/library/rust:([\d.]+)-(\w+)", image)
        if slim:
            self._debian(slim[1], ours)
        elif rust:
            self._rust(*rust.groups(), ours)
        else:
            raise PodmanError(f"{image} is nothing that is known here: teach {os.path.basename(__file__)} to make it")

    def _debian(self, suite, ours):
        """Debian's least, as a folder and then as an image of one layer."""
        if os.geteuid() != 0:
            raise PodmanError("debootstrap wants to be run by root: pull the image, or run this as root")
        with tempfile.TemporaryDirectory(prefix="container-check-") as folder:
            root = os.path.join(folder, "root")
            command = ["script/quietly", f"Unpacking Debian's {suite}", "debootstrap", "--variant=minbase", suite, root]
            subprocess.run(command, check=True)
            with open(os.path.join(root, "etc/apt/apt.conf.d/docker-clean"), "w", encoding="ascii") as file:
                file.write(CLEAN)
            for path in (*DOCUMENTATION, "var/cache/apt/archives", "var/lib/apt/lists"):
                shutil.rmtree(os.path.join(root, path))
                os.mkdir(os.path.join(root, path))
            archive = os.path.join(folder, "root.tar")
            subprocess.run(["tar", "--create", "--file", archive, "--directory", root, "."], check=True)
            self.podman.do("import", "--quiet", "--change", f"LABEL {LABEL}", archive, ours, patience=10 * MINUTES)

    def _rust(self, version, suite, ours):
        """That with a C compiler, and with this machine's Rust, which must be the same."""
        said = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout
        if f" {version}." not in f"{said} ":
            raise PodmanError(f"rust {version} is wanted and cannot be pulled, and this machine's is {said.strip()}")
        printed = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True)
        debian = f"docker.io/library/debian:{suite}-slim"
        containerfile = f"""\
FROM {debian}
RUN apt-get update && apt-get install --yes --no-install-recommends {PACKAGES} && rm -rf /var/lib/apt/lists/*
COPY --from=rust . /usr/local/rust
COPY ca-certificates.crt /etc/ssl/certs/
ENV PATH=/usr/local/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin CARGO_HOME=/usr/local/cargo
"""
        with tempfile.TemporaryDirectory(prefix="container-check-") as folder:
            # A network that lets no registry be reached may well have an authority of its own, whom cargo has to trust.
            shutil.copy("/etc/ssl/certs/ca-certificates.crt", folder)
            path = os.path.join(folder, "Containerfile")
            with open(path, "w", encoding="ascii") as file:
                file.write(containerfile)
            words = [*self.ready(debian), "--build-context", f"rust={printed.stdout.strip()}"]
            words += ["--layers=false", "--tag", ours, "--file", path, folder]
            print("Adding a C compiler and Rust", flush=True)
            if self.podman.build(*words, of=[debian]):
                raise PodmanError(f"{ours} was not built")
