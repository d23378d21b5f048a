"""What is an S3 store's alone, of a real one: keys, regions, pages and sums."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest

from fronting import Front
from lain import PATIENCE, SHARD, in_bucket, spoil
from plimsoll_runtime.sources.fetch import fetch, source_of
from plimsoll_runtime.sources.trouble import FetchFailed
from plimsoll_runtime.sources.web import Web
from stores import Bucket
from tests.runtime.sites import Asked, Reply, cut_once
from tests.runtime.small_model import WANTED, Listener, files_of, safetensors, shards

pytestmark = pytest.mark.real_store


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "another"}, "SignatureDoesNotMatch"),
        ({"AWS_ACCESS_KEY_ID": "AKIAOTHER"}, "XAdminUserNotFound"),
        ({"AWS_ACCESS_KEY_ID": ""}, "AccessDenied"),
    ],
)
def test_keys_that_are_not_right_are_told(
    bucket: Bucket, place: str, tmp_path: Path, given: dict[str, str], code: str
) -> None:
    lain = in_bucket(bucket, place)
    said = lain.refused(tmp_path, more=given)
    assert said == f"GatedModel: the store does not let these keys read {lain.named('')} ({code})"


def test_another_region_is_found_by_what_the_store_says(bucket: Bucket, place: str, tmp_path: Path) -> None:
    assert files_of(in_bucket(bucket, place).get(tmp_path, more={"AWS_REGION": "us-east-1"}).path) == WANTED


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("s3://gone-bucket/x", "there is no bucket gone-bucket"),
        ("s3://models/gone", "s3://models/gone holds nothing"),
    ],
)
def test_what_is_not_in_a_store_is_told(bucket: Bucket, tmp_path: Path, source: str, said: str) -> None:
    given = {
        "AWS_ENDPOINT_URL": f"http://{bucket.address}",
        "AWS_ACCESS_KEY_ID": bucket.KEYS.access,
        "AWS_SECRET_ACCESS_KEY": bucket.KEYS.secret,
        "AWS_REGION": bucket.REGION,
    }
    with pytest.raises(FetchFailed) as caught:
        fetch(source, None, tmp_path, Listener(), given, patience=PATIENCE)
    assert (caught.value.failure.word, caught.value.failure.message) == ("ModelNotFound", said)


def test_a_folder_of_more_than_a_thousand_objects_is_listed_whole(bucket: Bucket, place: str) -> None:
    lain = in_bucket(bucket, place)
    folder = lain.file("config.json").parent
    for number in range(1100):
        (folder / f"part-{number:04}.json").write_text("{}")
    client = source_of(lain.named(""), None, Web(lain.opens(bucket.address), PATIENCE))
    listed = [file.path for file in client.listing().files]
    assert listed == sorted([*shards(), *(f"part-{number:04}.json" for number in range(1100))])


@pytest.mark.parametrize("how", ["sha256", "parts"])
def test_the_sums_that_a_store_keeps_are_held_to(
    bucket: Bucket, place: str, tmp_path: Path, how: str
) -> None:
    lain = in_bucket(bucket, place)
    key = lain.path(SHARD)
    if how == "parts":
        body = safetensors(6 << 20)
        bucket.put_in_parts(key, [body[: 5 << 20], body[5 << 20 :]])
    else:
        body = shards()[SHARD]
        bucket.put(
            key, body, {"x-amz-checksum-sha256": base64.b64encode(hashlib.sha256(body).digest()).decode()}
        )
    assert (lain.get(tmp_path / "right").path / SHARD).read_bytes() == body
    spoil(lain.file(SHARD))
    assert lain.refused(tmp_path / "wrong").endswith(f" is not what its {how} sum says, twice")


def test_an_object_that_is_replaced_while_it_is_fetched_is_told_by_the_store(
    bucket: Bucket, place: str, tmp_path: Path
) -> None:
    lain = in_bucket(bucket, place)
    key, body = lain.path(SHARD), safetensors(300_000, 9)

    def replaced(asked: Asked) -> Reply | None:
        if key in asked.path and "range" in asked.headers:
            bucket.put(key, body)
        return None

    front = Front(bucket.port)
    try:
        front.once += [cut_once(key, 100_000), replaced]
        said = lain.refused(tmp_path, at=front)
    finally:
        front.close()
    assert said == f"Download: {SHARD} of {lain.named('')} changed while it was fetched"
    assert (lain.get(tmp_path).path / SHARD).read_bytes() == body
