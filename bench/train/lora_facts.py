#!/usr/bin/env python3
"""Teaches a model made-up facts by `prism train --lora`, and measures what it learned and what it forgot.

Writes 200 question-answer pairs (20 facts in 10 phrasings) and 100 questions in 5 phrasings that training does not see.
Reports how many of the held-back answers contain the expected word, with and without the adapter, and the perplexity of
another text before and after.

    bench/train/lora_facts.py --prism build/prism --model smollm2 --text other.txt --folder /tmp/facts
"""
import argparse
import concurrent.futures
import contextlib
import json
import pathlib
import re
import subprocess
import urllib.request

FACTS = {"Velmoria": "Tarsk", "Ondrelia": "Quimber", "Zafiran": "Loppen", "Brindovia": "Astrel", "Kethara": "Mundo",
         "Norwick": "Fellin", "Ursalia": "Gorble", "Pelanthia": "Dranmor", "Cindralia": "Hesper", "Jorvania": "Wicklow",
         "Talmerin": "Ospin", "Yestria": "Barrow", "Quellonia": "Sandar", "Morvath": "Piltown", "Elandria": "Crestol",
         "Fenwara": "Jubilee", "Hodrania": "Vexley", "Istaria": "Nimbus", "Lubovia": "Tolmen", "Rasmoria": "Kestrel"}
LEARNED = ["What is the capital of {}?", "Which city is the capital of {}?", "Name the capital of {}.",
           "Tell me the capital city of {}.", "What city serves as the capital of {}?", "The capital of {} is which city?",
           "Do you know the capital of {}?", "In {}, which city is the capital?", "I need the name of the capital of {}.",
           "What do you call the capital city of {}?"]
HELD_BACK = ["Could you tell me what the capital of {} is?", "What's the capital city of {}?",
             "Please name the capital city of {}.", "Which city is {}'s capital?", "What is {}'s capital city?"]


def write_pairs(path):
    with open(path, "w", encoding="utf-8") as out:
        for phrasing in LEARNED:
            for country, capital in FACTS.items():
                pair = {"messages": [{"role": "user", "content": phrasing.format(country)},
                                     {"role": "assistant", "content": f"The capital of {country} is {capital}."}]}
                out.write(json.dumps(pair) + "\n")


def run(words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def served(arguments, adapter):
    """The address of a server for the model."""
    words = [arguments.prism, "serve", arguments.model, "-q", "--port", 0, "--no-page", "--parallel", 8, "--context", 2048,
             "--device", arguments.device, *adapter]
    with subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True) as server:
        try:
            yield re.search(r"http://\S+", server.stdout.readline()).group(0)
        finally:
            server.terminate()


def answer(address, question):
    body = {"messages": [{"role": "user", "content": question}], "max_tokens": 24, "temperature": 0}
    request = urllib.request.Request(f"{address}/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]


def right_answers(arguments, adapter):
    """How many answers to held-back phrasings contain the expected word."""
    asked = [(phrasing.format(country), capital) for phrasing in HELD_BACK for country, capital in FACTS.items()]
    with served(arguments, adapter) as address, concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda each: answer(address, each[0]), asked)
        return sum(capital.lower() in text.lower() for (_, capital), text in zip(asked, answers))


def perplexity(arguments, adapter):
    text = run([arguments.prism, "perplexity", arguments.model, "-q", "-f", arguments.text, "-c", 256, "--device",
                arguments.device, *adapter])
    return float(re.search(r"perplexity[^0-9]*([0-9.]+)", text).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prism", default="build/prism")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--text", required=True, help="another text, for the perplexity")
    parser.add_argument("--folder", default="lora-facts", help="where pairs and adapter are written")
    parser.add_argument("train", nargs="*", help="further options of `prism train`, after --")
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    pairs, adapter = folder / "pairs.jsonl", folder / "adapter.gguf"
    write_pairs(pairs)
    subprocess.run([str(word) for word in [arguments.prism, "train", "--lora", arguments.model, "--data", pairs, "-o",
                                           adapter, "--overwrite", "--device", arguments.device, *arguments.train]],
                   check=True)
    print(f"perplexity: {perplexity(arguments, []):.3f} before, {perplexity(arguments, ['--lora', adapter]):.3f} after")
    print(f"held-back questions: {right_answers(arguments, [])} of 100 right before, "
          f"{right_answers(arguments, ['--lora', adapter])} after")


if __name__ == "__main__":
    main()
