"""Compiler options of kernels: serial, without the GIL, cached on disk."""

from typing import Any

KERNEL: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
# Products and sums may be fused, so that an exponential costs less.
EXACT: dict[str, Any] = {**KERNEL, "fastmath": {"contract"}}
# Sums may be reordered so that they fill vector registers; infinities and NaN keep
# their meaning.
REORDERED: dict[str, Any] = {**KERNEL, "fastmath": {"reassoc", "contract"}}
