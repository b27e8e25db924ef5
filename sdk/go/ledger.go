package envai

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// The states of a Record.
const (
	Started  = "started"  // the handler may have run
	Finished = "finished" // its output is known, the delivery of it is not
	Resolved = "resolved" // over
)

// Record is what a ledger knows of one client-tool call. It prints neither its output nor its fingerprint.
type Record struct {
	ChatID      string    `json:"chat_id"`
	CallID      string    `json:"call_id"`
	Tool        string    `json:"tool"`
	Fingerprint string    `json:"fingerprint"`
	State       string    `json:"state"`
	Owner       string    `json:"owner"`
	Output      string    `json:"output,omitempty"`
	IsError     bool      `json:"is_error,omitempty"`
	Note        string    `json:"note,omitempty"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// Format prints the call and its state, whatever the verb.
func (r Record) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "Record{%s %s}", r.CallID, r.State)
}

// LogValue is what a log gets of it.
func (r Record) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(r)) }

// Ledger keeps what happened to each client-tool call where a crash cannot lose it, keyed by chat and call. Claim is
// recorded before a handler runs: whatever happens next, it runs at most once. Any store that keeps these promises will
// do; each method is atomic and durable when it returns, and safe for concurrent use.
type Ledger interface {
	// Holder is under which name calls are claimed from the server: the ledger's, so that its next life has them still.
	Holder() string
	// Claim records Started and returns nil, or returns the record that is already there, untouched.
	Claim(ctx context.Context, chatID, callID, tool, fingerprint, owner string) (*Record, error)
	// Finish keeps a handler's outcome, before it is delivered. Only a Started call can finish.
	Finish(ctx context.Context, chatID, callID, output string, isError bool) error
	// Resolve: the call is over. It creates the record if there is none, and forgets its output.
	Resolve(ctx context.Context, chatID, callID, note string) error
	// Note remembers how the last delivery attempt went.
	Note(ctx context.Context, chatID, callID, note string) error
	// Get is a call's record, nil if there is none.
	Get(ctx context.Context, chatID, callID string) (*Record, error)
	// Unsettled are the calls of a chat, or of all for "", that are Started or Finished, oldest first.
	Unsettled(ctx context.Context, chatID string) ([]Record, error)
}

type callKey struct{ chatID, callID string }

// FileLedger is the default ledger: one file, readable by its owner only, synced at every step. Several processes may
// share it.
//
// The file is a journal of records, one JSON line each, the last of a call the valid one. A line that a crash left
// unfinished was never acknowledged and is cut off by the next writer.
type FileLedger struct {
	path   string
	mu     sync.Mutex
	lock   *os.File
	file   *os.File
	offset int64
	wasted int64
	holder string
	known  map[callKey]Record
	closed bool
}

// compactAfter is how many bytes of outdated lines a journal may carry.
const compactAfter = 256 << 10

type journalLine struct {
	Holder string  `json:"holder,omitempty"`
	Record *Record `json:"record,omitempty"`
}

// DefaultLedgerPath is where the ledger lives unless the application says otherwise: the user's state folder.
func DefaultLedgerPath() (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "envai-client", "tools.jsonl"), nil
}

// OpenFileLedger opens the ledger in a file, which it creates if there is none.
func OpenFileLedger(path string) (*FileLedger, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	l := &FileLedger{path: path, lock: lock}
	if err := l.do(func() error { return l.named() }); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// named gives a new ledger its name.
func (l *FileLedger) named() error {
	if l.holder != "" {
		return nil
	}
	l.holder = rand.Text()
	return l.write(journalLine{Holder: l.holder})
}

// do runs work with the file to itself, and knowing all that others have written.
func (l *FileLedger) do(work func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errors.New("envai: the ledger is closed")
	}
	if err := lockFile(l.lock); err != nil {
		return err
	}
	defer unlockFile(l.lock)
	if err := l.catchUp(); err != nil {
		return err
	}
	return work()
}

// catchUp reads what was written since, from the file that has the name now.
func (l *FileLedger) catchUp() error {
	if err := l.reopen(); err != nil {
		return err
	}
	reader := bufio.NewReader(io.NewSectionReader(l.file, l.offset, 1<<62))
	for {
		line, err := reader.ReadBytes('\n')
		if err == io.EOF {
			if len(line) > 0 {
				return l.file.Truncate(l.offset) // a crash left it; we hold the lock
			}
			return nil
		}
		if err != nil {
			return err
		}
		if err := l.take(line); err != nil {
			return err
		}
	}
}

func (l *FileLedger) take(line []byte) error {
	var read journalLine
	if err := json.Unmarshal(line, &read); err != nil {
		return errors.New("envai: the ledger holds a line that is none of its own")
	}
	l.offset += int64(len(line))
	if read.Holder != "" {
		l.holder = read.Holder
	}
	if read.Record != nil {
		key := callKey{read.Record.ChatID, read.Record.CallID}
		if _, had := l.known[key]; had {
			l.wasted += int64(len(line))
		}
		l.known[key] = *read.Record
	}
	return nil
}

// reopen follows the name to the file that has it: another process may have compacted.
func (l *FileLedger) reopen() error {
	named, err := os.Stat(l.path)
	if err == nil && l.file != nil {
		if held, bad := l.file.Stat(); bad == nil && os.SameFile(named, held) {
			return nil
		}
	}
	file, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file, l.offset, l.wasted, l.known = file, 0, 0, map[callKey]Record{}
	return nil
}

func (l *FileLedger) write(line journalLine) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if _, err := l.file.WriteAt(text, l.offset); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	return l.take(text)
}

func (l *FileLedger) put(record Record) error {
	record.UpdatedAt = time.Now()
	if err := l.write(journalLine{Record: &record}); err != nil {
		return err
	}
	if l.wasted > compactAfter {
		return l.compact(func(Record) bool { return true })
	}
	return nil
}

// compact writes what is kept to a new file and gives it the name.
func (l *FileLedger) compact(keep func(Record) bool) error {
	part := l.path + ".part"
	file, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	kept, old, offset, wasted, known := l.sorted(keep), l.file, l.offset, l.wasted, l.known
	l.file, l.offset, l.wasted, l.known = file, 0, 0, map[callKey]Record{}
	err = l.rewrite(kept)
	if err == nil {
		err = os.Rename(part, l.path)
	}
	if err != nil {
		_ = file.Close()
		l.file, l.offset, l.wasted, l.known = old, offset, wasted, known
		return err
	}
	return old.Close()
}

func (l *FileLedger) rewrite(records []Record) error {
	writer := bufio.NewWriter(l.file)
	lines := []journalLine{{Holder: l.holder}}
	for i := range records {
		lines = append(lines, journalLine{Record: &records[i]})
	}
	for _, line := range lines {
		text, err := json.Marshal(line)
		if err != nil {
			return err
		}
		text = append(text, '\n')
		if _, err := writer.Write(text); err != nil {
			return err
		}
		if err := l.take(text); err != nil {
			return err
		}
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	return l.file.Sync()
}

func (l *FileLedger) sorted(keep func(Record) bool) []Record {
	var out []Record
	for _, record := range l.known {
		if keep(record) {
			out = append(out, record)
		}
	}
	slices.SortFunc(out, func(a, b Record) int {
		return cmp.Or(a.UpdatedAt.Compare(b.UpdatedAt), cmp.Compare(a.CallID, b.CallID))
	})
	return out
}

// Holder is the ledger's name.
func (l *FileLedger) Holder() string { return l.holder }

// Claim is that of Ledger.
func (l *FileLedger) Claim(_ context.Context, chatID, callID, tool, fingerprint, owner string) (found *Record, err error) {
	err = l.do(func() error {
		if record, ok := l.known[callKey{chatID, callID}]; ok {
			found = &record
			return nil
		}
		return l.put(Record{ChatID: chatID, CallID: callID, Tool: tool, Fingerprint: fingerprint, State: Started, Owner: owner})
	})
	return found, err
}

// Finish is that of Ledger.
func (l *FileLedger) Finish(_ context.Context, chatID, callID, output string, isError bool) error {
	return l.do(func() error {
		record, ok := l.known[callKey{chatID, callID}]
		if !ok || record.State != Started {
			return nil
		}
		record.State, record.Output, record.IsError = Finished, output, isError
		return l.put(record)
	})
}

// Resolve is that of Ledger.
func (l *FileLedger) Resolve(_ context.Context, chatID, callID, note string) error {
	return l.do(func() error {
		record := l.known[callKey{chatID, callID}]
		record.ChatID, record.CallID, record.State, record.Output, record.Note = chatID, callID, Resolved, "", note
		return l.put(record)
	})
}

// Note is that of Ledger.
func (l *FileLedger) Note(_ context.Context, chatID, callID, note string) error {
	return l.do(func() error {
		record, ok := l.known[callKey{chatID, callID}]
		if !ok {
			return nil
		}
		record.Note = note
		return l.put(record)
	})
}

// Get is that of Ledger.
func (l *FileLedger) Get(_ context.Context, chatID, callID string) (found *Record, err error) {
	err = l.do(func() error {
		if record, ok := l.known[callKey{chatID, callID}]; ok {
			found = &record
		}
		return nil
	})
	return found, err
}

// Unsettled is that of Ledger.
func (l *FileLedger) Unsettled(_ context.Context, chatID string) (found []Record, err error) {
	err = l.do(func() error {
		found = l.sorted(func(r Record) bool { return r.State != Resolved && (chatID == "" || r.ChatID == chatID) })
		return nil
	})
	return found, err
}

// Forget drops resolved calls untouched for that long, and what is left of outputs. Keep them longer than any replay.
func (l *FileLedger) Forget(olderThan time.Duration) error {
	before := time.Now().Add(-olderThan)
	return l.do(func() error {
		return l.compact(func(r Record) bool { return r.State != Resolved || r.UpdatedAt.After(before) })
	})
}

// Close releases the file.
func (l *FileLedger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	err := l.lock.Close()
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	return err
}
