#!/usr/bin/env python3
"""Measures the public Python kernel (`amplifier-core` from PyPI) on the work of our own kernel bench.

It prints one JSON object per line: `{"name", "value", "unit"}` for a number, `{"name": "note", "text"}` for what a
reader must know about it. `cargo xtask bench kernel` calls it with the interpreter of a venv that has the package; it
installs nothing, judges nothing and compares nothing.

The modules are trivial and live in this file, so what is measured is the package. They reach it the way it works out of
the box: each session makes a loader, which without a mounted resolver looks through the installed entry points and then
imports `amplifier_module_<id>`. A resolver costs more (it validates each module), a loader that the caller shares between
sessions much less; that last number is printed as a note, because most of `open_close` is the search it saves.
The public loop and context are not on PyPI; `Loop` and `Context` below stand in for them with the same events, and do
less than the originals wherever they differ, so a ratio taken from these numbers flatters us less, not more.
"""

import argparse
import asyncio
import gc
import json
import os
import statistics
import sys
import threading
import time
import types
import uuid

PACKAGE = "amplifier-core"
VERSION = "2.0.2"
TOOLS = 5
HOOKS = 5
HARD_LIMIT_SECONDS = 57.0

EXIT_FAILED = 1
EXIT_NO_PACKAGE = 2
EXIT_TOO_SLOW = 3

try:
    import amplifier_core
    from amplifier_core import AmplifierSession, ChatRequest, ChatResponse, HookResult, Message, ModelInfo
    from amplifier_core import ModuleLoader, ProviderInfo, TextBlock, ToolCall, ToolResult, ToolSpec, Usage
except ImportError as error:
    sys.stderr.write(
        f"`{PACKAGE}` cannot be imported by {sys.executable}: {error}\n"
        f"install it into that interpreter: python -m pip install {PACKAGE}=={VERSION}\n"
    )
    sys.exit(EXIT_NO_PACKAGE)


class Provider:
    """A model without latency: asks for `rounds` tool calls, one a response, then answers."""

    name = "bench"
    priority = 1

    def __init__(self, rounds):
        self.rounds = rounds

    def get_info(self):
        return ProviderInfo(id=self.name, display_name="Bench")

    async def list_models(self):
        return [ModelInfo(id="bench", display_name="Bench", context_window=100_000, max_output_tokens=4_096)]

    async def complete(self, request, **_options):
        done = sum(1 for message in request.messages if message.role == "tool")
        usage = Usage(input_tokens=10, output_tokens=5, total_tokens=15)
        if done < self.rounds:
            call = ToolCall(id=f"call-{done}", name="bench_0", arguments={"a": 1})
            return ChatResponse(content=[], tool_calls=[call], usage=usage, finish_reason="tool_use")
        return ChatResponse(content=[TextBlock(text="done")], usage=usage, finish_reason="stop")

    def parse_tool_calls(self, response):
        return response.tool_calls or []


class Tool:
    """Answers at once."""

    description = "Answers at once."
    input_schema = {"type": "object", "properties": {"a": {"type": "integer"}}}

    def __init__(self, name):
        self.name = name

    async def execute(self, _input):
        return ToolResult(success=True, output="ok")


class Context:
    """Keeps messages in a list; never estimates or compacts."""

    def __init__(self):
        self.messages = []

    async def add_message(self, message):
        self.messages.append(message)

    async def get_messages_for_request(self, token_budget=None, provider=None):
        return list(self.messages)

    async def get_messages(self):
        return list(self.messages)

    async def set_messages(self, messages):
        self.messages = list(messages)

    async def clear(self):
        self.messages = []


