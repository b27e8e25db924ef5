module github.com/digitalygo/envai-client

go 1.24
