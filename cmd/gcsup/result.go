package main

import (
	"fmt"
	"strconv"
	"time"

	"gcsup/chunk"
	"gcsup/internal/cli/linequeue"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/session"
	"gcsup/upload"
)

// results writes standard output: JSON Lines, or lines for people. flush of the queue returns
// the first error.
type results struct {
	queue *linequeue.Queue
	json  bool
	quiet bool // no lines for people, and no JSON of events
}

// object writes a line of JSON. A later line with the same key replaces one that is queued; ""
// replaces nothing.
func (r *results) object(key string, line any) {
	if data, err := encodeLine(line); err == nil {
		_ = r.queue.Put(key, data)
	}
}

// event writes a line about an event, if there are such lines.
func (r *results) event(key string, line func() eventLine) {
	if r.json && !r.quiet {
		r.object(key, line())
	}
}

// outcome writes the result of the file with that number. lines is false if there is no line
// for people for a file that was uploaded.
func (r *results) outcome(file int, t task, status string, lines bool, res *upload.Result, err error) {
	switch {
	case r.json:
		r.object("", newResultLine(file, t, status, res, err))
	case r.quiet:
	case status == statusOK && lines:
		_, _ = fmt.Fprintln(r.queue, summary(t, res))
	case status == statusPlanned:
		_, _ = fmt.Fprintf(r.queue, "%s  would be uploaded from %s, %s\n", process.Printable(t.destination), process.Printable(t.source), readable.Bytes(res.Size))
	}
}

// summary returns the line of a finished upload.
func summary(t task, res *upload.Result) string {
	o := res.Object
	text := fmt.Sprintf("%s#%s  %s in %v", process.Printable(t.destination), generationText(o), readable.Bytes(o.Size), readable.Elapsed(res.Elapsed))
	if res.Elapsed > 0 && res.BytesSent > 0 {
		text += ", " + readable.Rate(float64(res.BytesSent)/res.Elapsed.Seconds())
	}
	if o.HasCRC32C {
		text += "  crc32c " + chunk.EncodeCRC32C(o.CRC32C)
	}
	if res.SourceRemoved {
		text += "  source removed"
	}
	if res.Resumed {
		text += "  resumed at " + readable.RoundedDown(res.ResumedFrom)
	}
	if res.Retries > 0 {
		text += fmt.Sprintf("  %s, waited %v", readable.Plural(res.Retries, "retry", "retries"), readable.Elapsed(res.Waited))
	}
	if res.Paced >= time.Second {
		text += fmt.Sprintf("  waited %v for the request rate of the bucket", readable.Elapsed(res.Paced))
	}
	if res.BytesResent > 0 {
		text += fmt.Sprintf(", %s sent again", readable.Bytes(res.BytesResent))
	}
	if p := res.Parts; p != nil && p.Rate > 0 {
		text += fmt.Sprintf("  %s: %s", readable.Plural(p.Connections, "connection", "connections"), readable.Rate(float64(p.Rate)))
		if p.RateOfOne > 0 && p.Connections > 1 {
			text += fmt.Sprintf(" (%s each)", readable.Rate(float64(p.RateOfOne)))
		}
	}
	return text
}

func generationText(o *session.Object) string { return strconv.FormatInt(o.Generation, 10) }
