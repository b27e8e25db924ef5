#!/bin/sh
# The agent call with curl: a streamed answer, a tool call, and the answer after the tool's result.
#
#   export CROCEVIA_PROJECT_KEY=…      (printed by the first `make run`)
#   sh examples/curl.sh
#
# CROCEVIA_URL (http://127.0.0.1:8111) and CROCEVIA_PROJECT (default) can be set too.
set -eu

URL="${CROCEVIA_URL:-http://127.0.0.1:8111}"
PROJECT="${CROCEVIA_PROJECT:-default}"
: "${CROCEVIA_PROJECT_KEY:?set it to the project key that the first \`make run\` printed}"

# The key travels in a file descriptor: arguments of a program can be read by everyone on the machine.
agent() {
  printf 'header = "X-Pepper-Key: %s"\n' "$CROCEVIA_PROJECT_KEY" |
    curl --config - --silent --show-error --no-buffer --fail-with-body "$URL/agent" \
      -H "Content-Type: application/json" \
      -H "Accept: text/event-stream" \
      -H "X-Pepper-Project: $PROJECT" \
      -d "$1"
}

TOOLS='[{
  "name": "get_home_status",
  "description": "Short status of the home: temperature, presence, gate.",
  "parameters": {"type": "object", "properties": {}, "required": []}
}]'

echo "--- A streamed answer"
agent '{"stream": true, "messages": [{"role": "user", "content": "What is the capital of Japan?"}]}'

echo "--- A tool call: event tool_call, then done with stop_reason tool_use"
agent '{"stream": true, "tools": '"$TOOLS"',
  "messages": [{"role": "user", "content": "What is the temperature at home?"}]}'

echo "--- The answer after the result that your program sends back"
agent '{"stream": true, "tools": '"$TOOLS"',
  "messages": [
    {"role": "user", "content": "What is the temperature at home?"},
    {"role": "assistant", "content": null,
     "tool_calls": [{"id": "c1", "name": "get_home_status", "arguments": {}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "{\"temperature_c\": 19.5, \"gate\": \"closed\"}"}
  ]}'
