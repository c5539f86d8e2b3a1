"""The model gateway: the one door through which an episode's model calls go.

It runs on the host, in a thread of its own. A party of an episode (the agent, the simulated user,
a judge) gets a secret address at which it finds OpenAI chat completions, OpenAI responses,
Anthropic messages and Google's Gemini API; keys stay here. What each call took is in a ledger, and
budgets end it. MCP servers that the agent is granted get such addresses too, and every call of a
tool is kept.

    gateway = Gateway().start()
    gateway.begin("episode", Terms(ledger=path, prices=prices, budget=Budget(usd=5)))
    base_url = gateway.listen("172.30.0.1")             # where the group can reach it
    access = gateway.open("episode", "agent", ModelServer("policy", base_url=..., key_env=...),
                          base_url=base_url)
    ...                                                 # access.url, access.v1, access.token
    relay = gateway.relay("episode", "user-server", "http://user-server:8000/mcp",
                          base_url=base_url)            # relay.url; then gateway.mcp_calls()
    gateway.aim(relay, "http://172.30.0.3:8000")
    summary = gateway.revoke("episode")                 # the address is dead, the sums are final

The public names are those below; the room's other modules are its own matter. Web server and
HTTP client are imported when the gateway starts, not with this package.
"""

from pytest_harbor.gateway.accounts import Access, Terms
from pytest_harbor.gateway.budgets import Spent
from pytest_harbor.gateway.ledger import Call, Summary, summarize
from pytest_harbor.gateway.model_server import Budget, ModelServer, Price
from pytest_harbor.gateway.relay_door import RelayAccess
from pytest_harbor.gateway.relay_log import McpCall
from pytest_harbor.gateway.server import Gateway
from pytest_harbor.gateway.wires.base import Tool, Usage, find_tool

__all__ = [
    "Access",
    "Budget",
    "Call",
    "Gateway",
    "McpCall",
    "ModelServer",
    "Price",
    "RelayAccess",
    "Spent",
    "Summary",
    "Terms",
    "Tool",
    "Usage",
    "find_tool",
    "summarize",
]
