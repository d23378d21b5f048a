"""The Dockerfiles of engines and of the operator are what the check asks for, and the check sees what it has to."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from cluster.images import TOOLS, VLLM_CPU, VLLM_CPU_VERSION
from cluster.images.recipes import DEBIAN, SUITE
from images.check import REFUSAL, instructions, main, problems
from operator_image import recipe
from plimsoll.facts.engines import engine_facts
from plimsoll.render.environment import _WRITABLE
from plimsoll.render.start import RUNTIME_PORT, SUPERVISOR

IMAGES = Path(__file__).parents[2] / "runtime" / "images"
GPUS = ("cuda", "rocm")
BUNDLED = (*GPUS, "cpu-supervised")
ON_DEBIAN = ("cpu", "operator")
DIGEST = f"@sha256:{64 * '0'}"
GOOD = f'ARG BASE=a/b:1{DIGEST}\nFROM ${{BASE}}\nUSER 1000:0\nENTRYPOINT ["x"]\n'


def text_of(name: str) -> str:
    return (IMAGES / name / "Dockerfile").read_text()


def environment_of(name: str) -> dict[str, str]:
    (environment,) = (one.rest for one in instructions(text_of(name)) if one.word == "ENV")
    return dict(word.split("=", 1) for word in environment.split())


def test_all_of_them_are_in_order(capsys):
    assert main() == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ((DIGEST, ""), "name the base by digest, found a/b:1"),
        ((f"a/b:1{DIGEST}", "a/b:latest"), "name the base by digest, found a/b:latest"),
        ((DIGEST, "@sha256:..."), "name the base by digest, found a/b:1@sha256:..."),
        ((f"=a/b:1{DIGEST}", ""), "name the base by digest, found nothing"),
        (("${BASE}", "${OTHER}"), "found nothing"),
        (("USER 1000:0", "USER root"), "by number; found root"),
        (("USER 1000:0", "USER 0:0"), "by number; found 0:0"),
        (("USER 1000:0\n", ""), "found none"),
        (("USER", "RUN curl -sSf host/x.sh | sh\nUSER"), "line 3: RUN: what comes from the network"),
        (("USER", "RUN wget -qO- host/x \\\n | bash\nUSER"), "line 3: RUN: what comes from the network"),
        (("USER", "ENV HF_TOKEN=hf_1\nUSER"), "a secret stays in the layer"),
        (("USER", "ADD https://host/x /x\nUSER"), "ADD: use COPY"),
        (("USER", "RUN python3 -m pip install -r a.txt\nUSER"), "without --require-hashes"),
        (
            ("USER", "RUN apt-get update && apt-get install -y x\nUSER"),
            "install without --no-install-recommends",
        ),
        (
            ("USER", "RUN apt-get update && apt-get install -y x\nUSER"),
            "install without rm -rf /var/lib/apt/lists/*",
        ),
        (("USER", "RUN apt-get install -y x\nUSER"), "install without apt-get update"),
        (("USER", "RUN pip config set global.x https://host\nUSER"), "an address of a package host"),
        (('["x"]', "x serve"), "a list of words"),
    ],
)
def test_what_is_wrong_is_named(change, why):
    assert problems(GOOD) == []
    assert change[0] in GOOD
    assert any(why in one for one in problems(GOOD.replace(*change))), problems(GOOD.replace(*change))


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_image_starts_the_supervisor_first_where_pods_look_for_it_and_says_what_it_is(name):
    found = list(instructions(text_of(name)))
    assert json.loads(found[-1].rest) == [*SUPERVISOR, "serve", "--", "vllm", "serve"]
    assert found[-2].rest == f"8000 {RUNTIME_PORT}"
    labels = next(one.rest for one in found if one.word == "LABEL")
    assert {"title", "description", "version", "licenses"} <= set(re.findall(r"image\.(\w+)=", labels))


def test_the_bundled_image_for_cpus_is_of_the_version_below_it_and_lets_its_supervisor_fetch():
    assert f'version="{VLLM_CPU_VERSION}"' in text_of("cpu-supervised")
    assert environment_of("cpu")["HF_HUB_OFFLINE"] == "1"
    assert environment_of("cpu-supervised") == {"HF_HUB_OFFLINE": "0"}


@pytest.mark.parametrize("name", GPUS)
def test_an_image_for_gpus_writes_only_below_its_folders(name):
    values = environment_of(name)
    assert set(_WRITABLE) <= set(values)
    folders = {values[key] for key in _WRITABLE if key not in ("USER", "LOGNAME")}
    assert all(folder == "/tmp" or folder.startswith("/tmp/") for folder in folders)


def test_a_cuda_image_without_a_compiler_of_kernels_lets_the_engine_take_no_sampler_that_needs_one():
    installed = " ".join(one.rest for one in instructions(text_of("cuda")) if one.word in ("ARG", "RUN"))
    if not re.search(r"-devel-|cuda-nvcc", installed):
        assert environment_of("cuda").get("VLLM_USE_FLASHINFER_SAMPLER") == "0"


def test_the_images_for_gpus_run_alike():
    """No Dockerfile can take lines from another; only where an engine's own programs lie, and what CUDA alone has, is each one's own."""
    words = ("ENV", "USER", "EXPOSE", "ENTRYPOINT")
    ends = [[one.rest for one in instructions(text_of(name)) if one.word in words] for name in GPUS]
    cuda, rocm = (
        [re.sub(r"^PATH=\S+\s+|\s+VLLM_USE_FLASHINFER_SAMPLER=\S+", "", rest) for rest in end] for end in ends
    )
    assert cuda == [rest for rest in rocm if rest != "0:0"]


@pytest.mark.parametrize("name", GPUS)
def test_what_is_installed_is_locked_by_hash_and_names_no_package_host(name):
    text = (IMAGES / name / "requirements.txt").read_text()
    assert "://" not in text
    entries = re.split(r"\n(?=\S)", "\n".join(line for line in text.splitlines() if not line.startswith("#")))
    assert all("==" in one and "--hash=sha256:" in one for one in entries), [one[:60] for one in entries]
    assert any(one.startswith("ray==") for one in entries)


def test_the_cuda_image_has_the_newest_release_that_the_planner_knows():
    version = engine_facts("vllm").version
    assert f"vllm=={version} " in (IMAGES / "cuda" / "requirements.txt").read_text()
    assert f'version="{version}"' in text_of("cuda")
    assert f":v{version}@sha256:" in text_of("rocm")


@pytest.mark.parametrize(
    ("base", "built"), [(f"a/b:1{DIGEST}", True), (f"a/b{DIGEST}", True), ("a/b:1", False), ("", False)]
)
def test_a_base_that_has_to_be_handed_in_is_refused_without_a_digest(base, built):
    """By the step itself, which is the first that a build runs."""
    step = next(one for one in instructions(text_of("rocm")) if one.word == "RUN")
    assert step.rest.startswith(REFUSAL)
    ran = subprocess.run(
        ["sh", "-c", step.rest], env={"BASE": base}, capture_output=True, text=True, check=False
    )
    assert (ran.returncode == 0) is built
    assert built or f"name BASE by digest, not '{base}'" in ran.stderr


@pytest.mark.parametrize("name", ON_DEBIAN)
def test_an_image_over_a_debian_is_built_in_tests_from_no_more_than_its_own_base_has(name):
    """Where the base of the tests had Python, a Dockerfile that installed none was built there, and nowhere else."""
    found = list(instructions(text_of(name)))
    (base,) = (one.rest for one in found if one.word == "ARG" and one.rest.startswith("BASE="))
    assert base.startswith(f"BASE=docker.io/library/debian:{SUITE}-")
    installs = [one.rest.split() for one in found if one.word == "RUN" and "apt-get install" in one.rest]
    assert len(installs) == sum(one.word == "FROM" for one in found)
    assert all(set(DEBIAN.packages) <= set(words) for words in installs), "what the tests' base has beside it"


def test_the_image_of_tools_takes_its_base_from_whoever_builds_it():
    """No name of a registry is held to a digest there, so none is a default."""
    found = list(instructions((TOOLS.folder / "Dockerfile").read_text()))
    assert [one.rest for one in found if one.word in ("ARG", "FROM")] == ["BASE", "${BASE}"]


def test_the_base_of_the_bundled_image_for_cpus_is_the_one_that_the_command_before_it_makes():
    """A default that nothing makes would be looked for in a registry, where nobody has put it."""
    (base,) = (
        one.rest.removeprefix("BASE=") for one in instructions(text_of("cpu-supervised")) if one.word == "ARG"
    )
    made = f"docker build -t {base} runtime/images/cpu"
    assert made in (IMAGES.parents[1] / "docs" / "runtime.md").read_text().splitlines()
    assert f"({made})" in text_of("cpu-supervised")


def test_the_recipes_of_images_over_a_debian_name_that_base(tmp_path):
    assert VLLM_CPU.base == recipe(tmp_path).base == DEBIAN
    assert DEBIAN.packages == ("ca-certificates",)
