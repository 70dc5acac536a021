"""A model service made of the vendors' own types. It reads every request into them, refuses what they do not know, answers
in them, and tells what the vendors' own clients make of the bytes it sent.

It prints its port. `GET /sent` gives the requests, `GET /accumulated/N` what the vendor's client read from answer N."""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anthropic
import openai
from anthropic.types import Message, RawMessageStreamEvent
from anthropic.types import message_create_params as messages
from anthropic.types.beta import message_create_params as beta_messages
from anthropic.types.beta.beta_content_block_param import BetaContentBlockParam
from anthropic.types.content_block_param import ContentBlockParam
from anthropic.types.model_info import ModelInfo
from openai.types.chat import completion_create_params as completions
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.model import Model
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses import response_create_params as responses
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError


def adapter(kind):
    # The config of a list reaches the types in it; that of the types themselves could not be set.
    return TypeAdapter(list[kind], config=ConfigDict(extra="forbid", strict=True))


def drained(value, block):
    """Lists are checked when they are read, so they are read. A block that only an answer may hold is no block of a request."""
    if isinstance(value, BaseModel):
        return drained(block.validate_python([value.model_dump(exclude_unset=True)])[0], block)
    if isinstance(value, dict):
        return {key: drained(inner, block) for key, inner in value.items()}
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return [drained(inner, block) for inner in value]


BLOCK, BETA_BLOCK = adapter(ContentBlockParam), adapter(BetaContentBlockParam)
SHAPES = {
    ("anthropic", True): (adapter(messages.MessageCreateParamsStreaming), BLOCK),
    ("anthropic", False): (adapter(messages.MessageCreateParamsNonStreaming), BLOCK),
    ("anthropic-beta", True): (adapter(beta_messages.MessageCreateParamsStreaming), BETA_BLOCK),
    ("anthropic-beta", False): (adapter(beta_messages.MessageCreateParamsNonStreaming), BETA_BLOCK),
    ("openai", True): (adapter(responses.ResponseCreateParamsStreaming), BLOCK),
    ("openai", False): (adapter(responses.ResponseCreateParamsNonStreaming), BLOCK),
    ("chat", True): (adapter(completions.CompletionCreateParamsStreaming), BLOCK),
    ("chat", False): (adapter(completions.CompletionCreateParamsNonStreaming), BLOCK),
}
ANTHROPIC_EVENT, OPENAI_EVENT = TypeAdapter(RawMessageStreamEvent), TypeAdapter(ResponseStreamEvent)
SIGNATURE = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+/=\u00e9"
CALLS = ("call_1", "call_2")
SENT, ANSWERS, LOCK = [], [], threading.Lock()


def event_bytes(adapter_, event, named):
    read = adapter_.validate_python(event)
    data = json.dumps(read.model_dump(mode="json", by_alias=True, exclude_unset=True), ensure_ascii=False)
    return (f"event: {event['type']}\n" if named else "").encode() + f"data: {data}\n\n".encode()


