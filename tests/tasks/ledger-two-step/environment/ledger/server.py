import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROWS = []
TOOL = {"name": "add_entry", "description": "Append an amount to the ledger",
        "inputSchema": {"type": "object", "required": ["amount"],
                        "properties": {"amount": {"type": "integer"}}}}

def handle(method, params):
    if method == "initialize":
        return {"protocolVersion": params.get("protocolVersion", "2025-03-26"),
                "capabilities": {"tools": {}}, "serverInfo": {"name": "ledger", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        ROWS.append(int(params["arguments"]["amount"]))
        json.dump(ROWS, open("/tmp/ledger.json", "w"))
        return {"content": [{"type": "text", "text": str(sum(ROWS))}]}
    return {}

class Handler(BaseHTTPRequestHandler):
    def reply(self, code, body):
        data = json.dumps(body).encode() if body is not None else b""
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.reply(200, ROWS) if self.path == "/rows" else self.reply(200, "ok")

    def do_POST(self):
        msg = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in msg:
            return self.reply(202, None)
        result = handle(msg["method"], msg.get("params") or {})
        self.reply(200, {"jsonrpc": "2.0", "id": msg["id"], "result": result})

ThreadingHTTPServer(("0.0.0.0", 8000), Handler).serve_forever()
