"""The process behind the ``local`` provider: serves one GGUF file on loopback, as OpenAI would.

Started as a plain script by :mod:`~pytest_harbor.gateway.local`, in the interpreter that has
llama-cpp-python; it imports nothing of ours. Its first line of output is its address, printed when
the model is loaded. It ends with its standard input, which ends when its starter does, however.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from typing import Any

SEED = 1
"""So that a request that says nothing of chance is answered alike in every run."""


def main(model: str, name: str, context: int) -> None:
    """Load the model, say where it is served, and serve until the starter is gone."""
    threading.Thread(target=_leave_with_starter, daemon=True).start()
    app = _application(model, name, context)
    import uvicorn

    bound = socket.create_server(("127.0.0.1", 0))  # listens: who is told the address can call
    print(f"http://127.0.0.1:{bound.getsockname()[1]}", flush=True)  # noqa: T201
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[bound])


def _application(model: str, name: str, context: int) -> Any:
    from llama_cpp.server.app import create_app
    from llama_cpp.server.settings import ModelSettings, ServerSettings

    # Its threads wait for each other by spinning: more than there are free cores, and they crawl.
    threads = max(1, (os.cpu_count() or 1) // 2)
    settings = ModelSettings(
        model=model,
        model_alias=name,
        n_ctx=context,
        n_threads=threads,
        n_threads_batch=threads,
        seed=SEED,
        verbose=False,
    )
    # by default it breaks a stream off when another request comes
    server = ServerSettings(interrupt_requests=False)
    return create_app(server_settings=server, model_settings=[settings])


def _leave_with_starter() -> None:
    while os.read(0, 4096):  # sys.stdin would be locked while the interpreter ends
        pass
    os._exit(0)  # at once, whatever is being computed


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
