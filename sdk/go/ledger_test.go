package envai

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func openLedger(t *testing.T, path string) *FileLedger {
	t.Helper()
	ledger, err := OpenFileLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ledger.Close() })
	return ledger
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestOneOfManyClaimsWins(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "state", "tools.jsonl")
	ledgers := []*FileLedger{openLedger(t, path), openLedger(t, path), openLedger(t, path)}
	var group sync.WaitGroup
	won := make(chan string, 300)
	for i := range 100 {
		for who, ledger := range ledgers {
			group.Add(1)
			go func() {
				defer group.Done()
				call := fmt.Sprintf("tc_%d", i)
				if known, err := ledger.Claim(ctx, "c", call, "tool", "f", fmt.Sprint(who)); err != nil || known == nil {
					won <- call
				}
			}()
		}
	}
	group.Wait()
	if len(won) != 100 {
		t.Fatal(len(won), "claims were won")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode(), err)
	}
}

func TestALedgerOutlivesItsProcessAndKeepsItsName(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "tools.jsonl")
	first := openLedger(t, path)
	must[*Record](t)(first.Claim(ctx, "c", "begun", "tool", "f", "me"))
	must[*Record](t)(first.Claim(ctx, "c", "done", "tool", "f", "me"))
	check(t, first.Finish(ctx, "c", "done", "out", true), first.Resolve(ctx, "c", "seen", "observed"), first.Note(ctx, "c", "done", "unconfirmed"))
	// A crash in the middle of a write.
	file := must[*os.File](t)(os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0))
	_, err := file.WriteString(`{"record":{"chat_id":"c","call_`)
	check(t, err, file.Close(), first.Close())

	second := openLedger(t, path)
	if second.Holder() != first.Holder() {
		t.Error("the ledger has another name")
	}
	kept := must[[]Record](t)(second.Unsettled(ctx, "c"))
	if len(kept) != 2 || kept[0].CallID != "begun" || kept[1].Output != "out" || !kept[1].IsError || kept[1].Note != "unconfirmed" {
		t.Fatalf("%d %v", len(kept), kept)
	}
	check(t, second.Finish(ctx, "c", "done", "another", false), second.Resolve(ctx, "c", "begun", "turn_ended"))
	if known := must[*Record](t)(second.Get(ctx, "c", "done")); known.Output != "out" {
		t.Error("a finished call finished again")
	}
	if known := must[*Record](t)(openLedger(t, path).Claim(ctx, "c", "begun", "tool", "f", "x")); known == nil || known.State != Resolved {
		t.Error("what is over was claimed", known)
	}
}

func TestCompactingForgetsOutputsAndIsSeenByOthers(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "tools.jsonl")
	ours, theirs := openLedger(t, path), openLedger(t, path)
	output := strings.Repeat("secret ", 10_000)
	for i := range 12 {
		call := fmt.Sprint("tc_", i)
		must[*Record](t)(ours.Claim(ctx, "c", call, "tool", "f", "me"))
		check(t, ours.Finish(ctx, "c", call, output, false), ours.Resolve(ctx, "c", call, "delivered"))
	}
	if info := must[os.FileInfo](t)(os.Stat(path)); info.Size() > 800_000 {
		t.Error("the journal was never compacted:", info.Size())
	}
	check(t, ours.Forget(0))
	if text := must[[]byte](t)(os.ReadFile(path)); strings.Contains(string(text), "secret") {
		t.Error("an output of a resolved call is kept")
	}
	must[*Record](t)(theirs.Claim(ctx, "c", "next", "tool", "f", "them"))
	if known := must[*Record](t)(ours.Get(ctx, "c", "next")); known == nil || known.Owner != "them" {
		t.Error("what another wrote after compacting is not seen")
	}
	if known := must[*Record](t)(theirs.Get(ctx, "c", "tc_1")); known != nil {
		t.Error("what was forgotten is still known")
	}
}
