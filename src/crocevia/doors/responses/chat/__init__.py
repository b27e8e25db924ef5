"""`POST /v1/chat/completions`: the older protocol of the same door."""
