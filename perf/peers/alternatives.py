"""The other libraries: for each a function that prepares its calls for one case.

An alternative may have several variants (forms, backends, launch configurations); the fastest counts. A variant's
call returns the outputs by name. What a library can't do is raised as Missing, with the reason that the table shows.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
import types
from dataclasses import dataclass
from typing import Any, Callable, Iterator

from peers.tensors import Case


class Missing(Exception):
    """Why an alternative has no time for a workload."""


@dataclass(frozen=True)
class Variant:
    name: str
    call: Callable[[], dict[str, Any]]


Builder = Callable[[Case], Iterator[Variant]]

NO_KERNEL = "library has no kernel for this operation"


def outputs_of(case: Case, result: Any) -> dict[str, Any]:
    """A library returns y alone, or y and the residual sum (and perhaps more)."""
    if not isinstance(result, (tuple, list)):
        result = (result,)
    return dict(zip(case.workload.outputs, result))


def named(case: Case, name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Variant:
    return Variant(name, lambda: outputs_of(case, function(*arguments, **options)))


def is_layer_norm(case: Case) -> bool:
    return case.workload.is_layer_norm


def without_conditioning(build: Builder) -> Builder:
    """For a library that has no kernel with scale, shift and gate."""
    def built(case: Case) -> Iterator[Variant]:
        if case.workload.is_adaptive:
            raise Missing(NO_KERNEL)
        yield from build(case)

    return built


def bare_package(name: str) -> None:
    """Makes modules of a package importable without what its own __init__ imports, which normalisations don't need."""
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is None or spec.submodule_search_locations is None:
        raise Missing(f"not installed: {name}")
    package = types.ModuleType(name)
    package.__path__ = list(spec.submodule_search_locations)
    package.__spec__ = spec
    sys.modules[name] = package


def module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Missing(f"not installed: {error}") from error


# ---- torch -------------------------------------------------------------------------------------------------------


# A form is a function of x, residual, weight, bias, scale, shift and gate, each but x None where it is absent.


def conditioned(y: Any, scale: Any, shift: Any, gate: Any) -> Any:
    if scale is not None:
        y = y * (1 + scale)
    if shift is not None:
        y = y + shift
    return y if gate is None else gate * y


def functional_form(case: Case) -> Callable[..., Any]:
    """What a user of torch writes with torch.nn.functional."""
    functional, n, eps, layer_norm = case.torch.nn.functional, (case.workload.n,), case.eps, is_layer_norm(case)

    def form(x: Any, residual: Any, weight: Any, bias: Any, *conditioning: Any) -> Any:
        total = x if residual is None else x + residual
        if layer_norm:
            y = functional.layer_norm(total, n, weight, bias, eps)
        else:
            y = functional.rms_norm(total, n, weight, eps)
        y = conditioned(y, *conditioning)
        return y if residual is None else (y, total)

    return form


def plain_form(case: Case) -> Callable[..., Any]:
    """The formula written out in f32."""
    torch, eps, layer_norm = case.torch, case.eps, is_layer_norm(case)

    def form(x: Any, residual: Any, *parameters: Any) -> Any:
        weight, bias, *conditioning = (None if one is None else one.float() for one in parameters)
        total = x.float() if residual is None else x.float() + residual.float()
        values = total - total.mean(-1, keepdim=True) if layer_norm else total
        y = values * torch.rsqrt(values.square().mean(-1, keepdim=True) + eps)
        if weight is not None:
            y = y * weight
        if bias is not None:
            y = y + bias
        y = conditioned(y, *conditioning).to(x.dtype)
        return y if residual is None else (y, total.to(x.dtype))

    return form


def torch_arguments(case: Case) -> list[Any]:
    """Where rows of x share one of conditioning, x is [B, T, n] and conditioning [B, 1, n]."""
    x, conditioning, shared = case.x, case.conditioning, case.workload.rows_per_cond
    if shared > 1:
        x = x.unflatten(0, (-1, shared))
        conditioning = [None if one is None else one.unsqueeze(1) for one in conditioning]
    return [x, case.residual, case.weight, case.bias, *conditioning]


def torch_eager(case: Case) -> Iterator[Variant]:
    yield named(case, "functional", functional_form(case), *torch_arguments(case))


def compiled(mode: str | None) -> Builder:
    def build(case: Case) -> Iterator[Variant]:
        for name, form in (("functional", functional_form), ("plain formula", plain_form)):
            function = case.torch.compile(form(case), dynamic=False, fullgraph=True, mode=mode)
            yield named(case, name, function, *torch_arguments(case))

    return build


