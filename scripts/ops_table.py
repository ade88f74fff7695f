#!/usr/bin/env python3
"""Makes the table of ops of docs/support.md from runs of the conformance suite, kept in docs/measured/ops-NAME.json.

usage: prism check --ops --json | scripts/ops_table.py NAME     keeps what the table needs of a run in docs/measured/ops-NAME.json
"""
import datetime
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LABELS = {"cpu": "CPU", "cuda": "CUDA", "vulkan": "Vulkan", "opencl": "OpenCL", "webgpu": "WebGPU", "hip": "HIP"}
# The rungs of a device, best first; "native" is only for the CPU's kernels. A double runs HIP's calls on a card of another
# maker.
RUNGS = ["GPU", "double", "software", "native"]
FAMILIES = {"elementwise": "arithmetic, comparison, functions, activations", "view_gradient": "views and their gradients",
            "index": "gather, scatter, take, one-hot", "create": "ranges, random numbers, dropout",
            "join": "concat, pad, repeat, roll", "rope": "rotary embedding", "gates": "SwiGLU, GeGLU",
            "reduce": "sum, mean, max, min, argmax, variance", "quantise": "to and from block types",
            "conv": "convolutions, pooling", "matmul": "products, dense and quantised",
            "expert_matmul": "rows routed to experts",
            "softmax": "softmax, log-softmax, cross-entropy, Sinkhorn's balancing", "norm": "layer norm, RMS norm",
            "attention": "attention", "indexer": "the choice of keys for sparse attention", "sort": "top-k, sort", "nearest": "nearest rows (vector search)", "scan": "cumulative sums",
            "bounded": "masks of bounded dimensions",
            "recurrence": "short convolutions, state-space scans, delta rule, RWKV",
            "training": "gradients with kernels of their own, sums of squares, Adam"}


def compact(run):
    """Returns the part of `prism check --ops --json` that is kept: counts by op, without the list of drawn cases."""
    devices = []
    for device in run["devices"]:
        ops = {op["op"]: {"family": op["family"], "right": op["right"], "ran": op["ran"], "on_cpu": op["on_cpu"]}
               for op in device["ops"]}
        kept = {key: device[key] for key in ("id", "name", "driver", "software", "ran", "right", "on_cpu", "available",
                                             "different", "programs", "seconds")}
        devices.append({**kept, "ops": ops})
    return {"date": datetime.date.today().isoformat(), "seed": run["seed"], "devices": devices}


def rung_of(device):
    """Returns the rung that a pass on this device counts for."""
    if device["id"].startswith("cpu:"):
        return "native"
    if "by forwarding" in device["name"]:
        return "double"
    return "software" if device["software"] else "GPU"


def read_runs(root):
    """Returns every stored run: [{"devices": [...]}]."""
    paths = sorted((root / "docs" / "measured").glob("ops-*.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def passed(result):
    """Returns whether an op passed: every case was right, and the device itself ran some."""
    return result["ran"] > 0 and result["right"] == result["ran"] and result["on_cpu"] < result["ran"]


def cell(devices, ops):
    """Returns the best rung on which any device passed, and how many of the family's ops passed there."""
    for rung in RUNGS:
        right = {op for device in devices if rung_of(device) == rung
                 for op in ops if op in device["ops"] and passed(device["ops"][op])}
        if right:
            return f"{rung} {len(right)}/{len(ops)}"
    return "-"


def families(runs):
    """Returns {family: [op]} over all runs, in order of appearance."""
    found = {}
    for run in runs:
        for device in run["devices"]:
            for op, result in device["ops"].items():
                members = found.setdefault(result["family"], [])
                if op not in members:
                    members.append(op)
    return found


def make_table(root=ROOT):
    """Returns the table as Markdown."""
    runs = read_runs(root)
    devices = [device for run in runs for device in run["devices"]]
    lines = ["| ops | " + " | ".join(LABELS.values()) + " |", "|---" * (len(LABELS) + 1) + "|"]
    for family, ops in families(runs).items():
        cells = [cell([d for d in devices if d["id"].split(":")[0] == backend], ops) for backend in LABELS]
        what = f": {FAMILIES[family]}" if FAMILIES.get(family, family) != family else ""
        lines.append(f"| {family}{what} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def missing_ops(build, root=ROOT):
    """Returns a complaint for each op of the program without a stored result on the CPU."""
    listed = subprocess.run([build / "prism", "check", "--ops", "--device", "cpu", "--cases", "1", "--json"], check=True,
                            capture_output=True, text=True).stdout
    ops = [op["op"] for op in json.loads(listed)["devices"][0]["ops"]]
    kept = {op for run in read_runs(root) for device in run["devices"] if device["id"].startswith("cpu:")
            for op in device["ops"]}
    return [f"op {op} is in no docs/measured/ops-*.json; run build/prism check --ops --json | scripts/ops_table.py NAME"
            for op in ops if op not in kept]


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    target = ROOT / "docs" / "measured" / f"ops-{sys.argv[1]}.json"
    target.write_text(json.dumps(compact(json.load(sys.stdin)), indent=None, separators=(",", ":"))
                      .replace('"devices":[', '"devices":[\n').replace('},"', '},\n"') + "\n", encoding="utf-8")
    print(f"kept {target.relative_to(ROOT)}; scripts/update_readme.py ops writes the table")


if __name__ == "__main__":
    main()
