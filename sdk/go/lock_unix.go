//go:build unix

package envai

import (
	"os"
	"syscall"
)

// lockFile waits until this process alone holds the file. A process that dies lets go of it.
func lockFile(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			return err
		}
	}
}

func unlockFile(file *os.File) { _ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }
