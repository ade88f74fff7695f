#!/usr/bin/env python3
"""Wall time, processor time and peak memory of `prism run` for one token, start-up included.

    bench/llm/start_bench.py build/prism                            # SmolLM2 on the CPU
    bench/llm/start_bench.py build/prism --model big.gguf --device auto
    bench/llm/start_bench.py build/prism --peer 'llama-completion -m SmolLM2.gguf -p Hello -n 1 -no-cnv'

Runs alternate with those of the peer, after one warm-up run of each.
"""
import argparse
import os
import shlex
import statistics
import subprocess
import time


def run(words):
    """Wall seconds, user + system seconds and peak resident bytes of one run."""
    start = time.perf_counter()
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{shlex.join(words)} ended with {child.returncode}:\n{errors.decode(errors='replace')}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prism")
    parser.add_argument("--model", default="", help="a GGUF file; none: SmolLM2-135M from the cache folder")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--prompt", default="Hello")
    parser.add_argument("--peer", default="", help="the command line of another program for the same task")
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    words = [options.prism, "run", "--device", options.device, "-q", "-p", options.prompt, "-n", "1"]
    if options.model:
        words.insert(2, options.model)
    contenders = {"prism": words}
    if options.peer:
        contenders["peer"] = shlex.split(options.peer)
    results = {name: [] for name in contenders}
    for number in range(options.runs + 1):
        for name, command in contenders.items():
            result = run(command)
            if number > 0:
                results[name].append(result)
    print(f"{'':8}{'best s':>10}{'median s':>10}{'cpu s':>10}{'peak MB':>10}")
    for name, runs in results.items():
        seconds, busy, memory = zip(*runs)
        print(f"{name:8}{min(seconds):10.3f}{statistics.median(seconds):10.3f}{statistics.median(busy):10.3f}"
              f"{max(memory) / 1e6:10.1f}")


if __name__ == "__main__":
    main()
