"""What a machine is against what a plan counts on, on drivers that tests make up."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from plimsoll_runtime import command
from plimsoll_runtime.exposition import exposition
from plimsoll_runtime.gpus import Devices, Gpu
from plimsoll_runtime.preflight import (
    GIB,
    LEAST_SHARED,
    Need,
    PlanUnreadable,
    Seen,
    host_memory,
    misfits,
    need_of,
    see,
    settled,
    with_argv,
)
from plimsoll_runtime.said import Said
from plimsoll_runtime.supervisor import Options, Supervisor

H100 = Gpu("NVIDIA H100 80GB HBM3", 80 * GIB, 79 * GIB, (9, 0))


@pytest.mark.parametrize(
    ("need", "seen", "word", "said"),
    [
        (
            Need(gpus=8),
            Seen(devices=Devices((H100,) * 4)),
            "TooFewGpus",
            "needs 8 GPUs, and this container sees 4",
        ),
        (Need(gpus=1), Seen(devices=Devices(())), "TooFewGpus", "sees 0"),
        (
            Need(gpus=8, product="A100"),
            Seen(devices=Devices((H100,) * 6, failed=("GPU 3 is lost", "GPU 5 too"))),
            "GpuFault",
            "GPU 3 is lost; GPU 5 too",
        ),
        (Need(gpus=3), Seen(devices=Devices((H100,), unknown=1)), "TooFewGpus", "sees 2"),
        (Need(gpus=2, product="A100"), Seen(devices=Devices((H100,), unknown=1)), "WrongGpu", "GPU 0"),
        (Need(product="A100"), Seen(devices=Devices((H100,))), "WrongGpu", "GPU 0 (NVIDIA H100"),
        (Need(product="H10"), Seen(devices=Devices((H100,))), "WrongGpu", "H10"),
        (Need(gpu_bytes=141 * GIB), Seen(devices=Devices((H100,))), "WrongGpu", "has 80.0 GiB"),
        (
            Need(capability=(10, 0)),
            Seen(devices=Devices((H100,))),
            "GpuTooOld",
            "9.0, and the plan needs 10.0",
        ),
        (
            Need(utilization=0.92),
            Seen(devices=Devices((H100._replace(free=60 * GIB),))),
            "GpuMemoryTaken",
            "only 60.0 of 80.0 GiB",
        ),
        (Need(shared_bytes=1 << 30), Seen(shared_bytes=64 << 20), "SharedMemory", "holds 64 MiB"),
        (Need(host_bytes=64 * GIB), Seen(host_bytes=16 * GIB), "HostMemoryTaken", "64.0 GiB of"),
        (Need(disks=(("/w", 9 * GIB),)), Seen(disks={"/w": GIB}), "DiskFull", "/w has 1.0 GiB free"),
        (
            Need(),
            Seen(unwritable={"/c": errno.EROFS}),
            "NotWritable",
            "/c cannot be written: Read-only",
        ),
        (Need(), Seen(unwritable={"/c": errno.ENOSPC}), "DiskFull", "/c cannot be written: No space left"),
    ],
)
def test_what_does_not_fit_is_said_with_both_figures(need, seen, word, said):
    failure = misfits(need, seen)[0]
    assert failure.word == word
    assert said in failure.message
    assert failure.remedy


@pytest.mark.parametrize(
    ("need", "seen"),
    [
        (Need(gpus=1, product="H100", utilization=0.92, gpu_bytes=80 * GIB), Seen(devices=Devices((H100,)))),
        (Need(gpus=2), Seen(devices=Devices((H100,) * 8))),
        # Not all that are here are needed, or nobody knows whether the engine takes the one that is known.
        (Need(gpus=2), Seen(devices=Devices((H100,) * 2, failed=("GPU 2 is lost",)))),
        (Need(gpus=2), Seen(devices=Devices((H100,), failed=("GPU 2 is lost",), unknown=1))),
        (Need(gpus=1, product="A100"), Seen(devices=Devices((H100,), unknown=1))),
        (Need(gpus=8, shared_bytes=1, host_bytes=1, disks=(("/w", 1),)), Seen()),
        # A driver keeps some memory for itself.
        (Need(gpu_bytes=80 * GIB, utilization=0.99), Seen(devices=Devices((H100._replace(total=79 * GIB, free=78 * GIB),)))),
    ],
)  # fmt: skip
def test_what_fits_or_cannot_be_seen_passes(need, seen):
    assert misfits(need, seen) == []


def test_memory_that_an_earlier_engine_still_holds_is_waited_for():
    looks = iter([Seen(devices=Devices((H100._replace(free=GIB),))), Seen(devices=Devices((H100,)))])
    _, found = settled(Need(utilization=0.9), lambda: next(looks), lambda: True)
    assert found == []


def test_but_not_for_ever():
    taken = Seen(devices=Devices((H100._replace(free=GIB),)))
    waits = iter([True, True, False])
    _, found = settled(Need(utilization=0.9), lambda: taken, lambda: next(waits))
    assert found[0].word == "GpuMemoryTaken"
    assert list(waits) == []


@pytest.mark.parametrize(
    ("argv", "gpus"),
    [
        ("vllm serve m", 1),
        ("vllm serve m --tensor-parallel-size 4 --pipeline-parallel-size=2", 8),
        ("vllm serve m -tp 8 --nnodes 2 --node-rank 1", 4),
        ("vllm serve m -dp 16 --data-parallel-size-local 8", 8),
        ("vllm serve m -dp 16 -dpl 8 --nnodes 2 --node-rank 1", 8),
        ("vllm serve m -dp 4 -tp 2 --data-parallel-rank 3", 2),
        ("vllm serve m -dp 2 -tp 16 --nnodes 4 --node-rank 1 --data-parallel-external-lb", 8),
        ("vllm serve m -dp 8 -tp 2 --nnodes 2 --node-rank 1 --data-parallel-external-lb", 2),
        ("vllm serve m -dp 8 -tp 2 --nnodes 2 --node-rank 1 --data_parallel_external_lb", 2),
        ("vllm serve m -dp 16 --data-parallel-backend ray", 1),
        ("vllm serve m -tp 16 --distributed-executor-backend ray", 1),
    ],
)
def test_how_many_gpus_a_pod_needs_is_read_from_the_engines_words(argv, gpus):
    assert with_argv(Need(), argv.split(), {}).gpus == gpus


def test_workers_that_share_need_shared_memory():
    assert with_argv(Need(), ["vllm", "serve", "m", "-tp", "2"], {}).shared_bytes
    assert with_argv(Need(), ["vllm", "serve", "m"], {}).shared_bytes is None


def test_an_engine_on_cpus_needs_no_gpu_but_a_cache_for_each_worker_and_what_they_share():
    need = with_argv(Need(), ["vllm", "serve", "m"], {"VLLM_CPU_KVCACHE_SPACE": "4"})
    assert need == Need(host_bytes=4 * GIB)
    need = with_argv(Need(), ["vllm", "serve", "m", "-tp", "2"], {"VLLM_CPU_KVCACHE_SPACE": "4"})
    assert need == Need(host_bytes=8 * GIB, shared_bytes=LEAST_SHARED)
    need = with_argv(Need(), ["vllm", "serve", "m", "-dp", "3"], {"VLLM_CPU_KVCACHE_SPACE": "4"})
    assert need == Need(host_bytes=12 * GIB, shared_bytes=LEAST_SHARED)


def test_the_plan_goes_before_what_words_suggest():
    assert with_argv(Need(gpus=2, utilization=0.5), ["vllm", "serve", "m", "-tp", "8"], {})[:4] == (
        2,
        None,
        None,
        0.5,
    )


def test_a_plan_is_read():
    need = need_of({
        "gpus": 8, "product": "H100", "gpuBytes": 5, "utilizationPermille": 920, "capability": "9.0",
        "sharedMemoryBytes": 6, "hostMemoryBytes": 7, "diskBytes": {"/b": 2, "/a": 1}, "writable": ["/c"], "newer": 1,
        "nvlink": True, "startSeconds": 9,
    })  # fmt: skip
    assert need == Need(8, "H100", 5, 0.92, (9, 0), 6, 7, (("/a", 1), ("/b", 2)), ("/c",), True, 9)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"gpus": "8"}, "gpus is '8'"),
        ({"gpus": True}, "gpus is True"),
        ({"nvlink": 1}, "nvlink is 1"),
        ({"capability": "nine"}, "capability is 'nine'"),
        ({"diskBytes": {"/cache": None}}, "diskBytes of /cache is None"),
    ],
)
def test_a_plan_that_cannot_be_read_names_the_field(body, said):
    with pytest.raises(PlanUnreadable, match=said):
        need_of(body)


def test_this_machine_is_seen(tmp_path: Path):
    folder = tmp_path / "kept" / "here"
    seen = see(Need(disks=((str(tmp_path / "x"), 1),), writable=(str(folder),)), None)
    assert folder.is_dir()
    assert seen.unwritable == {}
    assert seen.disks[str(tmp_path / "x")] > 0


def test_a_folder_that_is_a_file_cannot_be_written(tmp_path: Path):
    (tmp_path / "file").touch()
    assert list(see(Need(writable=(str(tmp_path / "file"),)), None).unwritable) == [str(tmp_path / "file")]


def test_a_container_without_any_folder_for_temporary_files_says_so(monkeypatch):
    def none_is_writable() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp', '/var/tmp']")

    monkeypatch.setattr("tempfile.gettempdir", none_is_writable)
    monkeypatch.setattr("plimsoll_runtime.preflight.TEMPORARY", "/proc/nowhere")
    failure = misfits(Need(), see(Need(), None))[0]
    assert failure.word == "NotWritable"
    assert failure.message.startswith("/proc/nowhere cannot be written: ")


def test_the_least_limit_on_memory_counts(tmp_path: Path):
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("4096\n")
    assert host_memory(tmp_path) == 4096
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("max\n")
    assert (host_memory(tmp_path) or 0) > 4096


@pytest.mark.parametrize("in_a_file", [False, True])
def test_a_machine_that_does_not_fit_starts_no_engine(supervised, tmp_path: Path, in_a_file):
    said = f'{{"hostMemoryBytes": {1 << 60}}}'
    file = tmp_path / "plan.json"
    file.write_text(said)
    supervised.engine("--say=I was started", own=("--plan", str(file) if in_a_file else said))
    assert supervised.end() == 1
    assert supervised.failure()["word"] == "HostMemoryTaken"
    assert "I was started" not in supervised.said()


@pytest.mark.parametrize(
    ("said", "why"),
    [("{", "line 1 column 2"), ("/no/such/file", "No such file"), ("plan.json", "must be a JSON object")],
)
def test_a_plan_that_is_none_is_an_error_of_the_command_line(supervised, tmp_path: Path, said, why):
    (tmp_path / "plan.json").write_text("[]")
    said = str(tmp_path / said) if said == "plan.json" else said
    supervised.engine(own=("--plan", said))
    assert supervised.end() == 2
    assert supervised.failure()["word"] == "BadSetting"
    assert supervised.failure()["message"].startswith(f"--plan {said}: ")
    assert why in supervised.failure()["message"]


def test_links_that_are_missing_are_told_in_the_log_the_facts_and_the_metrics(monkeypatch, capfd):
    monkeypatch.setattr(command, "devices", lambda environment: Devices((H100, H100), nvlink=False))
    options = Options(("vllm", "serve", "m", "-tp", "2"), {})
    said = Said(options.argv, 0.0)
    assert command._look(Need(gpus=2, nvlink=True), {}, said, Supervisor(options, said)) == []
    facts = said.facts(1.0)
    assert "NoNvlink" in str(facts["warnings"])
    assert facts["failure"] is None
    assert 'plimsoll_runtime_warning{word="NoNvlink"} 1' in exposition(facts)
    assert "NoNvlink: the plan counts on NVLink" in capfd.readouterr().err


def test_a_look_that_fails_itself_ends_no_start(tmp_path: Path, monkeypatch, capfd):
    def broken(environment) -> Devices:
        raise RuntimeError("a driver's library of another kind")

    monkeypatch.setattr(command, "devices", broken)
    options = Options((sys.executable, "-c", "print('I was started')"), {}, message=tmp_path / "why")
    said = Said(options.argv, 0.0)
    assert command._look(Need(gpus=1), {}, said, Supervisor(options, said)) == []
    assert (
        "the look at this machine ended in an error that nobody foresaw (RuntimeError)"
        in capfd.readouterr().err
    )