def anthropic_content(body):
    """Calls tools together when it is offered some and has no results yet, else speaks."""
    blocks = [block for m in body["messages"] if isinstance(m["content"], list) for block in m["content"]]
    has_results = any(block.get("tool_use_id") in ("toolu_01", "toolu_02") for block in blocks)
    thoughts = []
    if body.get("thinking"):
        thoughts = [
            {"type": "thinking", "thinking": "Two parts.\n\nThe first.", "signature": SIGNATURE},
            {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIw=="},
        ]
    if body.get("tools", [{}])[-1].get("name") == "give_structured_answer":
        return [{"type": "tool_use", "id": "toolu_1", "name": "give_structured_answer", "input": {"answer": 42}}], "tool_use"
    if body.get("tools") and not has_results:
        calls = [
            {"type": "tool_use", "id": f"toolu_0{n}", "name": "echo", "input": {"text": f"{n} \u00fc \"q\""}} for n in (1, 2)
        ]
        return [*thoughts, {"type": "text", "text": "Let me look."}, *calls], "tool_use"
    said = '{"answer": 42}' if body.get("output_config", {}).get("format") else "It is \U0001f600 done."
    return [*thoughts, {"type": "text", "text": said}], "end_turn"


USAGE = {
    "input_tokens": 11, "output_tokens": 1, "cache_creation_input_tokens": 7, "cache_read_input_tokens": 100,
    "service_tier": "standard",
}


def anthropic_message(body, content, reason, output_tokens):
    return {
        "id": f"msg_{len(SENT)}", "type": "message", "role": "assistant", "model": body["model"], "content": content,
        "stop_reason": reason, "stop_sequence": None, "usage": {**USAGE, "output_tokens": output_tokens},
    }


def pieces(text, size=5):
    return [text[at : at + size] for at in range(0, len(text), size)]


def anthropic_stream(body):
    content, reason = anthropic_content(body)
    events = [{"type": "message_start", "message": anthropic_message(body, [], None, 1)}, ]
    for index, block in enumerate(content):
        empty, deltas = dict(block), []
        if block["type"] == "text":
            empty["text"] = ""
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        elif block["type"] == "thinking":
            empty.update(thinking="", signature="")
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        elif block["type"] == "tool_use":
            empty["input"] = {}
            given = pieces(json.dumps(block["input"], ensure_ascii=False), 3)
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *given]]
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    usage = {"output_tokens": 33, "output_tokens_details": {"thinking_tokens": 20}}
    events.append({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage})
    events.append({"type": "message_stop"})
    stream = [event_bytes(ANTHROPIC_EVENT, event, True) for event in events]
    return b"".join([stream[0], b"event: ping\ndata: {\"type\": \"ping\"}\n\n", *stream[1:]])


def openai_items(body):
    has_results = any(item.get("type") == "function_call_output" and item["call_id"] in CALLS for item in body["input"])
    thoughts = []
    if "reasoning.encrypted_content" in (body.get("include") or []):
        summary = [{"type": "summary_text", "text": "**Plan** two calls."}]
        if has_results:
            summary.append({"type": "summary_text", "text": "Then say it."})
        thoughts = [{
            "type": "reasoning", "id": f"rs_{len(SENT)}", "summary": summary, "encrypted_content": "gAAAAABo" + SIGNATURE,
            "status": "completed",
        }]
    if body.get("tools", [{}])[-1].get("name") == "give_structured_answer":
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "give_structured_answer"}
        return [{**call, "arguments": '{"answer": 42}', "status": "completed"}]
    if body.get("tools") and not has_results:
        calls = [{
            "type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": "echo", "status": "completed",
            "arguments": json.dumps({"text": f"{n} \u00fc \"q\""}, ensure_ascii=False),
        } for n in (1, 2)]
        return [*thoughts, *calls]
    said = '{"answer": 42}' if body.get("text", {}).get("format", {}).get("type") == "json_schema" else "It is \U0001f600 done."
    text = [{"type": "output_text", "text": said, "annotations": [], "logprobs": []}]
    message = {"type": "message", "id": f"msg_{len(SENT)}", "role": "assistant", "status": "completed", "content": text}
    return [*thoughts, {**message, "phase": "final_answer"}]


def openai_response(body, items, status):
    usage = {
        "input_tokens": 111, "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 7}, "output_tokens": 22,
        "output_tokens_details": {"reasoning_tokens": 9}, "total_tokens": 133,
    }
    response = {
        "id": f"resp_{len(SENT)}", "object": "response", "created_at": 1.0, "status": status, "model": body["model"],
        "output": items, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        "usage": usage if status == "completed" else None,
    }
    return Response.model_validate(response).model_dump(mode="json", by_alias=True, exclude_unset=True)


