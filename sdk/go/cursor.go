package envai

import (
	"fmt"
	"time"
)

type verdict int

const (
	deliver verdict = iota
	drop
	replay
)

const remembered = 1024

// cursor judges each event against the last one delivered: duplicates, gaps, epochs and restarted numbering. lastSeq
// moves only in settle, after the application has taken the event.
type cursor struct {
	chatID    string
	lastSeq   int64
	epoch     string
	live      bool
	replaying bool
	ids       map[int64]string
	moment    time.Time
	known     bool // whether moment is
}

func newCursor(chatID string, lastSeq int64, epoch string) *cursor {
	return &cursor{chatID: chatID, lastSeq: lastSeq, epoch: epoch, ids: map[int64]string{}}
}

// connected: a new connection answered. It fails if it serves another epoch.
func (c *cursor) connected(epoch string) error {
	c.live = false
	return c.seeEpoch(epoch)
}

func (c *cursor) judge(event *Envelope) (verdict, error) {
	if err := c.seeEpoch(event.epoch); err != nil {
		return drop, err
	}
	switch {
	case event.IsPing():
		c.live = true
		c.see(event.moment)
		return deliver, nil
	case event.Seq <= c.lastSeq:
		return drop, c.checkRestart(event)
	case event.Seq == c.lastSeq+1:
		c.replaying = false
		return deliver, nil
	case c.replaying:
		first, last := c.lastSeq+1, event.Seq-1
		gap := &ReplayGapError{MissingFrom: first, MissingTo: last}
		gap.Message = fmt.Sprintf("events %d..%d are missing and the replay did not bring them back", first, last)
		gap.locate(c.chatID, "", c.lastSeq)
		return drop, gap
	}
	c.replaying = true
	return replay, nil
}

// settle: the application has taken the event.
func (c *cursor) settle(event *Envelope) {
	if event.IsPing() {
		return
	}
	c.lastSeq = event.Seq
	c.see(event.moment)
	delete(c.ids, event.Seq-remembered)
	c.ids[event.Seq] = event.ID
}

// restart begins again at zero, as another log: only ever on the caller's explicit policy.
func (c *cursor) restart(epoch string) {
	*c = *newCursor(c.chatID, 0, epoch)
}

func (c *cursor) see(moment time.Time) {
	if !c.known || moment.After(c.moment) {
		c.moment, c.known = moment, true
	}
}

func (c *cursor) seeEpoch(epoch string) error {
	if epoch == "" {
		return nil
	}
	if c.epoch != "" && epoch != c.epoch {
		return c.expired("epoch_changed", epoch)
	}
	c.epoch = epoch
	return nil
}

// checkRestart: an old number on a new event means that the numbering began again, an epoch nobody announced. A
// duplicate has an id we delivered, or is older than what we know by the server's own clock. Dropping anything else as
// a duplicate would wait for ever.
func (c *cursor) checkRestart(event *Envelope) error {
	if c.ids[event.Seq] == event.ID || !c.known || !event.moment.After(c.moment) {
		return nil
	}
	return c.expired("sequence_reset", c.epoch)
}

func (c *cursor) expired(reason, epoch string) error {
	expired := &CursorExpiredError{Reason: reason, Epoch: epoch}
	expired.Code = "cursor_expired"
	expired.Message = fmt.Sprintf("cursor %d is no longer valid: %s", c.lastSeq, reason)
	expired.locate(c.chatID, "", c.lastSeq)
	return expired
}
