"""The base images of the Containerfile: from the registry or, if that is unreachable, built from Debian packages."""

import os
import re
import shutil
import subprocess
import tempfile

from podman import LABEL, PodmanError

HERE = "localhost/container-check"
# The packages that the build needs beside Rust.
PACKAGES = "ca-certificates cmake g++ gcc libc6-dev make perl pkg-config"
# The same apt configuration as in the registry's image: apt keeps no package files.
CLEAN = """\
APT::Update::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
"""
# Folders that the registry's slim image does not have.
DOCUMENTATION = ("usr/share/doc", "usr/share/info", "usr/share/locale", "usr/share/man")
MINUTES = 60


def base_images(containerfile):
    """Returns the images in FROM lines, except the file's own stages."""
    stages = set(re.findall(r"^FROM .* AS (\S+)$", containerfile, re.M))
    return [image for image in re.findall(r"^FROM (\S+)", containerfile, re.M) if image not in stages]


class Bases:
    """Provides the base images of a Containerfile."""

    def __init__(self, podman):
        self.podman = podman

    def provide(self, image):
        """Pulls or builds an image. Returns the arguments with which `podman build` finds it; none if it has its own name."""
        ours = image.replace("docker.io/library/", f"{HERE}-")
        if self._is_here(image):
            return []
        if not self._is_here(ours):
            print(f"Pulling {image}", flush=True)
            code, _, errors = self.podman.run("pull", "--quiet", image, timeout=10 * MINUTES)
            if code == 0:
                return []
            print(f"Failed to pull it ({errors.splitlines()[-1]}); building a replacement from Debian packages", flush=True)
            self._make(image, ours)
        print(f"Using {ours} instead of {image}, which cannot be pulled here", flush=True)
        return ["--build-context", f"{image}=container-image://{ours}"]

    def _is_here(self, image):
        return self.podman.run("image", "exists", image)[0] == 0

    def _make(self, image, ours):
        slim = re.fullmatch(r"docker\.io/library/debian:(\w+)-slim", image)
        rust = re.fullmatch(r"docker\.io/library/rust:([\d.]+)-(\w+)", image)
        if slim:
            self._debian(slim[1], ours)
        elif rust:
            self._rust(*rust.groups(), ours)
        else:
            raise PodmanError(f"failed to build a replacement for the unknown image {image}; add it to {os.path.basename(__file__)}")

    def _debian(self, suite, ours):
        """Builds a minimal Debian image with one layer."""
        if os.geteuid() != 0:
            raise PodmanError("debootstrap must run as root; pull the image, or run this as root")
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
            self.podman.run_checked("import", "--quiet", "--change", f"LABEL {LABEL}", archive, ours, timeout=10 * MINUTES)

    def _rust(self, version, suite, ours):
        """Builds a Debian image with a C compiler and this machine's Rust, which must have the requested version."""
        output = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout
        if f" {version}." not in f"{output} ":
            raise PodmanError(f"rust {version} cannot be pulled, and this machine has {output.strip()}")
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
            # A network without access to the registry may have its own certificate authority, which cargo has to trust.
            shutil.copy("/etc/ssl/certs/ca-certificates.crt", folder)
            path = os.path.join(folder, "Containerfile")
            with open(path, "w", encoding="ascii") as file:
                file.write(containerfile)
            arguments = [*self.provide(debian), "--build-context", f"rust={printed.stdout.strip()}"]
            arguments += ["--layers=false", "--tag", ours, "--file", path, folder]
            print("Adding a C compiler and Rust", flush=True)
            if self.podman.build(*arguments, of=[debian]):
                raise PodmanError(f"failed to build {ours}")