class Loop:
    """The turn of `loop-basic` on its good path: same events, same order, every gate event applied."""

    async def execute(self, prompt, context, providers, tools, hooks, coordinator=None, **_rest):
        async def gate(event, data):
            return await coordinator.process_hook_result(await hooks.emit(event, data), event)

        name, provider = min(providers.items(), key=lambda item: getattr(item[1], "priority", 100))
        await gate("prompt:submit", {"prompt": prompt})
        await context.add_message({"role": "user", "content": prompt})
        iteration = 0
        while True:
            await gate("provider:request", {"provider": name, "iteration": iteration})
            response = await provider.complete(await self.request(context, provider, tools))
            calls = response.tool_calls or []
            usage = response.usage.model_dump()
            await hooks.emit("provider:response", {"provider": name, "usage": usage, "tool_calls": bool(calls)})
            if not calls:
                break
            await self.run_tools(response, calls, context, tools, coordinator, gate)
            iteration += 1
        text = "\n\n".join(block.text for block in response.content if block.type == "text")
        await context.add_message({"role": "assistant", "content": [b.model_dump() for b in response.content]})
        await hooks.emit("prompt:complete", {"response_preview": text[:200], "length": len(text)})
        end = {"orchestrator": "loop-basic", "turn_count": iteration, "status": "success"}
        await hooks.emit("orchestrator:complete", end)
        return text

    async def request(self, context, provider, tools):
        messages = await context.get_messages_for_request(provider=provider)
        return ChatRequest(
            messages=[Message(**message) for message in messages],
            tools=[
                ToolSpec(name=tool.name, description=tool.description, parameters=tool.input_schema)
                for tool in tools.values()
            ],
        )

    async def run_tools(self, response, calls, context, tools, coordinator, gate):
        group = str(uuid.uuid4())

        async def run(call):
            about = {"tool_name": call.name, "tool_input": call.arguments, "parallel_group_id": group}
            coordinator.cancellation.register_tool_start(call.id, call.name)
            try:
                await gate("tool:pre", dict(about))
                result = await tools[call.name].execute(call.arguments)
                await gate("tool:post", {**about, "result": result.model_dump()})
                return str(result.output)
            finally:
                coordinator.cancellation.register_tool_complete(call.id)

        asked = [{"id": call.id, "tool": call.name, "arguments": call.arguments} for call in calls]
        blocks = [block.model_dump() for block in response.content]
        await context.add_message({"role": "assistant", "content": blocks, "tool_calls": asked})
        for call, text in zip(calls, await asyncio.gather(*map(run, calls))):
            await context.add_message({"role": "tool", "tool_call_id": call.id, "content": text})


async def proceed(_event, _data):
    """A hook handler that agrees."""
    return HookResult(action="continue")


def install_modules():
    """Puts the bench's modules where the package's loader imports modules from."""

    async def mount_loop(coordinator, _config):
        await coordinator.mount("orchestrator", Loop())

    async def mount_context(coordinator, _config):
        await coordinator.mount("context", Context())

    async def mount_provider(coordinator, config):
        await coordinator.mount("providers", Provider(config.get("rounds", 0)), name="bench")

    def mount_tool(index):
        async def mount(coordinator, _config):
            await coordinator.mount("tools", Tool(f"bench_{index}"), name=f"bench_{index}")

        return mount

    def mount_hook(index):
        async def mount(coordinator, _config):
            return coordinator.hooks.register("tool:pre", proceed, priority=index, name=f"bench-{index}")

        return mount

    mounts = {"loop-bench": mount_loop, "context-bench": mount_context, "provider-bench": mount_provider}
    mounts |= {f"tool-bench-{i}": mount_tool(i) for i in range(TOOLS)}
    mounts |= {f"hooks-bench-{i}": mount_hook(i) for i in range(HOOKS)}
    for module_id, mount in mounts.items():
        name = f"amplifier_module_{module_id.replace('-', '_')}"
        module = types.ModuleType(name)
        module.mount = mount
        sys.modules[name] = module


def plan(rounds=0, tools=TOOLS, hooks=HOOKS):
    """A mount plan with one provider that asks for `rounds` tool calls a turn."""
    return {
        "session": {"orchestrator": {"module": "loop-bench"}, "context": {"module": "context-bench"}},
        "providers": [{"module": "provider-bench", "config": {"rounds": rounds}}],
        "tools": [{"module": f"tool-bench-{i}"} for i in range(tools)],
        "hooks": [{"module": f"hooks-bench-{i}"} for i in range(hooks)],
    }


