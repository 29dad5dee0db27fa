"""Builds and opens the compiled loops, for whoever asks for them: once for each machine, where there is a C compiler.

``DISCREET_COMPILED=1`` asks; no compiler is run otherwise. They are kept below the user's cache folder, under a name
that follows from the source, the flags, the compiler and the processor.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import warnings
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

SOURCE = Path(__file__).with_name("kernels.c")
# Sums are rounded as they are written down: no fused multiplication, no other order. What else is assumed (that nobody
# asks for errno or for floating-point exceptions) has no say in what a number is.
_FLAGS = ("-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC")
_OF_THIS_PROCESSOR = {"x86_64": "-march=native", "AMD64": "-march=native", "aarch64": "-mcpu=native"}
_SECONDS = 60.0


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """The compiled loops, or None where nobody asked for them; and with a warning where they cannot be used."""
    if os.environ.get("DISCREET_COMPILED") != "1":
        return None
    try:
        loops = ctypes.CDLL(str(_built()))
        loops.into_ball.restype = ctypes.c_int64
        return loops
    except (OSError, RuntimeError, subprocess.SubprocessError) as failed:
        warnings.warn(
            f"The compiled loops cannot be used here ({failed}): NumPy gives the same numbers, in more time.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


def _built() -> Path:
    """The shared library; it is built if it is not there."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None or sys.platform == "win32":
        raise FileNotFoundError("there is no C compiler")
    flags = [*_FLAGS, _OF_THIS_PROCESSOR.get(platform.machine(), "-O3")]
    parts = (SOURCE.read_bytes(), " ".join(flags).encode(), compiler.encode(), _processor())
    path = _folder() / f"kernels-{sha256(b'|'.join(parts)).hexdigest()[:24]}.so"
    if not path.exists():
        # Under a name of its own first, so that no other process opens half of it.
        handle, made = tempfile.mkstemp(dir=path.parent, suffix=".so")
        os.close(handle)
        try:
            command = [compiler, *flags, "-o", made, str(SOURCE), "-lm"]
            subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
            os.replace(made, path)
        finally:
            Path(made).unlink(missing_ok=True)
    return path


def _folder() -> Path:
    """A folder that nobody else may write to: what lies in it is run."""
    # Without a home there is no place for them either, which is a RuntimeError.
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "discreet"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(f"{folder} can be written to by others")
    return folder


def _processor() -> bytes:
    """What the processor says that it is and can do: what was built for another may not run here."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = [platform.processor()]
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))})).encode()
