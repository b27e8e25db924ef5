//go:build !unix

package envai

import "os"

// Elsewhere one process at a time may use a ledger's file.
func lockFile(*os.File) error { return nil }

func unlockFile(*os.File) {}
