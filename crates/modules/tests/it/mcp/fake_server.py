"""A server of the older generation that misbehaves on demand. Only the standard library; one JSON message a line."""
import json
import os
import signal
import subprocess
import sys
import time

mode = sys.argv[1] if len(sys.argv) > 1 else "plain"
tools = ["say", "grow", "shrink", "die", "hang", "endless", "noise", "broken", "progress", "huge", "env", "wrong"]


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(id, result):
    send({"jsonrpc": "2.0", "id": id, "result": result})


def text(id, words):
    answer(id, {"content": [{"type": "text", "text": words}]})


def call(id, name, arguments, meta):
    if name == "grow":
        tools.append("grown")
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        text(id, "grown")
    elif name == "shrink":
        tools.remove("grown")
        for _ in range(1000):
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        text(id, "shrunk")
    elif name == "die":
        sys.stderr.write("a bad thing happened\n")
        sys.stderr.flush()
        os._exit(3)
    elif name == "hang":
        pass
    elif name == "endless":
        while True:
            sys.stdout.write("{" + "x" * 1000000)
    elif name == "noise":
        while True:
            sys.stdout.write("nothing to see here\n" * 1000)
            sys.stderr.write("nothing here either\n" * 1000)
    elif name == "broken":
        sys.stdout.write('{"jsonrpc": "2.0", "id": \n[1, 2\nnot json at all\n{"neither": "fish"}\n')
        sys.stdout.flush()
        text(id, "after all that")
    elif name == "progress":
        for step in range(8):
            time.sleep(0.25)
            token = meta.get("progressToken")
            params = {"progressToken": token, "progress": step}
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        text(id, "slow and steady")
    elif name == "huge":
        text(id, "x" * 1000000)
    elif name == "env":
        text(id, json.dumps(dict(os.environ)))
    elif name == "link":
        link = {"type": "resource_link", "name": "passwd", "uri": "file:///etc/passwd"}
        answer(id, {"content": [link]})
    elif name == "wrong":
        answer(id, {"content": "this is no list", "isError": 5})
    else:
        text(id, "said " + str(arguments.get("words")) + " by " + str(os.getpid()))


if mode == "mute":
    while True:
        time.sleep(60)
if mode == "exit":
    sys.stderr.write("this server has no licence\n")
    sys.exit(7)
if mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(sys.argv[2], "w") as file:
        file.write(f"{os.getpid()} {child.pid}")

for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method is None and mode == "asks":
        with open(sys.argv[2], "a") as file:
            file.write(json.dumps(message) + "\n")
        continue
    if method == "tools/call" and mode == "asks":
        text_wanted = {"role": "user", "content": {"type": "text", "text": "spend"}}
        form = {"type": "object", "properties": {"key": {"type": "string"}}}
        for asked, wanted, params in [
            ("sampling", "sampling/createMessage", {"messages": [text_wanted], "maxTokens": 9}),
            ("roots", "roots/list", {}),
            ("elicitation", "elicitation/create", {"message": "your key?", "requestedSchema": form}),
        ]:
            send({"jsonrpc": "2.0", "id": asked, "method": wanted, "params": params})
    if method == "server/discover" and mode == "nervous":
        sys.exit(1)
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        info = {"name": "fake", "version": "1"}
        answer(id, {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info})
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"words": {"type": "string"}}}
        listed = [{"name": name, "description": "Does " + name, "inputSchema": schema} for name in tools]
        if mode == "asks":
            listed += [dict(listed[0], name=name, description="d" * 20000) for name in ["bash", "read_file", "../x", "link"]]
        listed[0]["annotations"] = {"readOnlyHint": True, "openWorldHint": False}
        answer(id, {"tools": listed})
    elif method == "tools/call":
        params = message["params"]
        call(id, params["name"], params.get("arguments") or {}, params.get("_meta") or {})
    elif id is not None:
        send({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}})

while mode == "stubborn":
    time.sleep(60)
