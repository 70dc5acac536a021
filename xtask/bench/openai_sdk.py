#!/usr/bin/env python3
"""Measures the public `openai` package on the work of our own provider bench, against the same server.

It prints one JSON object per line: `{"name", "value", "unit"}`. `cargo xtask bench providers` calls it with the interpreter
of a venv that has the package, and the address of the server; it installs nothing, judges nothing and compares nothing.
"""

import json
import statistics
import sys
import time

FIRSTS = 101
STREAMS = 3
PIECES = 10_000

try:
    import openai
except ImportError as error:
    sys.exit(f"`openai` cannot be imported by {sys.executable}: {error}; install it: python -m pip install openai")


def report(name, seconds):
    print(json.dumps({"name": name, "value": seconds * 1e9, "unit": "ns"}), flush=True)


def ask(client, model):
    """The time to the first piece, and how many came."""
    began = time.perf_counter()
    first, pieces = None, 0
    stream = client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": "hi"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content is not None:
            if first is None:
                first = time.perf_counter() - began
            pieces += 1
    return first, pieces


def spent(client, model):
    wall, cpu = time.perf_counter(), time.process_time()
    _, pieces = ask(client, model)
    if pieces != PIECES:
        sys.exit(f"{pieces} pieces came instead of {PIECES}")
    return time.perf_counter() - wall, time.process_time() - cpu


def report_spent(name, runs):
    report(f"{name}_wall", statistics.median(wall for wall, _ in runs))
    report(f"{name}_cpu", statistics.median(cpu for _, cpu in runs))


def main():
    server = sys.argv[1]
    client = openai.OpenAI(base_url=server, api_key="none", max_retries=0)
    for _ in range(5):
        ask(client, "chunks-1")
    report("first_piece", statistics.median(ask(client, "chunks-1")[0] for _ in range(FIRSTS)))
    report_spent("stream_10k", [spent(client, f"chunks-{PIECES}") for _ in range(STREAMS)])
    report_spent("paced_10k", [spent(client, f"paced-{PIECES}")])


main()