def openai_stream(body):
    items = openai_items(body)
    events = [{"type": "response.created", "response": openai_response(body, [], "in_progress")}]
    for index, item in enumerate(items):
        at = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            text = item["content"][0]["text"]
            part = {**item["content"][0], "text": ""}
            empty = {**item, "content": [], "status": "in_progress"}
            events.append({"type": "response.output_item.added", "output_index": index, "item": empty})
            events.append({"type": "response.content_part.added", **at, "content_index": 0, "part": part})
            events += [
                {"type": "response.output_text.delta", **at, "content_index": 0, "delta": piece, "logprobs": []}
                for piece in pieces(text)
            ]
            events.append({"type": "response.output_text.done", **at, "content_index": 0, "text": text, "logprobs": []})
            events.append({"type": "response.content_part.done", **at, "content_index": 0, "part": item["content"][0]})
        elif item["type"] == "function_call":
            empty = {**item, "arguments": "", "status": "in_progress"}
            events.append({"type": "response.output_item.added", "output_index": index, "item": empty})
            events += [
                {"type": "response.function_call_arguments.delta", **at, "delta": piece} for piece in pieces(item["arguments"], 3)
            ]
            done = {"arguments": item["arguments"], "name": item["name"]}
            events.append({"type": "response.function_call_arguments.done", **at, **done})
        else:
            empty = {**item, "summary": []}
            events.append({"type": "response.output_item.added", "output_index": index, "item": empty})
            for number, part in enumerate(item["summary"]):
                where = {**at, "summary_index": number}
                begun = {"type": "summary_text", "text": ""}
                events.append({"type": "response.reasoning_summary_part.added", **where, "part": begun})
                events += [
                    {"type": "response.reasoning_summary_text.delta", **where, "delta": piece} for piece in pieces(part["text"])
                ]
                events.append({"type": "response.reasoning_summary_text.done", **where, "text": part["text"]})
                events.append({"type": "response.reasoning_summary_part.done", **where, "part": part})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": openai_response(body, items, "completed")})
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return b"".join(event_bytes(OPENAI_EVENT, event, True) for event in numbered)


CHAT_USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def chat_answer(body):
    """The arguments of the calls, and what is said where there are none."""
    has_results = any(message.get("tool_call_id") in CALLS for message in body["messages"])
    if body.get("tools") and not has_results:
        return [json.dumps({"text": f"{n} \u00fc \"q\""}, ensure_ascii=False) for n in (1, 2)], None
    shaped = body.get("response_format", {}).get("type") == "json_schema"
    return [], '{"answer": 42}' if shaped else "It is \U0001f600 done."


def chat_completion(body):
    calls, said = chat_answer(body)
    message = {"role": "assistant", "content": said, "refusal": None}
    if calls:
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": "echo", "arguments": given}} for id, given in zip(CALLS, calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop", "logprobs": None}
    whole = {
        "id": f"chatcmpl-{len(SENT)}", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice],
        "usage": CHAT_USAGE,
    }
    read = ChatCompletion.model_validate(whole).model_dump(mode="json", exclude_unset=True)
    return json.dumps(read, ensure_ascii=False).encode()


def chat_stream(body):
    calls, said = chat_answer(body)
    deltas = [{"role": "assistant", "content": ""}]
    for n, arguments in enumerate(calls):
        call = {"index": n, "id": CALLS[n], "type": "function", "function": {"name": "echo", "arguments": ""}}
        deltas.append({"tool_calls": [call]})
        deltas += [{"tool_calls": [{"index": n, "function": {"arguments": piece}}]} for piece in pieces(arguments, 3)]
    deltas += [{"content": piece} for piece in pieces(said or "")]
    reason = "tool_calls" if calls else "stop"
    head = {"id": f"chatcmpl-{len(SENT)}", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    chunks.append({**head, "choices": [], "usage": CHAT_USAGE})
    read = [ChatCompletionChunk.model_validate(chunk).model_dump(mode="json", exclude_unset=True) for chunk in chunks]
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in read) + b"data: [DONE]\n\n"


