package envai

import (
	"bytes"
	"fmt"
)

// sseDecoder makes frames of bytes, however the network cut them. Comments and other fields are read and dropped; a
// frame left open at the end of the stream is incomplete and never delivered.
type sseDecoder struct {
	maxFrame int
	buffer   []byte
	data     []byte
	lines    int
	started  bool
	afterCR  bool
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// feed appends the frames that chunk completes. It fails on a frame beyond the bound.
func (d *sseDecoder) feed(chunk []byte, frames []string) ([]string, error) {
	if d.afterCR && len(chunk) > 0 {
		if chunk[0] == '\n' {
			chunk = chunk[1:]
		}
		d.afterCR = false
	}
	work := chunk
	if len(d.buffer) > 0 {
		d.buffer = append(d.buffer, chunk...)
		work = d.buffer
	}
	if !d.started {
		if len(work) < len(byteOrderMark) && bytes.HasPrefix(byteOrderMark, work) {
			d.keep(work)
			return frames, nil
		}
		work, d.started = bytes.TrimPrefix(work, byteOrderMark), true
	}
	for {
		line, rest, ok := d.cut(work)
		if !ok {
			break
		}
		work = rest
		var err error
		if frames, err = d.line(line, frames); err != nil {
			return frames, err
		}
	}
	d.keep(work)
	if len(d.buffer)+len(d.data) > d.maxFrame {
		return frames, d.tooLarge()
	}
	return frames, nil
}

// keep holds what is no whole line yet. Its room is reused, unless a great frame has made it too large to keep.
func (d *sseDecoder) keep(rest []byte) {
	if cap(d.buffer) > 1<<20 && len(rest) < 1<<16 {
		d.buffer = nil
	}
	d.buffer = append(d.buffer[:0], rest...)
}

// cut takes the first line of work. A CR ends it at once; the LF of a CRLF may still be on its way.
func (d *sseDecoder) cut(work []byte) (line, rest []byte, ok bool) {
	end := bytes.IndexByte(work, '\n')
	head := work
	if end >= 0 {
		head = work[:end]
	}
	if cr := bytes.IndexByte(head, '\r'); cr >= 0 {
		rest = work[cr+1:]
		if len(rest) == 0 {
			d.afterCR = true
		} else if rest[0] == '\n' {
			rest = rest[1:]
		}
		return work[:cr], rest, true
	}
	if end < 0 {
		return nil, work, false
	}
	return head, work[end+1:], true
}

func (d *sseDecoder) line(line []byte, frames []string) ([]string, error) {
	if len(line) == 0 {
		if d.lines > 0 {
			frames = append(frames, string(d.data))
		}
		if d.data, d.lines = d.data[:0], 0; cap(d.data) > 1<<20 {
			d.data = nil
		}
		return frames, nil
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	if string(name) != "data" {
		return frames, nil
	}
	if d.lines > 0 {
		d.data = append(d.data, '\n')
	}
	d.data = append(d.data, bytes.TrimPrefix(value, []byte(" "))...)
	if d.lines++; len(d.data) > d.maxFrame {
		return frames, d.tooLarge()
	}
	return frames, nil
}

func (d *sseDecoder) tooLarge() error {
	return &InvalidFrameError{protocolError(fmt.Sprintf("an event is larger than %d bytes", d.maxFrame), nil)}
}