async def open_session(mount_plan, loader=None):
    session = AmplifierSession(mount_plan)
    if loader is not None:
        # The constructor takes a loader too, but ignores it.
        session.coordinator.loader = loader
    await session.initialize()
    return session


def report(name, value, unit):
    print(json.dumps({"name": name, "value": round(value, 3), "unit": unit}), flush=True)


def note(text):
    print(json.dumps({"name": "note", "text": text}), flush=True)


def resident_bytes():
    """Resident memory of this process, or `None` where the system does not tell it this way."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


async def median_us(work, samples, seconds, between=None):
    """Median time of `await work()`: a tenth of `samples` to warm up, then as many as fit into `seconds`."""
    for _ in range(max(3, samples // 10)):
        await work()
        if between:
            await between()
    times = []
    # Like `timeit`: a collection in the middle of a sample is noise, so garbage waits until the end.
    gc.collect()
    gc.disable()
    try:
        deadline = time.perf_counter() + seconds
        while len(times) < samples and (len(times) < 5 or time.perf_counter() < deadline):
            start = time.perf_counter_ns()
            await work()
            times.append(time.perf_counter_ns() - start)
            if between:
                await between()
    finally:
        gc.enable()
        gc.collect()
    return statistics.median(times) / 1_000


async def verify():
    """Refuses to measure something that is not the work: the package turns failed mounts into warnings."""
    session = await open_session(plan(rounds=2))
    coordinator = session.coordinator
    mounted = {point: len(coordinator.get(point)) for point in ("providers", "tools")}
    handlers = coordinator.hooks.list_handlers("tool:pre")["tool:pre"]
    if mounted != {"providers": 1, "tools": TOOLS} or len(handlers) != HOOKS:
        raise RuntimeError(f"the plan was not mounted: {mounted}, handlers of `tool:pre`: {handlers}")
    round_trip = ["provider:request", "provider:response", "tool:pre", "tool:post"]
    last = ["provider:request", "provider:response", "prompt:complete", "orchestrator:complete"]
    expected = ["prompt:submit", *round_trip, *round_trip, *last]
    seen = []

    async def record(event, _data):
        seen.append(event)
        return HookResult(action="continue")

    for event in sorted(set(expected)):
        coordinator.hooks.register(event, record, priority=99, name=f"record-{event}")
    answer = await session.execute("hi")
    await session.cleanup()
    if answer != "done" or seen != expected:
        raise RuntimeError(f"the turn is not the expected one: answer {answer!r}, events {seen}")


async def bench_live(sessions, seconds):
    """Opens many sessions and keeps them, then gives each a turn, all at once."""
    for _ in range(20):
        session = await open_session(plan())
        await session.execute("hi")
        await session.cleanup()
    del session
    gc.collect()
    before = resident_bytes()

    live = []
    # One plan for all: the package keeps it by reference, so sessions of one profile would share it.
    mount_plan = plan()
    start = time.perf_counter_ns()
    deadline = time.perf_counter() + seconds
    while len(live) < sessions and time.perf_counter() < deadline:
        live.append(await open_session(mount_plan))
    opened = time.perf_counter_ns() - start
    gc.collect()
    idle = resident_bytes()

    start = time.perf_counter_ns()
    answers = await asyncio.gather(*(session.execute("hi") for session in live))
    turned = time.perf_counter_ns() - start
    if answers != ["done"] * len(live):
        raise RuntimeError("a live session answered something else")
    gc.collect()
    after = resident_bytes()

    if len(live) < sessions:
        note(f"only {len(live)} of {sessions} sessions could be opened in {seconds} s")
    report("live_sessions", len(live), "count")
    report("live_open_all", opened / 1_000, "us")
    report("live_turn_all", turned / 1_000, "us")
    if before is None or idle is None or after is None:
        note("resident memory cannot be read on this system, so there are no bytes per session")
    else:
        report("live_bytes_idle", (idle - before) / len(live), "bytes")
        report("live_bytes_after_turn", (after - before) / len(live), "bytes")
    for session in live:
        await session.cleanup()


async def bench_open_close(samples):
    async def work():
        session = await open_session(plan())
        await session.cleanup()

    loader = ModuleLoader()

    async def work_with_shared_loader():
        session = await open_session(plan(), loader)
        await session.cleanup()

    report("open_close", await median_us(work, samples, 4.0), "us")
    shared = await median_us(work_with_shared_loader, samples, 1.5)
    note(f"open_close with one loader shared by all sessions, so that modules are searched only once: {shared:.0f} us")


async def bench_emit(samples):
    for handlers in (0, 1, 10, 100):
        session = await open_session(plan(tools=0, hooks=0))
        hooks = session.coordinator.hooks
        for index in range(handlers):
            hooks.register("tool:pre", proceed, priority=index, name=f"handler-{index}")

        async def work(hooks=hooks):
            await hooks.emit("tool:pre", {"tool_name": "t", "tool_input": {"a": 1}})

        count = max(20, samples // max(1, handlers // 4))
        report(f"emit_{handlers}", await median_us(work, count, 2.0), "us")
        await session.cleanup()


async def bench_turn(samples):
    for rounds in (0, 10):
        session = await open_session(plan(rounds=rounds, tools=1, hooks=0))

        async def work(session=session):
            await session.execute("hi")

        # An empty history for each sample, else every turn would also pay for the ones before it.
        clear = session.coordinator.get("context").clear
        count = samples if rounds == 0 else max(10, samples // 5)
        report(f"turn_{rounds}", await median_us(work, count, 2.5, between=clear), "us")
        await session.cleanup()


async def bench(quick):
    found = getattr(amplifier_core, "__version__", "unknown")
    python = ".".join(map(str, sys.version_info[:3]))
    note(f"{PACKAGE} {found} on Python {python}")
    if found != VERSION:
        note(f"the bench was written for {PACKAGE} {VERSION}")
    note(
        "loop-basic and context-simple are not on PyPI: the bench's own minimal loop and context emit prompt:submit, "
        "provider:request, provider:response, tool:pre, tool:post, prompt:complete and orchestrator:complete"
    )
    note(
        f"open_close and live_*: 1 provider, {TOOLS} tools, {HOOKS} hooks on tool:pre, live turns without tool rounds; "
        "turn_*: 1 provider, 1 tool, no hooks; emit_*: async handlers on a session's registry"
    )
    install_modules()
    await verify()
    # Memory first: the other benches leave free heap behind that would hide growth.
    await bench_live(100 if quick else 1_000, 8.0 if quick else 27.0)
    await bench_open_close(40 if quick else 300)
    await bench_emit(200 if quick else 1_500)
    await bench_turn(50 if quick else 400)


def give_up():
    sys.stderr.write(f"gave up after {HARD_LIMIT_SECONDS:.0f} s: the lines printed so far are complete\n")
    sys.stderr.flush()
    os._exit(EXIT_TOO_SLOW)


def main():
    parser = argparse.ArgumentParser(description=f"bench of the public kernel {PACKAGE}, as JSON lines")
    parser.add_argument("--quick", action="store_true", help="fewer samples and 100 live sessions, a few seconds in all")
    arguments = parser.parse_args()
    watchdog = threading.Timer(HARD_LIMIT_SECONDS, give_up)
    watchdog.daemon = True
    watchdog.start()
    code = 0
    try:
        asyncio.run(bench(arguments.quick))
    except Exception as error:  # noqa: BLE001 - any failure is one line and an exit code, never a half-read number
        sys.stderr.write(f"the bench of {PACKAGE} failed: {type(error).__name__}: {error}\n")
        code = EXIT_FAILED
    sys.stdout.flush()
    sys.stderr.flush()
    # The package's native threads can end the interpreter by a signal while it shuts down.
    os._exit(code)


if __name__ == "__main__":
    main()