def answer(vendor, body, streamed):
    if vendor.startswith("anthropic"):
        if streamed:
            return anthropic_stream(body)
        content, reason = anthropic_content(body)
        message = Message.model_validate(anthropic_message(body, content, reason, 33))
        return json.dumps(message.model_dump(mode="json", exclude_unset=True), ensure_ascii=False).encode()
    if vendor == "openai":
        if streamed:
            return openai_stream(body)
        return json.dumps(openai_response(body, openai_items(body), "completed"), ensure_ascii=False).encode()
    return chat_stream(body) if streamed else chat_completion(body)


def accumulated(number, port):
    """What the vendor's own client makes of the bytes of an answer: it is sent to a path that gives them again."""
    vendor = ANSWERS[number][0]
    base = f"http://127.0.0.1:{port}/again/{number}"
    asked = SENT[number]["body"]
    if vendor.startswith("anthropic"):
        client = anthropic.Anthropic(api_key="k", base_url=base, max_retries=0)
        with client.messages.stream(model=asked["model"], max_tokens=9, messages=[{"role": "user", "content": "x"}]) as stream:
            return stream.get_final_message().model_dump(mode="json", exclude_unset=True)
    client = openai.OpenAI(api_key="k", base_url=f"{base}/v1", max_retries=0)
    if vendor == "openai":
        with client.responses.stream(model=asked["model"], input="x") as stream:
            return stream.get_final_response().model_dump(mode="json", exclude_unset=True)
    with client.chat.completions.stream(model=asked["model"], messages=[{"role": "user", "content": "x"}]) as stream:
        return stream.get_final_completion().model_dump(mode="json", exclude_unset=True)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, kind, data):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def reply_json(self, value, status=200):
        self.reply(status, "application/json", json.dumps(value).encode())

    def do_GET(self):
        if self.path == "/sent":
            self.reply_json(SENT)
        elif self.path.startswith("/accumulated/"):
            self.reply_json(accumulated(int(self.path.rsplit("/", 1)[1]), self.server.server_port))
        elif self.path.startswith("/v1/models"):
            if "anthropic-version" in self.headers:
                row = {
                    "id": "claude-sonnet-4-5", "type": "model", "display_name": "Sonnet", "created_at": "2026-01-01T00:00:00Z",
                    "lifecycle": "active", "max_input_tokens": 200000, "max_tokens": 64000,
                }
                rows = [ModelInfo.model_validate(row).model_dump(mode="json", exclude_unset=True)]
                self.reply_json({"data": rows, "has_more": False, "first_id": rows[0]["id"], "last_id": rows[0]["id"]})
            else:
                ids = ["gpt-5.5", "text-embedding-3-small"]
                rows = [Model(id=id, created=1, object="model", owned_by="x").model_dump(mode="json") for id in ids]
                self.reply_json({"object": "list", "data": rows})
        else:
            self.reply_json({"error": {"message": "no such path"}}, 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path.startswith("/again/"):
            _, data, kind = ANSWERS[int(self.path.split("/")[2])]
            self.reply(200, kind, data)
            return
        body = json.loads(body)
        vendor = {"/v1/messages": "anthropic", "/v1/responses": "openai", "/v1/chat/completions": "chat"}.get(self.path)
        if vendor == "anthropic" and "anthropic-beta" in self.headers:
            # The client keeps the betas beside the body.
            vendor = "anthropic-beta"
        streamed = bool(body.get("stream"))
        try:
            shape, block = SHAPES[vendor, streamed]
            drained(shape.validate_python([body])[0], block)
        except (KeyError, ValidationError) as error:
            self.reply_json({"error": {"type": "invalid_request_error", "message": f"{vendor}: {error}"}}, 400)
            return
        with LOCK:
            headers = {name.lower(): value for name, value in self.headers.items()}
            SENT.append({"path": self.path, "vendor": vendor, "headers": headers, "body": body})
            data = answer(vendor, body, streamed)
            kind = "text/event-stream" if streamed else "application/json"
            ANSWERS.append((vendor, data, kind))
        self.reply(200, kind, data)

    def log_message(self, *args):
        pass


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)

    def end_with_parent():
        # The test holds the other end; it closes when the test is gone, however it went.
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=end_with_parent, daemon=True).start()
    server.serve_forever()


main()
