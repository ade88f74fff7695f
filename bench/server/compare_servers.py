#!/usr/bin/env python3
"""Total tokens per second of `prism serve` and of llama.cpp's server, with several clients at once.

usage: compare_servers.py PRISM LLAMA_SERVER MODEL.gguf [--clients 4] [--tokens 128] [--rounds 5] [--threads 2]
       [--cores 2,3]

Both servers hold the same file with as many slots as clients and the same number of threads. In each round both answer
the same requests, one server after the other, the other one idle: every client streams answers to /completion, which
both have. Answers are greedy, have all their tokens (ignore_eos), and each prompt is new, so that no cache holds it.
--cores: both servers run on these processors only, and the clients on the others.
A request that fails, or whose answer has another length, ends the run: a ratio counts only if all were answered."""
import argparse
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time

REQUESTS_EACH = 3
SUBJECTS = ["a fox that learns to swim", "the keeper of a lighthouse", "bread, from the field to the table",
            "a week of walking in the mountains", "the planets and their moons", "an old clock that runs backwards"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, name, command, port):
        self.name, self.port = name, port
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait(self):
        for _ in range(600):
            if self.process.poll() is not None:
                sys.exit(f"{self.name} ended with {self.process.returncode} before it answered")
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        sys.exit(f"{self.name} did not answer /health")

    def complete(self, prompt, tokens):
        """Returns the tokens of a streamed answer as the server counts them."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        body = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "ignore_eos": True, "stream": True}
        connection.request("POST", "/completion", json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise RuntimeError(f"{self.name}: status {response.status}: {response.read()[:200]}")
        last = None
        for line in response:
            if line.startswith(b"data: {"):
                last = json.loads(line[6:])
        if not last or last.get("tokens_predicted") != tokens:
            raise RuntimeError(f"{self.name}: the answer ended with {last}")
        return tokens

    def end(self):
        self.process.terminate()
        self.process.wait(30)


def burst(server, clients, tokens, number):
    """Tokens per second of all clients together."""
    failures, counts = [], []

    def client(which):
        try:
            for i in range(REQUESTS_EACH):
                subject = SUBJECTS[(which + i) % len(SUBJECTS)]
                prompt = f"Text {number}.{which}.{i}. Write a long story about {subject}. Once upon a time"
                counts.append(server.complete(prompt, tokens))
        except Exception as error:  # any failure spoils the comparison
            failures.append(error)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
    begun = time.monotonic()
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    seconds = time.monotonic() - begun
    if failures:
        sys.exit(f"{len(failures)} clients failed, first: {failures[0]}")
    return sum(counts) / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prism")
    parser.add_argument("llama_server")
    parser.add_argument("model")
    for name, default in (("clients", 4), ("tokens", 128), ("rounds", 5), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--cores", help="processors of the servers, such as 2,3")
    o = parser.parse_args()
    context = 1024
    pin = ["taskset", "-c", o.cores] if o.cores else []
    if o.cores:
        others = os.sched_getaffinity(0) - {int(core) for core in o.cores.split(",")}
        os.sched_setaffinity(0, others or sys.exit("--cores leaves no processor for the clients"))
    ports = free_port(), free_port()
    servers = [
        Server("Prism", pin + [o.prism, "serve", o.model, "--device", "cpu", "--port", str(ports[0]), "--threads",
                               str(o.threads), "--parallel", str(o.clients), "--context", str(context)], ports[0]),
        Server("llama.cpp", pin + [o.llama_server, "-m", o.model, "--port", str(ports[1]), "-t", str(o.threads),
                                   "-tb", str(o.threads), "-np", str(o.clients), "-c", str(context * o.clients)],
               ports[1])]
    try:
        for each in servers:
            each.wait()
            burst(each, o.clients, 16, -1)  # plans, page cache
        rates, ratios = ([], []), []
        for number in range(o.rounds):
            # Neither server always runs first.
            for which in (0, 1) if number % 2 == 0 else (1, 0):
                rates[which].append(burst(servers[which], o.clients, o.tokens, number))
            ratios.append(rates[0][-1] / rates[1][-1])
            print(f"round {number + 1}: Prism {rates[0][-1]:.1f}, llama.cpp {rates[1][-1]:.1f} tokens/s, "
                  f"ratio {ratios[-1]:.2f}, load {os.getloadavg()[0]:.1f}", flush=True)
        print(f"median: Prism {statistics.median(rates[0]):.1f}, llama.cpp {statistics.median(rates[1]):.1f} tokens/s, "
              f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}); no request failed")
    finally:
        for each in servers:
            each.end()


if __name__ == "__main__":
    main()
