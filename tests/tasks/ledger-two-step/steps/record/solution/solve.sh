#!/bin/bash
set -e
while read -r amount; do
    curl -sf -d '{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "add_entry", "arguments": {"amount": '"$amount"'}}}' http://ledger:8000/mcp
done < amounts.txt
