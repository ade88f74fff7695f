#!/usr/bin/env python3
"""Fails on an include that violates the layer order, on a public header that includes an internal one, and on a system
header outside the files that may use it."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS = ["base", "ir", "dsl", "lower", "print", "sample_kernels", "runtime", "cpu", "tensor", "ops", "grad", "conformance",
          "nn", "llm", "search", "server", "cli"]
# The layer of each public header in include/prism; those in ops/, nn/ and llm/ belong to the layers of the same name.
PUBLIC = {"error.h": "base", "warning.h": "base", "dtype.h": "base", "element_type.h": "base", "rope_scaling.h": "base", "metric.h": "base",
          "kernel_ir.h": "ir", "capabilities.h": "ir", "kernel.h": "dsl", "device_info.h": "runtime", "device.h": "runtime",
          "shape.h": "tensor", "tensor.h": "tensor", "compile.h": "tensor", "io.h": "tensor",
          "ops.h": "ops", "grad.h": "grad", "nn.h": "nn", "llm.h": "llm", "search.h": "search",
          "file_search.h": "search"}
BACKENDS_MAY_USE = {"base", "ir", "lower", "print", "sample_kernels", "runtime"}
# CUDA and HIP have the same calls under different names, and share this code.
SHARED_BY_BACKENDS = "backends/gpu_runtime"
SHARING_BACKENDS = {"backends/cuda", "backends/hip"}
# Headers of one operating system: allowed in src/base, or inside an #if on the system.
SYSTEM_ONLY = re.compile(
    r"(unistd|dlfcn|fcntl|poll|pwd|dirent|sched|pthread|spawn|ucontext|link|grp|syslog|termios|windows|io"
    r"|sys/\w+|mach/.*|linux/.*|objc/.*|CoreFoundation/.*)\.h$")
SYSTEM_MACRO = re.compile(r"_WIN32|__linux__|__unix__|__APPLE__|_MSC_VER")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def layer_of(path):
    """The layer of a path relative to src or include: its first folder, or backends/NAME."""
    parts = pathlib.PurePosixPath(path).parts
    if parts[0] == "prism":
        return PUBLIC.get(parts[1], parts[1])
    if parts[0] == "backends" and len(parts) > 2:
        return f"backends/{parts[1]}"
    return parts[0]


def allowed(source, target):
    """Whether a file of layer `source` may include the header `target` (relative to src or include)."""
    layer = layer_of(target)
    if layer == source:
        return True
    if source == "backends":  # the backend list, and code that backends share
        return layer in BACKENDS_MAY_USE or layer.startswith("backends/")
    if source.startswith("backends/"):
        return (layer in BACKENDS_MAY_USE or layer == "backends" or source == "backends/cpu" and layer == "ops"
                or layer == SHARED_BY_BACKENDS and source in SHARING_BACKENDS)
    return layer in LAYERS and LAYERS.index(layer) < LAYERS.index(source)


def check_file(path, root):
    """The complaints about one file, as sentences."""
    shown = path.relative_to(root).as_posix()
    is_public = shown.startswith("include/")
    source = layer_of(shown.partition("/")[2])
    if shown == "include/prism/prism.h":  # all of them
        return []
    if source not in LAYERS and not source.startswith("backends"):
        return [f"{shown}: folder {source} has no place in the layers ({', '.join(LAYERS)})"]
    complaints = []
    conditions = []  # the open #if lines
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if re.match(r"\s*#\s*if", line):
            conditions.append(line)
        elif re.match(r"\s*#\s*endif", line) and conditions:
            conditions.pop()
        match = INCLUDE.match(line)
        if not match:
            continue
        kind, target = match.groups()
        where = f"{shown}:{number}: "
        if kind == "<":
            guarded = any(SYSTEM_MACRO.search(condition) for condition in conditions)
            if SYSTEM_ONLY.fullmatch(target) and source != "base" and not guarded:
                complaints.append(f"{where}<{target}> exists on one system only; put it inside an #if, or use src/base")
        elif target.startswith("."):
            complaints.append(f"{where}\"{target}\" is relative; include from src, as \"{source}/...\"")
        elif is_public and not target.startswith("prism/"):
            complaints.append(f"{where}a public header may not include \"{target}\", which is not installed")
        elif any((root / top / target).exists() for top in ("src", "include")) and not allowed(source, target):
            complaints.append(f"{where}{source} may not include \"{target}\" ({layer_of(target)} is not before it)")
        elif not (root / "src" / target).exists() and not (root / "include" / target).exists():
            if (path.parent / target).exists():
                complaints.append(f"{where}\"{target}\" is found only beside the file; write \"{source}/{target}\"")
    return complaints


def main():
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    files = [f for pattern in ("*.h", "*.cpp") for f in sorted([*(root / "src").rglob(pattern), *(root / "include").rglob(pattern)])
             if not f.name.endswith("_test.cpp")]
    complaints = [complaint for f in files for complaint in check_file(f, root)]
    print("\n".join(complaints + [f"includes: {len(files)} files, {len(complaints)} against the layers"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
