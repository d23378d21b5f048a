"""Makes the images that lack: a base from Debian's packages, Dockerfiles by buildah, and the result straight into the store.

Every program runs among mounts of its own and under a guard, so that an end in the middle leaves nothing but files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cluster.binaries import Places
from cluster.binaries.progress import Progress
from cluster.images import pip
from cluster.images.over import Described, pack
from cluster.images.recipes import SUITE, Base, Recipe
from cluster.node import packages
from cluster.node.image_store import ImageStore
from cluster.node.machine import Machine
from cluster.node.packages import Unavailable
from cluster.node.runtime import Runtime
from cluster.processes import ClusterFailed, Processes

CERTIFICATES: Final = Path("/etc/ssl/certs")
MAKING: Final = "making-"
PROXIES: Final = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


def ensure_images(recipes: Iterable[Recipe], places: Places, progress: Progress) -> None:
    """All of them are in every real node that starts after this; Unavailable where they cannot be made."""
    store, wanted = ImageStore.of(places), list(recipes)
    if all(store.has(recipe.reference) for recipe in wanted):
        return
    packages.require_root()
    found = packages.require({**packages.NODE, **packages.IMAGES}, progress)
    with store.making(lambda: progress.say("another run is making images here; waiting for it ...")):
        for left in store.folder.glob(f"{MAKING}*"):
            shutil.rmtree(left, ignore_errors=True)
        missing = [recipe for recipe in wanted if not store.has(recipe.reference)]
        for place, recipe in enumerate(missing, start=1):
            with progress.step(f"[{place}/{len(missing)}] making the image {recipe}"):
                _make(recipe, store, found)


def _make(recipe: Recipe, store: ImageStore, programs: Mapping[str, Path]) -> None:
    folder = Path(tempfile.mkdtemp(prefix=MAKING, dir=store.folder))
    processes = Processes(folder)
    workshop = Workshop(folder=folder, storage=store.folder / "buildah", processes=processes)
    try:
        workshop.sweep()
        if not workshop.has(recipe.base):
            workshop.make(recipe.base)
        workshop.build(recipe)
        with store.changing():
            workshop.hand_over(recipe, store, programs)
        workshop.forget(recipe)
    except ClusterFailed as failure:
        raise Unavailable(f"the image {recipe} could not be made: {failure}") from failure
    finally:
        processes.stop()
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """Where one image is made."""

    folder: Path
    storage: Path
    """buildah's, kept: the bases are in it."""
    processes: Processes

    def sweep(self) -> None:
        """What earlier ones left that were ended in the middle."""
        self._run("buildah-sweep", *self._buildah("rm", "--all"))
        self._run("buildah-sweep", *self._buildah("rmi", "--prune"))

    def has(self, base: Base) -> bool:
        argv = self._buildah("inspect", "--type", "image", base.reference)
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0

    def make(self, base: Base) -> None:
        root = self.folder / "base"
        included = f"--include={','.join(base.packages)}"
        self._run("debootstrap", "debootstrap", "--variant=minbase", included, SUITE, str(root))
        for left in (*root.glob("var/cache/apt/archives/*.deb"), *root.glob("var/lib/apt/lists/*_*")):
            left.unlink()
        (self.folder / "Dockerfile").write_text("FROM scratch\nADD base /\n")
        self._run("buildah-base", *self._buildah("bud", "--quiet", "--tag", base.reference, str(self.folder)))
        shutil.rmtree(root)

    def build(self, recipe: Recipe) -> None:
        """Run its Dockerfile."""
        # Run as the machine's user would, without an engine: steps share the host's network.
        args = ["--isolation", "chroot", "--network", "host", "--build-arg", f"BASE={recipe.base.reference}"]
        args += ["--secret", f"id=pip,src={pip.write_settings(self.folder / 'pip.conf')}"]
        lock = recipe.folder / "torch.txt"
        if lock.exists() and (torch := pip.cpu_torch(lock)):
            args += ["--build-arg", f"TORCH={torch}"]
        if CERTIFICATES.is_dir():
            args += ["--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro"]
        for folder in pip.local_wheels():
            args += ["--volume", f"{folder}:{folder}:ro"]
        self._run(
            f"buildah-{recipe}", *self._buildah("bud", *args, "--tag", recipe.reference, str(recipe.folder))
        )

    def hand_over(self, recipe: Recipe, store: ImageStore, programs: Mapping[str, Path]) -> None:
        """From buildah to the store's containerd."""
        machine = Machine.start("store", self.processes)
        runtime = Runtime(
            machine=machine, folder=self.folder / "runtime", root=store.root, plugins=self.folder, pods=""
        )
        runtime.start(programs["containerd"])
        if recipe.over is None:
            self._pour(recipe, runtime)
        else:
            self._lay(recipe, recipe.over, runtime)
        for old in store.superseded(recipe.reference):
            store.forget(old)
            runtime.remove(old)
        self.processes.kill(runtime.program)
        store.complete(recipe.reference)

    def _pour(self, recipe: Recipe, runtime: Runtime) -> None:
        """Through a pipe: an image is gigabytes, and an archive as many again."""
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        push = self._buildah("push", "--quiet", recipe.reference, f"docker-archive:{pipe}:{recipe.reference}")
        self.processes.start("push", self._alone(*push))
        runtime.start_loading("load", pipe)
        self.processes.finish("push", "load")

    def _lay(self, recipe: Recipe, below: Recipe, runtime: Runtime) -> None:
        """What was built over the base, over an image that is there already."""
        upper, archive = self.folder / "upper", self.folder / "over.tar"
        self._run("push", *self._buildah("push", "--quiet", recipe.reference, f"oci:{upper}"))
        pack(upper, Described.stored(runtime, below.reference), recipe.reference, archive)
        runtime.load(archive)

    def forget(self, recipe: Recipe) -> None:
        """The store has it now."""
        self._run("buildah-forget", *self._buildah("rmi", recipe.reference))

    def _buildah(self, *args: str) -> list[str]:
        storage = ["--root", str(self.storage), "--runroot", str(self.folder / "run")]
        return ["buildah", "--storage-driver=overlay", *storage, *args]

    def _run(self, name: str, *argv: str) -> None:
        self.processes.start(name, self._alone(*argv))
        self.processes.finish(name)

    def _alone(self, *argv: str) -> list[str]:
        environ = os.environ  # noqa: TID251 - proxies are for the program that is run
        proxies = [f"{name}={environ[name]}" for name in PROXIES if name in environ]
        unshare = ["unshare", "--mount", "--propagation=private", "--pid", "--mount-proc", "--fork"]
        return [*unshare, "--kill-child=KILL", "--", "env", f"PATH={packages.SYSTEM_PATH}", *proxies, *argv]
