"""A model from a bucket: every request signed as the store expects, sums of all kinds, parts, regions, and what is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from plimsoll_runtime.model import header
from plimsoll_runtime.sources.bucket import Bucket
from plimsoll_runtime.sources.fetch import Fetched, fetch
from plimsoll_runtime.sources.remote import remote
from plimsoll_runtime.sources.sigv4 import Keys, signed
from plimsoll_runtime.sources.trouble import FetchFailed, Refused
from plimsoll_runtime.sources.web import Answer, Web
from tests.runtime.bucket_site import ACCESS, REGION, SECRET, BucketSite
from tests.runtime.sites import Asked, Reply, cut_once, status_once
from tests.runtime.small_model import QUICK, WANTED, Listener, files_of, safetensors, shards

FOLDER = "team/a model+1"
SHARD = f"{FOLDER}/model-00002-of-00003.safetensors"


@pytest.fixture
def store() -> Iterator[BucketSite]:
    files = {f"{FOLDER}/{name}": body for name, body in shards().items()}
    one = BucketSite({**files, f"{FOLDER}/": b"", "team/a model+10/config.json": b"another"})
    yield one
    one.close()


def get(store: BucketSite, into: Path, told: Listener | None = None, **environment: str) -> Fetched:
    given = {
        "AWS_ENDPOINT_URL": store.url,
        "AWS_ACCESS_KEY_ID": ACCESS,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": REGION,
    }
    return fetch(f"s3://models/{FOLDER}", None, into, told or Listener(), given | environment, patience=QUICK)


# What Amazon publishes with its description of version 4, for a bucket called examplebucket.
EXAMPLE = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")


@pytest.mark.parametrize(
    ("url", "headers", "signature"),
    [
        (
            "/test.txt",
            {"Range": "bytes=0-9"},
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        ("/?lifecycle", {}, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ("/?max-keys=2&prefix=J", {}, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)
def test_requests_are_signed_as_published(url, headers, signature):
    parts = urlsplit(f"https://examplebucket.s3.amazonaws.com{url}")
    added = signed(parts, headers, EXAMPLE, "us-east-1", "20130524T000000Z")
    assert added["Authorization"].endswith(f"Signature={signature}")


def test_all_of_a_folder_comes_and_nothing_beside_it(store, tmp_path):
    told = Listener()
    found = get(store, tmp_path, told)
    assert files_of(found.path) == WANTED
    assert all((found.path / name).read_bytes() == store.objects[f"{FOLDER}/{name}"] for name in WANTED)
    assert told.seen[-1][0] == told.seen[-1][1] > 900_000
    count = len(store.asked)
    assert get(store, tmp_path) == found
    assert len(store.asked) == count


def test_a_cut_connection_goes_on_where_it_was(store, tmp_path):
    store.once += [cut_once("00002", 100_000), status_once("00003", 503)]
    assert files_of(get(store, tmp_path).path) == WANTED
    asked = [one.headers.get("range") for one in store.asked if "00002" in one.path and one.method == "GET"]
    assert asked[1] is not None
    assert asked[1].startswith("bytes=100000-")


@pytest.mark.parametrize("how", ["md5", "sha256", "sha1", "crc32", "parts"])
def test_what_is_not_what_its_sum_says_is_refused(store, tmp_path, how):
    if how == "parts":
        store.parts[SHARD] = 128_000
    elif how != "md5":
        store.sums[SHARD] = how
        store.scrambled.add(SHARD)
    assert files_of(get(store, tmp_path / "right").path) == WANTED
    body = store.objects[SHARD]
    store.wrong[SHARD] = body[:200_000] + bytes([body[200_000] ^ 1]) + body[200_001:]
    with pytest.raises(FetchFailed) as caught:
        get(store, tmp_path / "wrong")
    assert caught.value.failure.word == "BadCheckpoint"
    assert how in caught.value.failure.message


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (None, "model-00002-of-00003.safetensors has 200000 bytes, and 300078 were announced"),
        (250_000, "127.0.0.1 has less of model-00002-of-00003.safetensors than it announced"),
    ],
)
def test_a_file_that_becomes_shorter_while_it_is_fetched_is_refused(store, tmp_path, cut, said):
    def shorter(asked: Asked) -> Reply | None:
        if "00002" in asked.path and asked.method == "GET":
            store.wrong[SHARD] = store.objects[SHARD][:200_000]
        return None

    store.once += [shorter] if cut is None else [cut_once("00002", cut), shorter]
    with pytest.raises(FetchFailed) as caught:
        get(store, tmp_path)
    assert (caught.value.failure.word, caught.value.failure.message) == ("BadCheckpoint", said)
    assert "put the files there anew" in caught.value.failure.remedy


@pytest.mark.parametrize("first", ["HEAD", "GET"])
def test_an_object_that_is_replaced_while_it_is_fetched_is_no_mix_of_both(store, tmp_path, first):
    """By another of the same size, in a store that tells no sum of either."""
    store.scrambled.add(SHARD)

    def replaced(asked: Asked) -> Reply | None:
        if "00002" in asked.path and asked.method == first:
            store.objects[SHARD] = safetensors(300_000, 9)
        return None

    store.once += [cut_once("00002", 100_000), replaced]
    with pytest.raises(FetchFailed) as caught:
        get(store, tmp_path)
    said = "model-00002-of-00003.safetensors of s3://models/team/a model+1 changed while it was fetched"
    assert (caught.value.failure.word, caught.value.failure.message) == ("Download", said)
    found = get(store, tmp_path)
    assert (found.path / SHARD.rpartition("/")[2]).read_bytes() == safetensors(300_000, 9)


def test_what_is_asked_of_an_object_is_signed_with_its_etag(store, tmp_path):
    get(store, tmp_path)
    asked = [one.headers for one in store.asked if one.method == "GET" and not one.query]
    tags = {hashlib.md5(body).hexdigest() for body in store.objects.values()}
    assert all(one["if-match"].strip('"') in tags for one in asked)
    assert all(";if-match;" in one["authorization"] for one in asked)


@pytest.mark.parametrize("told", ["", 'W/"{}"'])
def test_an_etag_that_names_no_bytes_is_held_against_nobody(store, tmp_path, told):
    store.told_tag = told
    assert files_of(get(store, tmp_path).path) == WANTED
    assert not any("if-match" in one.headers for one in store.asked)


def test_an_etag_that_is_no_sum_is_not_taken_for_one(store, tmp_path):
    store.scrambled.add(SHARD)
    assert files_of(get(store, tmp_path).path) == WANTED


def test_a_bucket_says_which_region_it_is_in(store, tmp_path):
    assert files_of(get(store, tmp_path, AWS_REGION="us-east-1").path) == WANTED


def test_a_public_bucket_needs_no_keys(store, tmp_path):
    store.public = True
    assert files_of(get(store, tmp_path, AWS_ACCESS_KEY_ID="").path) == WANTED
    assert not any("authorization" in one.headers for one in store.asked)


def test_keys_lent_to_an_account_are_asked_for(store, tmp_path):
    (tmp_path / "token").write_text("a.b.c")

    def lend(asked: Asked) -> Reply | None:
        if asked.method != "POST":
            return None
        assert b"WebIdentityToken=a.b.c" in asked.body
        keys = f"<AccessKeyId>{ACCESS}</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey><SessionToken>t</SessionToken>"
        return Reply(200, f"<R xmlns='urn:x'><Credentials>{keys}</Credentials></R>".encode())

    store.once.append(lend)
    lent = {"AWS_ROLE_ARN": "arn:aws:iam::1:role/r", "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token")}
    found = get(store, tmp_path, None, AWS_ACCESS_KEY_ID="", AWS_ENDPOINT_URL_STS=store.url, **lent)
    assert files_of(found.path) == WANTED
    assert {one.headers.get("x-amz-security-token") for one in store.asked[1:]} == {"t"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"AWS_SECRET_ACCESS_KEY": "another"},
            "GatedModel: the store does not let these keys read s3://models/team/a model+1 (SignatureDoesNotMatch)",
        ),
        (
            {"AWS_ACCESS_KEY_ID": "AKIAOTHER"},
            "GatedModel: the store does not let these keys read s3://models/team/a model+1 (InvalidAccessKeyId)",
        ),
        (
            {"AWS_ACCESS_KEY_ID": ""},
            "GatedModel: the store does not let these keys read s3://models/team/a model+1 (AccessDenied)",
        ),
    ],
)
def test_what_a_store_refuses_is_told_in_words(store, tmp_path, given, told):
    with pytest.raises(FetchFailed) as caught:
        get(store, tmp_path, **given)
    assert f"{caught.value.failure.word}: {caught.value.failure.message}" == told


def test_a_store_that_knows_no_such_user_may_say_so_by_any_status(store, tmp_path):
    store.once.append(lambda asked: Reply(404, b"<Error><Code>XAdminUserNotFound</Code></Error>"))
    with pytest.raises(FetchFailed, match="XAdminUserNotFound") as caught:
        get(store, tmp_path)
    assert caught.value.failure.word == "GatedModel"


@pytest.mark.parametrize(
    ("source", "said"), [("s3://gone/x", "there is no bucket gone"), ("s3://models/gone", "holds nothing")]
)
def test_what_is_not_there_is_told(store, tmp_path, source, said):
    given = {
        "AWS_ENDPOINT_URL": store.url,
        "AWS_ACCESS_KEY_ID": ACCESS,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": REGION,
    }
    with pytest.raises(FetchFailed, match=said) as caught:
        fetch(source, None, tmp_path, Listener(), given, patience=QUICK)
    assert caught.value.failure.word == "ModelNotFound"


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("eu-west-1", "https://sts.eu-west-1.amazonaws.com"),
        ("cn-northwest-1", "https://sts.cn-northwest-1.amazonaws.com.cn"),
    ],
)
def test_where_keys_are_lent(store, tmp_path, monkeypatch, region, host):
    asked: list[str] = []

    def opened(_: Web, url: str, *__: object, **___: object) -> Answer:
        asked.append(url)
        raise Refused(403, {}, "", "sts")

    monkeypatch.setattr(Web, "open", opened)
    (tmp_path / "token").write_text("of the pod")
    lent = {
        "AWS_ROLE_ARN": "arn:aws-cn:iam::1:role/r",
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
    }
    with pytest.raises(FetchFailed, match="is not lent to this pod"):
        get(store, tmp_path / "into", None, AWS_ACCESS_KEY_ID="", AWS_REGION=region, **lent)
    assert asked == [host]


def _keys_told(keys: object) -> bytes:
    told = {"AssumeRoleWithWebIdentityResponse": {"AssumeRoleWithWebIdentityResult": {"Credentials": keys}}}
    return json.dumps(told).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"<html><p>a proxy",
        b"{}",
        b"[]",
        _keys_told(None),
        _keys_told({"AccessKeyId": 1, "SecretAccessKey": 2, "SessionToken": 3}),
    ],
)
def test_a_token_service_that_answers_without_keys_is_told(store, tmp_path, body):
    (tmp_path / "token").write_text("of the pod")
    given = {
        "AWS_ACCESS_KEY_ID": "",
        "AWS_ROLE_ARN": "arn:aws:iam::1:role/r",
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
        "AWS_ENDPOINT_URL_STS": store.url,
    }
    store.once += [lambda asked: Reply(200, body) if asked.method == "POST" else None] * 4
    with pytest.raises(FetchFailed, match="answers without keys") as caught:
        get(store, tmp_path / "into", **given)
    assert caught.value.failure.word == "Download"


def test_nobody_is_followed_elsewhere(store, tmp_path):
    store.once.append(lambda asked: Reply(307, b"", {"Location": "http://169.254.169.254/"}))
    with pytest.raises(FetchFailed) as caught:
        get(store, tmp_path)
    assert caught.value.failure.word == "Download"
    assert len(store.asked) == 1


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, "https://models.s3.us-east-1.amazonaws.com/a/b"),
        ({"AWS_DEFAULT_REGION": "eu-west-1"}, "https://models.s3.eu-west-1.amazonaws.com/a/b"),
        ({"AWS_REGION": "cn-north-1"}, "https://models.s3.cn-north-1.amazonaws.com.cn/a/b"),
        ({"AWS_ENDPOINT_URL": "http://minio:9000/"}, "http://minio:9000/models/a/b"),
        ({"AWS_ENDPOINT_URL": "http://x", "AWS_ENDPOINT_URL_S3": "http://y"}, "http://y/models/a/b"),
        (
            {"AWS_ENDPOINT_URL": "https://s.io", "RUNAI_STREAMER_S3_USE_VIRTUAL_ADDRESSING": "1"},
            "https://models.s.io/a/b",
        ),
    ],
)
def test_where_a_bucket_is(environment, url):
    assert Bucket("models/a", Web(environment))._url("a/b", "").geturl() == url


def test_headers_are_read_without_weights(store):
    given = {
        "AWS_ENDPOINT_URL": store.url,
        "AWS_ACCESS_KEY_ID": ACCESS,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": REGION,
    }
    model = remote(f"s3://models/{FOLDER}", None, given, QUICK)
    with model.open("config.json") as stream:
        assert json.load(stream)["num_hidden_layers"] == 1
    with model.open("model-00002-of-00003.safetensors") as stream:
        assert header("m", stream) == {"w": ("U8", (300_000,))}
