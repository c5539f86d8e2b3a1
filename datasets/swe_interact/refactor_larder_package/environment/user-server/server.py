"""The simulated user: one MCP tool, `ask_user`, and a door for the logs.

Port 8000 serves MCP at /mcp (streamable HTTP); port 8001 serves /export-user-logs?token=...
The user is one person for as long as this process lives: every call sees all earlier ones.
Who answers depends on SIM_USER_MODEL: `script` (default) follows script.yaml, any other name
is a model behind an OpenAI-compatible address. What they say is decided in scripted.py and
model.py, what they see of the work in repo.py.
"""

import asyncio
import hmac
import os
import socket
import sys
import threading
from pathlib import Path

import uvicorn
from mcp.server import MCPServer
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from model import ModelUser
from record import Record
from repo import Repo
from scripted import ScriptedUser

HERE = Path(__file__).parent
MCP_PORT = 8000
EXPORT_PORT = int(os.environ.get("SIM_USER_EXPORT_PORT", "8001"))
EXPORT_TOKEN = os.environ.get("SIM_USER_EXPORT_TOKEN") or "swe-interact"

record = Record(os.environ.get("SIM_USER_PRIVATE_LOG_DIR", "/tmp/user-server-logs"))
server = MCPServer("simulated-user", log_level="WARNING")
one_at_a_time = threading.Lock()


def make_user() -> ScriptedUser | ModelUser:
    """Choose who answers."""
    name = os.environ.get("SIM_USER_MODEL") or "script"
    repo = Repo(record)
    if name == "script":
        return ScriptedUser(HERE / "script.yaml", repo, record)
    missing = [key for key in ("LITELLM_BASE_URL", "LITELLM_API_KEY") if not os.environ.get(key)]
    if missing:
        sys.exit(f"SIM_USER_MODEL={name} needs {' and '.join(missing)}")
    return ModelUser(name, HERE / "persona.md", repo, record)


user = make_user()


@server.tool(structured_output=False)
def ask_user(question: str) -> str:
    """Say something to the user, or ask, and wait for the answer."""
    with one_at_a_time:
        number = record.next_call()
        record.event("ask_user_start", preview=question)
        try:
            answer = user.reply(question)
        except Exception as problem:
            record.event("ask_user_error", error=f"{type(problem).__name__}: {problem}")
            raise
        record.ask_user(call=number, question=question, answer=answer)
        record.event("ask_user_end", preview=answer)
        return answer


@server.custom_route("/export-user-logs", methods=["GET"])
async def export_user_logs(request: Request) -> Response:
    """Hand out the logs, on the export port and to those with the token only."""
    at_the_door = request.scope["server"][1] == EXPORT_PORT
    token = request.query_params.get("token", "")
    if not at_the_door or not hmac.compare_digest(token.encode(), EXPORT_TOKEN.encode()):
        return JSONResponse({"error": "not allowed"}, status_code=403)
    return JSONResponse({"files": record.files()})


def listen(port: int) -> socket.socket:
    """Open a listening socket on every address."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.bind(("0.0.0.0", port))
    return opened


def main() -> None:
    """Serve both ports until told to stop."""
    app = server.streamable_http_app(host="0.0.0.0")
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    record.event("server_start", user=user.describe())
    asyncio.run(uvicorn.Server(config).serve(sockets=[listen(MCP_PORT), listen(EXPORT_PORT)]))


if __name__ == "__main__":
    main()
