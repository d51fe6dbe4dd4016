package main

import (
	"fmt"

	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
	"gcsup/internal/cli/runlog"
	"gcsup/upload"
)

// results writes standard output: JSON Lines, or lines for people. flush of the queue returns
// the first error.
type results struct {
	queue *runlog.Queue
	json  bool
	quiet bool // no lines for people, and no JSON of events
}

// object writes a line of JSON. A later line with the same key replaces one that is queued; ""
// replaces nothing.
func (r *results) object(key string, line any) {
	if data, err := result.Encode(line); err == nil {
		_ = r.queue.Put(key, data)
	}
}

// event writes a line about an event, if there are such lines.
func (r *results) event(key string, line func() result.EventLine) {
	if r.json && !r.quiet {
		r.object(key, line())
	}
}

// outcome writes the result of the file with that number. lines is false if there is no line
// for people for a file that was uploaded.
func (r *results) outcome(file int, t task, status result.Status, lines bool, res *upload.Result, err error) {
	switch {
	case r.json:
		r.object("", result.NewLine(file, t.file(), status, res, err))
	case r.quiet:
	case status == result.OK && lines:
		_, _ = fmt.Fprintln(r.queue, result.Text(t.destination, res))
	case status == result.Planned:
		_, _ = fmt.Fprintf(r.queue, "%s  would be uploaded from %s, %s\n", process.Printable(t.destination), process.Printable(t.source), readable.Bytes(res.Size))
	}
}
