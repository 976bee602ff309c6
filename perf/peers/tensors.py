"""The tensors of a workload, and the float64 reference that every output is compared with."""

from __future__ import annotations

from typing import Any

from peers.workloads import CONDITIONING, Workload

# Mantissa bits and smallest exponent of the types.
FORMATS = {"f16": (10, -14), "bf16": (7, -126), "f32": (23, -126)}
CHECKED_ELEMENTS = 1 << 21
# An output is wrong when it is further from the reference than so many units in the last place (of 1 where the number
# is smaller: a sum or mean that was rounded early cancels there). Three roundings to 16 bits, which some libraries
# make, stay below. In f32 it is the order of summing that counts.
LIMIT_ULP, LIMIT_ABSOLUTE = 4.0, 1e-5


def dtype_of(torch: Any, name: str) -> Any:
    return {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[name]


class Case:
    """The tensors that all alternatives of one workload share, as vectors of n and matrices of rows x n."""

    def __init__(self, torch: Any, workload: Workload, device: str = "cuda") -> None:
        self.torch, self.workload, self.device = torch, workload, device
        self.eps = workload.eps
        generator = torch.Generator(device=device)
        generator.manual_seed(workload.rows * 1_000_003 + workload.n)
        self.inputs: dict[str, Any] = {}
        for name, shape in workload.shapes.items():
            size = shape if name in ("weight", "bias") else (-1, workload.n)
            tensor = torch.empty(shape, dtype=dtype_of(torch, workload.dtypes[name]), device=device).reshape(size)
            tensor.normal_(generator=generator)
            if name == "weight":
                tensor.mul_(0.25).add_(1)
            self.inputs[name] = tensor
        self.x = self.inputs["x"]
        self.residual, self.weight, self.bias = (self.inputs.get(name) for name in ("residual", "weight", "bias"))
        self.conditioning = [self.inputs.get(name) for name in CONDITIONING]
        self._outputs: dict[str, Any] = {}
        self._scratch: dict[str, Any] = {}
        self._ones: Any = None
        self._expected: dict[str, Any] | None = None

    def weight_or_ones(self) -> Any:
        """For libraries that can't do without a weight."""
        if self.weight is not None:
            return self.weight
        if self._ones is None:
            self._ones = self.torch.ones(self.workload.n, dtype=self.x.dtype, device=self.device)
        return self._ones

    def output(self, name: str) -> Any:
        """A tensor to write into, shared by all that take one."""
        if name not in self._outputs:
            self._outputs[name] = self.torch.empty_like(self.x)
        return self._outputs[name]

    def scratch(self, name: str) -> Any:
        """A copy of an input, shared by all that overwrite their inputs."""
        if name not in self._scratch:
            self._scratch[name] = self.inputs[name].clone()
        return self._scratch[name]

    def restore(self) -> None:
        """Before a check: inputs that were overwritten are as they were, and no output is left from before."""
        for name, tensor in self._scratch.items():
            tensor.copy_(self.inputs[name])
        for tensor in self._outputs.values():
            tensor.fill_(float("nan"))

    # ---- Checking ------------------------------------------------------------------------------------------------

    def checked_rows(self) -> Any:
        """First and last row and others by chance; all of them where they are few."""
        rows, wanted = self.workload.rows, max(3, CHECKED_ELEMENTS // self.workload.n)
        if rows <= wanted:
            return self.torch.arange(rows, device=self.device)
        generator = self.torch.Generator(device=self.device)
        generator.manual_seed(7)
        some = self.torch.randint(rows, (wanted,), generator=generator, device=self.device)
        some[0], some[-1] = 0, rows - 1
        return some

    def expected(self) -> dict[str, Any]:
        """The outputs in float64, of the checked rows."""
        if self._expected is None:
            self.rows = self.checked_rows()
            double = {name: self.checked(name, tensor).double() for name, tensor in self.inputs.items()}
            self._expected = reference(self.torch, self.workload, double)
        return self._expected

    def checked(self, name: str, tensor: Any) -> Any:
        """What belongs to the checked rows."""
        if name in CONDITIONING:
            return tensor[self.rows // self.workload.rows_per_cond]
        return tensor if tensor.ndim == 1 else tensor[self.rows]

    def errors(self, outputs: dict[str, Any]) -> dict[str, float]:
        """The largest distance of y, absolute and in units in the last place; raises Wrong beyond the limit."""
        found = {}
        for name, expected in self.expected().items():
            got = outputs[name].reshape(self.workload.rows, self.workload.n)[self.rows].double()
            distance = (got - expected).abs()
            ulp, ulp_of_one = (ulp_of(self.torch, values, self.workload.dtype)
                               for values in (expected, self.torch.ones_like(expected[:1, :1])))
            # Where a mean is subtracted, numbers around zero have no digits of their own.
            ulps = distance / (ulp.clamp(min=ulp_of_one.item()) if self.workload.is_layer_norm else ulp)
            # Written so that it also catches a distance that is not a number.
            right = (distance <= LIMIT_ULP * ulp.clamp(min=ulp_of_one.item())) | (distance <= LIMIT_ABSOLUTE)
            wrong = ~right
            error = {"max_err": distance.max().item(), "max_ulp": ulps.max().item()}
            if wrong.any().item():
                raise Wrong(f"wrong result: {name} is off by up to {error['max_err']:.3g}, {wrong.sum().item()} of "
                            f"{wrong.numel()} numbers looked at are beyond {LIMIT_ULP:g} ulp")
            if name == "y":
                found = error
        return found


class Wrong(Exception):
    """An output that is not what it should be."""


def reference(torch: Any, workload: Workload, inputs: dict[str, Any]) -> dict[str, Any]:
    """The operation's formula, in the precision of the inputs."""
    values = inputs["x"]
    outputs = {}
    if "residual" in inputs:
        values = values + inputs["residual"]
        outputs["residual_out"] = values
    if workload.is_layer_norm:
        values = values - values.mean(-1, keepdim=True)
    y = values * torch.rsqrt(values.square().mean(-1, keepdim=True) + workload.eps)
    if "weight" in inputs:
        y = y * inputs["weight"]
    if "scale" in inputs:
        y = y * (1 + inputs["scale"])
    for addend in ("bias", "shift"):
        if addend in inputs:
            y = y + inputs[addend]
    if "gate" in inputs:
        y = y * inputs["gate"]
    return {"y": y, **outputs}


def ulp_of(torch: Any, values: Any, dtype: str) -> Any:
    """The distance between numbers of the type around each value."""
    bits, smallest = FORMATS[dtype]
    exponent = torch.frexp(values).exponent - 1
    return torch.ldexp(torch.ones_like(values), exponent.clamp(min=smallest) - bits)
