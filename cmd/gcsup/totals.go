package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gcsup/internal/cli/exit"
	"gcsup/upload"
)

// maxLeftOver is the maximum number of interrupted files, and of files that were not
// tried, that are named at the end of a batch. All have the same cause.
const maxLeftOver = 3

// runTotals adds up the outcomes of a run.
type runTotals struct {
	start time.Time

	uploaded, planned, skipped, failed, notTried, interrupted int

	finished int   // files that the manifest records as finished
	bytes    int64 // of the uploaded files
	sent     int64 // handed to the network
	resent   int64 // of those, that were handed over before
	requests int
	retries  int
	waited   time.Duration
	code     int // the exit code of a batch
}

// add adds the outcome of one file.
func (t *runTotals) add(status string, res *upload.Result, err error) {
	if res != nil {
		t.sent += res.BytesSent
		t.resent += res.BytesResent
		t.requests += res.Requests
		t.retries += res.Retries
		t.waited += res.Waited
	}
	switch {
	case status == statusSkipped:
		t.skipped++
	case status == statusPlanned:
		t.planned++
	case status == statusOK:
		t.uploaded++
		t.bytes += res.Size
	case errors.Is(err, upload.ErrNotTried):
		t.notTried++
	case errors.Is(err, context.Canceled):
		t.interrupted++
	default:
		t.failed++
	}
	if res != nil && res.Leftover != nil && t.code == exit.OK {
		t.code = exit.Classify(res.Leftover).Code
	}
	if status != statusFailed {
		return
	}
	// 75 if the same command can finish anything, else the first failure's code.
	if code := exit.Classify(err).Code; t.code == exit.OK || code == exit.Temporary {
		t.code = code
	}
}

// fold reports whether a file that ended with err is only counted in messages,
// because others with the same cause were named.
func (t *runTotals) fold(err error) bool {
	switch {
	case errors.Is(err, upload.ErrNotTried):
		return t.notTried >= maxLeftOver
	case errors.Is(err, context.Canceled):
		return t.interrupted >= maxLeftOver
	}
	return false
}

// folded returns a message for each group of files that were only counted.
func (t *runTotals) folded() (messages []string) {
	if n := t.interrupted - maxLeftOver; n > 0 {
		messages = append(messages, "and "+plural(n, "more file was interrupted", "more files were interrupted"))
	}
	if n := t.notTried - maxLeftOver; n > 0 {
		messages = append(messages, "and "+plural(n, "more file was not tried", "more files were not tried"))
	}
	return messages
}

// files returns how many files ended in this run.
func (t *runTotals) files() int {
	return t.uploaded + t.planned + t.skipped + t.failed + t.notTried + t.interrupted
}

// rate returns the average of the bytes sent per second, or 0 if it is unknown.
func (t *runTotals) rate(elapsed time.Duration) float64 {
	if elapsed <= 0 {
		return 0
	}
	return float64(t.sent) / elapsed.Seconds()
}

// textNow returns the totals of a run that ends now as one line.
func (t *runTotals) textNow() string { return t.text(time.Since(t.start)) }

// text returns the totals as one line.
func (t *runTotals) text(elapsed time.Duration) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{t.uploaded, fmt.Sprintf("uploaded (%s)", bytesText(t.bytes))},
		{t.planned, "would be uploaded"}, {t.skipped, "skipped"}, {t.finished, "finished before"}, {t.failed, "failed"},
		{t.interrupted, "interrupted"}, {t.notTried, "not tried"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) == 0 {
		return "no files"
	}
	if t.retries > 0 {
		parts = append(parts, plural(t.retries, "retry", "retries"))
	}
	text := fmt.Sprintf("%s: %s in %v", plural(t.files()+t.finished, "file", "files"), strings.Join(parts, ", "), roundElapsed(elapsed))
	if rate := t.rate(elapsed); t.sent > 0 && rate > 0 {
		text += ", " + rateText(rate)
	}
	return text
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// roundElapsed rounds d to what a person reads.
func roundElapsed(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// line returns the totals for --json.
func (t *runTotals) line(elapsed time.Duration, code int) summaryLine {
	return summaryLine{
		V: 1, Type: "summary", Files: t.files(), Uploaded: t.uploaded, Planned: t.planned, Skipped: t.skipped,
		Failed: t.failed + t.interrupted + t.notTried, Interrupted: t.interrupted, NotTried: t.notTried, FinishedBefore: t.finished,
		Bytes: t.bytes, BytesSent: t.sent, BytesResent: t.resent, Requests: t.requests, Retries: t.retries,
		WaitedMS: t.waited.Milliseconds(), ElapsedMS: elapsed.Milliseconds(),
		BytesPerS: known(int64(t.rate(elapsed)), elapsed > 0), ExitCode: code,
	}
}
