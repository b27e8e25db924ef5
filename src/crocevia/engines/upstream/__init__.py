"""What every provider over HTTP shares: the client, exact event decoding, retries, the one driver."""
