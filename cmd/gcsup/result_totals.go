package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/readable"
	"gcsup/session"
	"gcsup/upload"
)

// maxLeftOver is the maximum number of interrupted files, of files whose retries were used
// up, of files that were not tried, and of sources that were not removed, that are named in a
// batch. They usually have the same cause.
const maxLeftOver = 3

// runTotals adds up the outcomes of a run.
type runTotals struct {
	start time.Time

	uploaded, planned, skipped, failed, notTried, interrupted int

	exhausted    int   // files that failed because their retries were used up
	finished     int   // files that the manifest records as finished
	removed      int   // sources
	kept         int   // sources that could not be removed
	bytes        int64 // of the uploaded files
	plannedBytes int64 // of those that would be uploaded
	sent         int64 // handed to the network
	resent       int64 // of those, that were handed over before
	requests     int
	retries      int
	waited       time.Duration
	paced        time.Duration
	pacedBucket  string               // for whose rate the last of these files waited
	rates        *upload.RequestRates // of the run; nil before it has a connection
	code         int                  // the exit code of a batch

	deletions *deletionTotals // nil if nothing may be deleted
}

// add adds the outcome of one file.
func (t *runTotals) add(status string, res *upload.Result, err error) {
	if res != nil {
		t.sent += res.BytesSent
		t.resent += res.BytesResent
		t.requests += res.Requests
		t.retries += res.Retries
		t.waited += res.Waited
		if t.paced += res.Paced; res.Paced > 0 {
			t.pacedBucket = res.Spec.Bucket
		}
		if res.SourceRemoved {
			t.removed++
		}
		if res.SourceKept != nil {
			t.kept++
		}
	}
	switch {
	case status == statusSkipped:
		t.skipped++
	case status == statusPlanned:
		t.planned++
		t.plannedBytes += res.Size
	case status == statusOK:
		t.uploaded++
		t.bytes += res.Size
	case errors.Is(err, upload.ErrNotTried):
		t.notTried++
	case errors.Is(err, context.Canceled):
		t.interrupted++
	default:
		t.failed++
		if errors.Is(err, session.ErrRetriesExhausted) {
			t.exhausted++
		}
	}
	if undone := leftUndone(res); undone != nil && t.code == exit.OK {
		t.code = exit.Classify(undone).Code
	}
	if status != statusFailed {
		return
	}
	t.failedWith(err)
}

// failedWith notes the error of a file or an object. The exit code is 75 if the same command can
// finish anything, else that of the first failure.
func (t *runTotals) failedWith(err error) {
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
	case errors.Is(err, session.ErrRetriesExhausted):
		return t.exhausted >= maxLeftOver
	}
	return false
}

// folded returns a message for each group of files that were only counted.
func (t *runTotals) folded() (messages []string) {
	if n := t.kept - maxLeftOver; n > 0 {
		messages = append(messages, "and "+readable.Plural(n, "more source was not removed", "more sources were not removed"))
	}
	if n := t.exhausted - maxLeftOver; n > 0 {
		messages = append(messages, "and "+readable.Plural(n, "more file", "more files")+" failed, because the retries were used up")
	}
	if n := t.interrupted - maxLeftOver; n > 0 {
		messages = append(messages, "and "+readable.Plural(n, "more file was interrupted", "more files were interrupted"))
	}
	if n := t.notTried - maxLeftOver; n > 0 {
		messages = append(messages, "and "+readable.Plural(n, "more file was not tried", "more files were not tried"))
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
		{t.uploaded, fmt.Sprintf("uploaded (%s)", readable.Bytes(t.bytes))},
		{t.planned, fmt.Sprintf("would be uploaded (%s)", readable.Bytes(t.plannedBytes))}, {t.skipped, "skipped"}, {t.finished, "finished before"}, {t.failed, "failed"},
		{t.interrupted, "interrupted"}, {t.notTried, "not tried"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	parts = append(parts, t.deletions.texts()...)
	if len(parts) == 0 {
		return "no files"
	}
	if t.removed > 0 {
		parts = append(parts, readable.Plural(t.removed, "source removed", "sources removed"))
	}
	if t.kept > 0 {
		parts = append(parts, readable.Plural(t.kept, "source not removed", "sources not removed"))
	}
	if t.retries > 0 {
		parts = append(parts, readable.Plural(t.retries, "retry", "retries"))
	}
	text := fmt.Sprintf("%s: %s in %v", readable.Plural(t.files()+t.finished, "file", "files"), strings.Join(parts, ", "), readable.Elapsed(elapsed))
	if rate := t.rate(elapsed); t.sent > 0 && rate > 0 {
		text += ", " + readable.Rate(rate)
	}
	return text + t.pacedText()
}

// pacedText returns the rate that requests waited for, or "" if there was no such wait.
func (t *runTotals) pacedText() string {
	if t.paced < time.Second {
		return ""
	}
	for bucket, rate := range t.rates.All() {
		if bucket == t.pacedBucket {
			return fmt.Sprintf(", paced by the request rate of gs://%s, now %.0f per second", bucket, rate.PerSecond())
		}
	}
	return ""
}

// line returns the totals for --json.
func (t *runTotals) line(elapsed time.Duration, code int) summaryLine {
	return summaryLine{
		V: 1, Type: "summary", Files: t.files(), Uploaded: t.uploaded, Planned: t.planned, Skipped: t.skipped,
		Failed: t.failed + t.interrupted + t.notTried, Interrupted: t.interrupted, NotTried: t.notTried, FinishedBefore: t.finished,
		SourcesRemoved: t.removed, Bytes: t.bytes, PlannedBytes: t.plannedBytes, BytesSent: t.sent, BytesResent: t.resent, Requests: t.requests, Retries: t.retries,
		WaitedMS: t.waited.Milliseconds(), PacedMS: t.paced.Milliseconds(), ElapsedMS: elapsed.Milliseconds(),
		BytesPerS: known(int64(t.rate(elapsed)), elapsed > 0), Deletions: t.deletions, ExitCode: code,
	}
}
