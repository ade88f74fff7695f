#!/usr/bin/env python3
"""Asks questions whose right file is known (tests/search/questions.tsv) about Prism's own sources, and prints how often the
right file is first and among the first five, by words, by vectors and by both, with the time to index and to search.
usage: bench/search/questions.py build/prism [FOLDER]"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    prism = str(pathlib.Path(sys.argv[1]).resolve())
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT).resolve()
    questions = [line.split("\t") for line in (ROOT / "tests/search/questions.tsv").read_text().splitlines()]
    with tempfile.TemporaryDirectory() as scratch:
        index = f"{scratch}/index"
        start = time.monotonic()
        print(subprocess.run([prism, "index", str(folder), "--index", index], check=True, text=True,
                             stdout=subprocess.PIPE).stdout.strip())
        print(f"index: {time.monotonic() - start:.1f} s")
        start = time.monotonic()
        subprocess.run([prism, "index", str(folder), "--index", index], check=True, stdout=subprocess.DEVNULL)
        print(f"index again, nothing changed: {time.monotonic() - start:.1f} s")
        for rank in ("words", "vectors", "hybrid"):
            first = five = 0
            reciprocal = 0.0
            seconds = []
            missed = []
            for question, right in questions:
                start = time.monotonic()
                answer = subprocess.run([prism, "search", question, str(folder), "--index", index, "--rank", rank, "--json"],
                                        text=True, stdout=subprocess.PIPE).stdout
                seconds.append(time.monotonic() - start)
                paths = []  # of files, in the order of their best passage
                for result in json.loads(answer)["results"]:
                    path = pathlib.Path(result["path"]).relative_to(folder).as_posix()
                    if path not in paths:
                        paths.append(path)
                place = next((i for i, path in enumerate(paths) if path.startswith(tuple(right.split(" ")))), None)
                if place is None or place >= 5:
                    missed.append(question)
                if place is not None:
                    first += place == 0
                    five += place < 5
                    reciprocal += 1 / (place + 1)
            count = len(questions)
            print(f"{rank:8} first {first}/{count}, first five {five}/{count}, mean reciprocal rank {reciprocal / count:.2f}, "
                  f"median of {sorted(seconds)[count // 2] * 1000:.0f} ms a search with its start")
            for question in missed:
                print(f"         missed: {question}")


if __name__ == "__main__":
    main()
