// Package envai is a client for the Envai API and the Agent Team Protocol.
//
// A Client groups the operations of the contract into services. A chat's events come as a stream that survives lost
// connections, restarts of the server and slow readers, each event once and in order:
//
//	client, err := envai.New(envai.WithBaseURL("http://127.0.0.1:8111"), envai.WithAPIKey(key))
//	stream := client.Chats.SendAndStream(ctx, chatID, "Hello")
//	for event, err := range stream.All() {
//		if err != nil {
//			return err
//		}
//		if delta, ok := event.(*envai.TextDeltaEvent); ok {
//			fmt.Print(delta.Data.Delta)
//		}
//	}
//
// Client tools run in this program, each call verified, recorded in a ledger and run at most once; its output is sent
// until the server acknowledged it: see ChatsService.RunClientTools and WithTools.
//
// Errors are types for errors.As; every one of them holds an EnvaiError. Nothing that this package prints or logs is a
// key, a signed URL, or what people, models and tools wrote.
package envai