# ---- quack -------------------------------------------------------------------------------------------------------


def f32_parameters(case: Case) -> list[Any]:
    """Weight and bias in f32, for kernels that take no others."""
    return [case.weight_or_ones().float(), None if case.bias is None else case.bias.float()]


def quack(case: Case) -> Iterator[Variant]:
    kernels = module("quack.rmsnorm")
    if not is_layer_norm(case):
        options = {} if case.residual is None else {"residual": case.residual, "prenorm": True}
        yield named(case, "", kernels.rmsnorm, case.x, case.weight, eps=case.eps, **options)
    elif case.residual is None:
        yield named(case, "", kernels.layernorm_fwd, case.x, *f32_parameters(case), eps=case.eps)
    else:
        yield quack_launch(case, "own heuristic", None)


def quack_launch(case: Case, name: str, config: Any) -> Variant:
    """One of the library's launch configurations (None: what its heuristic says), with outputs made beforehand."""
    kernels, types_of = module("quack.rmsnorm"), module("quack.cute_dsl_utils").torch2cute_dtype_map
    weight, bias = f32_parameters(case) if is_layer_norm(case) else (case.weight, None)
    out = case.output("y")
    residual_out = None if case.residual is None else case.output("residual_out")
    x_type, out_type, residual_type, weight_type, bias_type, residual_out_type = (
        None if tensor is None else types_of[tensor.dtype]
        for tensor in (case.x, out, case.residual, weight, bias, residual_out))
    launch = kernels._compile_rmsnorm_fwd(x_type, out_type, residual_type, weight_type, bias_type, residual_out_type,
                                          case.workload.n, False, False, is_layer_norm(case), False, 0.0,
                                          config=config)

    def call() -> dict[str, Any]:
        launch(case.x, weight, bias, case.residual, out, residual_out, None, None, case.eps)
        return outputs_of(case, (out, residual_out))

    return Variant(name, call)


def plausible(config: Any, n: int) -> bool:
    """Leaves out configurations that give a thread less than a vector or more than registers hold."""
    held = n / (config.threads_per_row * config.cluster_n)
    if held < 8 or held > 128:
        return False
    return config.reload_from is None or held >= 32


def quack_tuned(case: Case) -> Iterator[Variant]:
    """Its own search space (cluster sizes too), less what is implausible for the row."""
    configs = [config for config in module("quack.rmsnorm_config").get_all_fwd_configs()
               if plausible(config, case.workload.n)]
    if not configs:
        raise Missing("no launch configuration of its search space fits the row")
    failure: Exception | None = None
    built = 0
    for config in configs:
        name = (f"{config.num_threads} threads, {config.threads_per_row} a row, cluster {config.cluster_n}, "
                f"reload {config.reload_from}")
        try:
            variant = quack_launch(case, name, config)
        except Exception as error:  # a configuration that doesn't compile is no candidate
            failure = error
            continue
        built += 1
        yield variant
    if not built and failure is not None:
        raise failure


# ---- flashinfer --------------------------------------------------------------------------------------------------


def flashinfer(case: Case) -> Iterator[Variant]:
    """Its CuTe and its CUDA kernels, without programmatic dependent launch."""
    if is_layer_norm(case) and case.residual is not None:
        raise Missing(NO_KERNEL)
    bare_package("flashinfer")
    norm = module("flashinfer.norm")
    failures: list[Exception] = []
    for name in ("CuTe", "CUDA"):
        try:
            yield flashinfer_backend(case, norm, name)
        except Exception as error:  # the other backend may work
            failures.append(error)
    if len(failures) == 2:
        raise failures[0]


def flashinfer_backend(case: Case, norm: Any, name: str) -> Variant:
    if name == "CUDA":
        built = norm.get_norm_module()
        rms_norm, fused_add, layer_norm = built.rmsnorm, built.fused_add_rmsnorm, built.layernorm
    else:
        kernels = module("flashinfer.norm.kernels")
        layer_norm = kernels.layernorm_cute

        def rms_norm(out: Any, x: Any, weight: Any, eps: float, pdl: bool) -> None:
            kernels.rmsnorm_cute(x, weight, out, eps, weight_bias=0.0, enable_pdl=pdl)

        def fused_add(x: Any, residual: Any, weight: Any, eps: float, pdl: bool) -> None:
            kernels.fused_add_rmsnorm_cute(x, residual, weight, eps, weight_bias=0.0, enable_pdl=pdl)

    if is_layer_norm(case):
        weight, bias = f32_parameters(case)
        bias = case.torch.zeros_like(weight) if bias is None else bias
        return writes(case, name, layer_norm, case.output("y"), case.x, weight, bias, case.eps)
    weight = case.weight_or_ones()
    if case.residual is None:
        return writes(case, name, rms_norm, case.output("y"), case.x, weight, case.eps, False)
    return in_place(case, name, fused_add, weight, case.eps, False)


