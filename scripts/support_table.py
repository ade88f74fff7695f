"""Makes the support table from evidence: test results, `prism check` on this machine's devices, and on real cards.

Nothing in the table is written by hand but the names of the rungs. A cell is filled only where a test ran and passed
(skipped is not passed), or where every kernel was right on the device.
"""
import json
import pathlib
import re
import xml.etree.ElementTree as ElementTree

# backend: {rung: [(which test cases, what to call it)]}; the cases of GoogleTest are "Instance/Suite.Name/Parameter".
TESTS = {
    "cuda": {"host": [(r"Printed\..*/cuda", "✓")],
             "compiler": [(r"CudaText\..*", "NVRTC 12 and 13, compute_50 to sm_100")],
             "double": [(r"CudaDouble.*", "✓")]},
    "vulkan": {"compiler": [(r"Spirv\..*", "`spirv-val`")]},
    "opencl": {"host": [(r"Printed\..*/opencl", "✓")],
               "compiler": [(r"OpenClDevice\.CompilesEveryOperation.*", "PoCL, Intel")]},
    "hip": {"host": [(r"Printed\..*/hip", "✓")],
            "compiler": [(r"HipText\..*", "hiprtc and clang-19, gfx803 to gfx1201")]},
    "metal": {"host": [(r"Printed\..*/metal", "✓")]},
    "sycl": {"host": [(r"Printed\..*/sycl", "✓")],
             "compiler": [(r"SyclText\..*", "Intel's run-time compiler, and run on its CPU runtime")]},
    "webgpu": {"compiler": [(r"Wgsl\.Every.*", "wgpu-native and Dawn, and run over llvmpipe")]},
}
BACKENDS = ["cpu", "cuda", "vulkan", "opencl", "hip", "metal", "sycl", "webgpu"]
LABELS = {"cpu": "CPU", "cuda": "CUDA", "vulkan": "Vulkan", "opencl": "OpenCL", "hip": "HIP", "metal": "Metal",
          "sycl": "SYCL", "webgpu": "WebGPU"}
SOFTWARE = re.compile(r"llvmpipe|pocl|portable computing|cpu|epyc|xeon|ryzen|core", re.IGNORECASE)


def read_results(folder):
    """Every test case as {name: passed, skipped or failed} from the XML files of GoogleTest."""
    outcomes = {}
    for path in sorted(folder.glob("*.xml")):
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            if case.get("status") == "notrun":
                continue
            failed = case.find("failure") is not None
            skipped = case.find("skipped") is not None or case.get("result") == "skipped"
            outcomes[name] = "failed" if failed else "skipped" if skipped else "passed"
    return outcomes


def rung(outcomes, evidence):
    """The text of a cell: what passed, with what failed or was skipped beside it; a dash where nothing ran."""
    texts = []
    for pattern, text in evidence:
        found = [outcome for name, outcome in outcomes.items() if re.search(rf"(^|/){pattern}", name)]
        passed, failed = found.count("passed"), found.count("failed")
        if failed:
            texts.append(f"{failed} of {len(found)} fail")
        elif passed:
            texts.append(text)
    return ", ".join(texts) or "-"


def read_checks(paths):
    """What `prism check --json` said: {backend: [(device name, right, all)]}."""
    checks = {}
    for path in paths:
        for device in json.loads(path.read_text(encoding="utf-8"))["devices"]:
            total = device["right"] + device["wrong"] + device["failed"] + device["skipped"]
            entry = (device["name"], device["right"], total)
            checks.setdefault(device["id"].split(":")[0], []).append(entry)
    return checks


def scores(entries):
    """ "llvmpipe 39/39" for each device, the long names that drivers give cut at the first bracket."""
    return ", ".join(f"{re.split(r'[(,]', name)[0].strip()} {right}/{total}" for name, right, total in entries) or "-"


def make_table(root, build):
    """The table as Markdown, from build/results, build/check.json and docs/measured/check*.json."""
    outcomes = read_results(build / "results")
    here = read_checks([build / "check.json"])
    measured = read_checks(sorted((root / "docs" / "measured").glob("check*.json")))
    lines = ["| backend | runs kernels | text run on the host | vendor's compiler or checker | driver double"
             " | software devices: kernels right | real processors: kernels right |",
             "|---|---|---|---|---|---|---|"]
    for backend in BACKENDS:
        tests = TESTS.get(backend, {})
        cells = [rung(outcomes, tests.get(column, [])) for column in ("host", "compiler", "double")]
        entries = here.get(backend, [])
        software = [] if backend == "cpu" else [entry for entry in entries if SOFTWARE.search(entry[0])]
        real = [("x86-64", right, total) for _, right, total in entries] if backend == "cpu" else []
        real += [entry for entry in measured.get(backend, []) if backend != "cpu" and not SOFTWARE.search(entry[0])]
        runs = "yes" if software or real else "not yet"
        lines.append(f"| {LABELS[backend]} | {runs} | " + " | ".join(cells) + f" | {scores(software)} | {scores(real)} |")
    return "\n".join(lines) + "\n"
