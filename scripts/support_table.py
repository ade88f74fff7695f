"""Makes the support table from evidence: test results, `prism check` on this machine's devices, and on real cards.

Only the names of the rungs are written by hand. A cell is filled only if a test ran and passed (skipped is not passed),
or if every kernel was right on the device.
"""
import json
import pathlib
import re
import xml.etree.ElementTree as ElementTree

# backend: {rung: [(pattern of test cases, text of the cell)]}; GoogleTest's cases are "Instance/Suite.Name/Parameter".
TESTS = {
    "cuda": {"host": [(r"Printed\..*/cuda", "✓")],
             "compiler": [(r"CudaText\..*", "NVRTC 12 and 13, compute_50 to sm_100")],
             "double": [(r"CudaDouble.*", "✓")]},
    "vulkan": {"compiler": [(r"Spirv\..*", "`spirv-val`")]},
    "opencl": {"host": [(r"Printed\..*/opencl", "✓")],
               "compiler": [(r"OpenClDevice\.CompilesEveryOperation.*", "PoCL, Intel")]},
    "hip": {"host": [(r"Printed\..*/hip", "✓")],
            "compiler": [(r"HipText\..*", "hiprtc and clang-19, gfx803 to gfx1201")],
            "double": [(r"HipDouble.*", "✓ (double)")]},
    "metal": {"host": [(r"Printed\..*/metal", "✓")],
              "double": [(r"MetalDouble.*", "✓ (double)")]},
    "sycl": {"host": [(r"Printed\..*/sycl", "✓")],
             "compiler": [(r"SyclText\..*", "Intel's run-time compiler, and run on its CPU runtime")],
             "software": [(r"Sycl\.KernelsOfTheLibraryAreRight", "Intel's CPU runtime ✓")]},
    "webgpu": {"compiler": [(r"Wgsl\.Every.*", "wgpu-native and Dawn, and run over llvmpipe")]},
}
BACKENDS = ["cpu", "cuda", "vulkan", "opencl", "hip", "metal", "sycl", "webgpu"]
LABELS = {"cpu": "CPU", "cuda": "CUDA", "vulkan": "Vulkan", "opencl": "OpenCL", "hip": "HIP", "metal": "Metal",
          "sycl": "SYCL", "webgpu": "WebGPU"}
# Software devices, recognised by their driver or name; the processor names in them differ between machines.
SOFTWARE = [("llvmpipe", "llvmpipe"), ("Portable Computing Language", "PoCL"), ("Intel(R) OpenCL", "Intel's CPU runtime")]


def read_results(folder):
    """Returns every test case as {name: passed, skipped or failed}, from GoogleTest's XML files."""
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
    """Returns the text of a cell: what passed, or how many cases failed; a dash if all were skipped or none ran."""
    texts = []
    for pattern, text in evidence:
        found = [outcome for name, outcome in outcomes.items() if re.search(rf"(^|/){pattern}", name)]
        passed, failed = found.count("passed"), found.count("failed")
        if failed:
            texts.append(f"{failed} of {len(found)} fail")
        elif passed:
            texts.append(text)
    return ", ".join(texts) or "-"


def read_devices(check, devices):
    """Reads the output of `prism check --json` and `prism devices --json`: [(backend, name, software, right, all)]."""
    known = {}
    for backend in json.loads(devices.read_text(encoding="utf-8"))["backends"]:
        for device in backend["devices"]:
            known[device["id"]] = device
    entries = []
    for checked in json.loads(check.read_text(encoding="utf-8"))["devices"]:
        device = known[checked["id"]]
        text = f"{device['name']} {device['driver']}"
        name = next((short for sign, short in SOFTWARE if sign in text), re.split(r"[(,]", device["name"])[0].strip())
        total = checked["right"] + checked["wrong"] + checked["failed"] + checked["skipped"]
        entries.append((checked["id"].split(":")[0], name, device["software"], checked["right"], total))
    return entries


def scores(entries):
    """Returns "llvmpipe 35/35" for each device: right kernels of all kernels."""
    return ", ".join(f"{name} {right}/{total}" for _, name, _, right, total in entries) or "-"


def make_table(root, build):
    """Returns the table as Markdown, from build/results, build/check.json, build/devices.json and docs/measured/."""
    outcomes = read_results(build / "results")
    entries = read_devices(build / "check.json", build / "devices.json")
    # WebGPU runs the same device with two libraries.
    for library in ("wgpu-native", "Dawn"):
        check = build / f"check-{library}.json"
        if check.exists():
            entries += [(backend, f"{library} on {name}", software, right, total) for backend, name, software, right, total
                        in read_devices(check, build / f"devices-{library}.json")]
    # Skip this machine's cards, which are in docs/measured: the table must not depend on the machine.
    entries = [entry for entry in entries if entry[2] or entry[0] == "cpu"]
    entries = [(backend, "x86-64" if backend == "cpu" else name, software, right, total)
               for backend, name, software, right, total in entries]
    for check in sorted((root / "docs" / "measured").glob("check-*.json")):
        measured = read_devices(check, check.with_name(check.name.replace("check-", "devices-")))
        entries += [entry for entry in measured if not entry[2] and entry[0] != "cpu"]
    lines = ["| backend | runs kernels | text run on the host | vendor's compiler or checker | driver double"
             " | software devices: kernels right | processors: kernels right |",
             "|---|---|---|---|---|---|---|"]
    for backend in BACKENDS:
        tests = TESTS.get(backend, {})
        cells = [rung(outcomes, tests.get(column, [])) for column in ("host", "compiler", "double")]
        mine = [entry for entry in entries if entry[0] == backend]
        # SYCL's test builds its plug-in, so the program of this run does not include SYCL.
        software = [text for text in (scores([entry for entry in mine if entry[2]]), rung(outcomes, tests.get("software", [])))
                    if text != "-"]
        cells += [", ".join(software) or "-", scores([entry for entry in mine if not entry[2]])]
        runs = "yes" if (root / "src" / "backends" / backend).is_dir() else "not yet"
        lines.append(f"| {LABELS[backend]} | {runs} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def overclaims(written, fresh):
    """Returns a complaint for each cell of the written table that claims more than the fresh one."""
    def rows(table):
        return {line.split(" | ")[0]: line.strip("|").split(" | ") for line in table.splitlines()[2:]}

    def meaning(cell):
        """Returns the parts of a cell, with "all" for a score such as 35/35, whatever the number of kernels."""
        return {re.sub(r"\b(\d+)/\1\b", "all", part.strip()) for part in cell.strip(" |").split(", ")} - {"-"}
    now = rows(fresh)
    return [f"{name.strip('| ')}: docs/support.md says \"{cell.strip(' |')}\", this run shows \"{other.strip(' |')}\""
            for name, cells in rows(written).items() for cell, other in zip(cells[1:], now.get(name, [""] * 9)[1:])
            if not meaning(cell) <= meaning(other)]
