# ruff: noqa: ARG003, PLC0415, SLF001, TID251 - it runs in an environment of its own, which it must prepare before it imports
# mypy: ignore-errors
"""vLLM's Python on a machine without a GPU that takes itself for one with a GPU: its CUDA platform, told which device it has.

Kernels that no wheel without its compiled parts brings are stood in for by names, since shapes do not ask them; groups of ranks are
as one of them sees them, without anybody at the other end.
"""

import importlib.machinery
import os
import re
import sys
import types

GPU = {"compute": (9, 0), "name": "NVIDIA H100 80GB HBM3", "bytes": 85 << 30}
"""The device that the platform speaks of; each case sets its own."""
COMPILED = re.compile(r"\.(_\w+)?_C(_stable_libtorch)?$|\.cumem_allocator$")
OTHERS = re.compile(
    r"(vllm\.third_party\.(flashmla|flash_linear_attention)|torchvision|deep_gemm|tilelang|cutlass)(\.|$)"
)
OPERATORS = re.compile(r"_\w*C(_|::|$)")
GROUPS = ("_WORLD", "_INNER_DP_WORLD", "_TP", "_ETP", "_DCP", "_PP", "_DP", "_EP", "_EPLB", "_PCP")


class Kernel:
    """Stands for a compiled function that nobody calls."""

    def __init__(self, name):
        self.__name__ = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Kernel(name)

    def __or__(self, _other):
        return self

    __ror__ = __or__

    def __call__(self, *_args, **_kwargs):
        if "support" in self.__name__:  # asked what the device can: a whole wheel's kernels can
            return True
        return self  # a decorator, or what shapes do not depend on


class Compiled:
    """Finds compiled modules of vLLM, and what it brings of others, where nothing else does; whatever is asked of them is a kernel."""

    def find_spec(self, name, _path=None, _target=None):
        if OTHERS.match(name) or (name.startswith("vllm.") and COMPILED.search(name)):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, _spec):
        return None

    def exec_module(self, module):
        def named(name):
            if name.startswith("__"):
                raise AttributeError(name)
            return Kernel(name)

        module.__getattr__ = named


class Launch:
    """How a kernel of Triton would be launched: modules sort such sets as they are imported, also where there is no Triton."""

    def __init__(self, kwargs=None, **told):
        self.kwargs = kwargs or {}
        self.num_warps, self.num_stages = told.get("num_warps", 4), told.get("num_stages", 2)


class Idle:
    """A stream or an event on which nothing is run."""

    def __init__(self, *_args, **_kwargs):
        pass


class Group:
    """What a process group is asked for while a model is built."""

    def __init__(self, size, place):
        self._size, self._place = size, place

    def size(self):
        return self._size

    def rank(self):
        return self._place


def without_kernels():
    """Compiled modules import as empty ones, and operators that they would register are names."""
    import torch
    from transformers.utils import is_torchvision_available

    is_torchvision_available()  # it remembers that there is none
    sys.meta_path.append(Compiled())
    nvml = types.ModuleType("vllm.third_party.pynvml")

    class NVMLError(Exception):
        pass

    def absent(*_):
        raise NVMLError("no device")

    nvml.NVMLError, nvml.nvmlInit, nvml.nvmlShutdown = NVMLError, absent, absent
    import vllm.third_party

    sys.modules["vllm.third_party.pynvml"] = vllm.third_party.pynvml = nvml
    genuine = torch._ops._OpNamespace.__getattr__

    def named(self, name):
        try:
            return genuine(self, name)
        except AttributeError:
            if OPERATORS.match(self.name):
                return Kernel(name)
            raise

    torch._ops._OpNamespace.__getattr__ = named
    registered = torch.library.register_fake

    def register_fake(op, func=None, /, **kwargs):
        if isinstance(op, str) and OPERATORS.match(op):
            return func or (lambda function: function)
        return registered(op, func, **kwargs)

    torch.library.register_fake = register_fake


def prepare(folder):
    os.environ.update(
        CUDA_VISIBLE_DEVICES="",
        VLLM_PLUGINS="",
        VLLM_NO_USAGE_STATS="1",
        VLLM_LOGGING_LEVEL=os.environ.get("VLLM_LOGGING_LEVEL", "ERROR"),
        HF_HUB_OFFLINE="1",
        TRANSFORMERS_OFFLINE="1",
        VLLM_WORKER_MULTIPROC_METHOD="spawn",
    )
    sys.path.insert(0, folder)
    without_kernels()
    import vllm.platforms
    from vllm.platforms.cuda import NonNvmlCudaPlatform
    from vllm.platforms.interface import DeviceCapability

    class Told(NonNvmlCudaPlatform):
        @classmethod
        def get_device_capability(cls, device_id=0):
            return DeviceCapability(*GPU["compute"])

        @classmethod
        def has_device_capability(cls, capability, device_id=0):
            asked = capability if isinstance(capability, tuple) else divmod(capability, 10)
            return tuple(GPU["compute"]) >= tuple(asked)

        @classmethod
        def get_device_name(cls, device_id=0):
            return GPU["name"]

        @classmethod
        def get_device_total_memory(cls, device_id=0):
            return GPU["bytes"]

        @classmethod
        def is_fully_connected(cls, physical_device_ids):
            return True

        @classmethod
        def device_count(cls):
            return 64

        @classmethod
        def num_compute_units(cls, device_id=0):
            return 132

        @classmethod
        def current_device(cls):
            return "meta"

        @classmethod
        def import_kernels(cls):
            pass

        @classmethod
        def is_integrated_gpu(cls, device_id=0):
            return False

    vllm.platforms._current_platform = Told()
    import torch

    torch.cuda.get_device_capability = lambda *_: tuple(GPU["compute"])
    torch.cuda.is_available = lambda: False
    torch.cuda.Stream = torch.cuda.Event = Idle
    from vllm.triton_utils import HAS_TRITON, triton

    if not HAS_TRITON:
        triton.Config = Launch


def classes_here():
    """Questions about a model's class are asked in this process: another would lack what was prepared."""
    from vllm.model_executor.models import registry

    def here(function):
        return function()

    registry._run_in_subprocess = here


class Ranks:
    """Groups of ranks as rank 0 of one stage sees them."""

    def __init__(self, tensor, pipeline, stage):
        from vllm.distributed import parallel_state

        self.state = parallel_state
        self.sizes = dict.fromkeys(GROUPS, 1)
        self.sizes |= {
            "_TP": tensor,
            "_PP": pipeline,
            "_WORLD": tensor * pipeline,
            "_EP": tensor,
            "_EPLB": tensor,
        }
        self.sizes["_ETP"] = tensor
        self.stage = stage

    def group(self, name):
        import torch

        own = self.state.GroupCoordinator.__new__(self.state.GroupCoordinator)
        size, place = self.sizes[name], self.stage if name == "_PP" else 0
        own.unique_name, own.world_size, own.rank_in_group, own.rank = name, size, place, place
        own.ranks, own.local_rank, own.device_index = list(range(size)), 0, 0
        own.cpu_group = own.device_group = Group(size, place)
        own.device_communicator = own.mq_broadcaster = None
        own.use_device_communicator, own.use_custom_op_call = False, False
        own.device = torch.device("meta")
        return own

    def __enter__(self):
        for name in GROUPS:
            if hasattr(self.state, name):
                setattr(self.state, name, self.group(name))

    def __exit__(self, *_):
        for name in GROUPS:
            if hasattr(self.state, name):
                setattr(self.state, name, None)
