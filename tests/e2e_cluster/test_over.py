"""One image over another: the layers of the lower one and, on them, what the upper one's Dockerfile adds to the base."""

import json
import tarfile

from cluster.images.over import Described, digest_of, pack, path_of

LAYER = b"what the Dockerfile adds"
LOWER = Described(
    manifest={
        "schemaVersion": 2,
        "mediaType": "lower/manifest",
        "config": {"mediaType": "lower/config", "digest": "sha256:0", "size": 1},
        "layers": [{"digest": "sha256:base"}, {"digest": "sha256:engine"}],
    },
    config={
        "architecture": "amd64",
        "history": ["one", "two"],
        "config": {
            "Env": ["PATH=/bin", "OFFLINE=1"],
            "Entrypoint": ["engine"],
            "WorkingDir": "/",
            "User": "7",
        },
        "rootfs": {"type": "layers", "diff_ids": ["base", "engine"]},
    },
)


def laid_out(folder):
    """As buildah writes the upper one, which it made over the base."""
    says = {
        "Entrypoint": ["first", "engine"],
        "ExposedPorts": {"1/tcp": {}},
        "Labels": {"a": "b"},
        "User": "8",
    }
    config = {
        "config": {"Env": ["PATH=/bin", "OFFLINE=0", "MORE=a=b"], **says},
        "rootfs": {"diff_ids": ["base", "added"]},
    }
    body = json.dumps(config).encode()
    layers = [{"digest": "sha256:base"}, {"mediaType": "upper/layer", "digest": digest_of(LAYER)}]
    manifest = json.dumps({"config": {"digest": digest_of(body)}, "layers": layers}).encode()
    for one in (body, manifest, LAYER):
        file = folder / path_of(digest_of(one))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(one)
    (folder / "index.json").write_text(json.dumps({"manifests": [{"digest": digest_of(manifest)}]}))
    return folder


def test_the_archive_has_the_added_layer_and_describes_it_over_the_lower_image_s(tmp_path):
    pack(laid_out(tmp_path / "upper"), LOWER, "localhost/upper:1", tmp_path / "over.tar")
    with tarfile.open(tmp_path / "over.tar") as tar:
        for one in tar.getmembers():
            body = tar.extractfile(one)
            assert body is not None
            file = tmp_path / "read" / one.name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body.read())
    made = Described.laid_out(tmp_path / "read")
    assert [one["digest"] for one in made.manifest["layers"]] == [
        "sha256:base",
        "sha256:engine",
        digest_of(LAYER),
    ]
    assert made.manifest["mediaType"] == "lower/manifest"
    assert made.config["rootfs"]["diff_ids"] == ["base", "engine", "added"]
    assert made.config["config"] == {
        "Env": ["PATH=/bin", "OFFLINE=0", "MORE=a=b"],
        "Entrypoint": ["first", "engine"],
        "ExposedPorts": {"1/tcp": {}},
        "Labels": {"a": "b"},
        "User": "8",
        "WorkingDir": "/",
    }
    assert "history" not in made.config, "it would count other layers"
    (about,) = json.loads((tmp_path / "read" / "index.json").read_text())["manifests"]
    assert about["annotations"] == {"io.containerd.image.name": "localhost/upper:1"}
    blobs = {one.name for one in (tmp_path / "read" / "blobs" / "sha256").iterdir()}
    assert digest_of(LAYER).removeprefix("sha256:") in blobs
    assert len(blobs) == 3, "nothing of the lower image's own"