def writes(case: Case, name: str, function: Callable[..., Any], *arguments: Any) -> Variant:
    """A function that writes y."""
    def call() -> dict[str, Any]:
        function(*arguments)
        return {"y": case.output("y")}

    return Variant(name, call)


def in_place(case: Case, name: str, function: Callable[..., Any], *arguments: Any) -> Variant:
    """A function that takes x and the residual first, and overwrites them with y and the sum."""
    x, residual = case.scratch("x"), case.scratch("residual")

    def call() -> dict[str, Any]:
        function(x, residual, *arguments)
        return {"y": x, "residual_out": residual}

    return Variant(name, call)


# ---- Triton libraries --------------------------------------------------------------------------------------------


def flaggems(case: Case) -> Iterator[Variant]:
    gems, n = module("flag_gems"), [case.workload.n]
    if is_layer_norm(case):
        if case.residual is not None:
            raise Missing("its skip_layer_norm does not return the sum x + residual: not the same function")
        yield named(case, "", gems.layer_norm, case.x, n, case.weight, case.bias, case.eps)
    elif case.residual is None:
        yield named(case, "", gems.rms_norm, case.x, n, case.weight_or_ones(), case.eps)
    else:
        yield in_place(case, "", gems.fused_add_rms_norm, n, case.weight_or_ones(), case.eps)


def liger(case: Case) -> Iterator[Variant]:
    if is_layer_norm(case):
        if case.residual is not None:
            raise Missing(NO_KERNEL)
        weight = case.weight_or_ones()
        bias = case.torch.zeros_like(weight) if case.bias is None else case.bias
        function = module("liger_kernel.ops.layer_norm").LigerLayerNormFunction.apply
        yield named(case, "", function, case.x, weight, bias, case.eps)
    elif case.residual is None:
        function = module("liger_kernel.ops.rms_norm").LigerRMSNormFunction.apply
        yield named(case, "", function, case.x, case.weight, case.eps)
    else:
        function = module("liger_kernel.ops.fused_add_rms_norm").LigerFusedAddRMSNormFunction.apply
        yield named(case, "", function, case.x, case.residual, case.weight_or_ones(), case.eps)


def flash_attn(case: Case) -> Iterator[Variant]:
    if case.workload.n * case.x.element_size() > 65536:
        raise Missing("library limit of 64 KB a row")
    bare_package("flash_attn")
    kernels = module("flash_attn.ops.triton.layer_norm")
    function = kernels.layer_norm_fn if is_layer_norm(case) else kernels.rms_norm_fn
    options = {} if case.residual is None else {"residual": case.residual, "prenorm": True}
    yield named(case, "", function, case.x, case.weight_or_ones(), case.bias, eps=case.eps, **options)


def vllm(case: Case) -> Iterator[Variant]:
    if is_layer_norm(case):
        raise Missing(NO_KERNEL)
    ops, weight = module("vllm._custom_ops"), case.weight_or_ones()
    if case.residual is None:
        yield writes(case, "", ops.rms_norm, case.output("y"), case.x, weight, case.eps)
    else:
        yield in_place(case, "", ops.fused_add_rms_norm, weight, case.eps)


ALTERNATIVES: dict[str, Builder] = {
    "torch": torch_eager,
    "torch-compile": compiled(None),
    "torch-compile-max-autotune": compiled("max-autotune-no-cudagraphs"),
    "quack": without_conditioning(quack),
    "quack-tuned": without_conditioning(quack_tuned),
    "flashinfer": without_conditioning(flashinfer),
    "flaggems": without_conditioning(flaggems),
    "liger": without_conditioning(liger),
    "flash-attn": without_conditioning(flash_attn),
    "vllm": without_conditioning(vllm),
}

PACKAGES = ("torch", "triton", "nvidia-cutlass-dsl", "quack-kernels", "flashinfer-python", "flag_gems", "liger-kernel",
            "flash-attn", "vllm", "apache-tvm-ffi", "numpy")


def versions(torch: Any) -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return {**found, "torch": torch.__version__, "cuda": torch.version.cuda or "",
            "cudnn": str(torch.backends.cudnn.version())}
