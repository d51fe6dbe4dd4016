package result

import (
	"cmp"
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

// MaxNamed is the maximum number of interrupted files, of files whose retries were used
// up, of files that were not tried, and of sources that were not removed, that are named in a
// batch. They usually have the same cause.
const MaxNamed = 3

// Totals adds up the outcomes of a run.
type Totals struct {
	Start time.Time

	Uploaded, Skipped, Failed, NotTried, Interrupted int // files

	Finished  int                  // files that the manifest records as finished
	Bytes     int64                // of the uploaded files
	Sent      int64                // handed to the network
	Resent    int64                // of those, that were handed over before
	Retries   int                  // of requests
	Waited    time.Duration        // before retries
	Rates     *upload.RequestRates // of the run; nil before it has a connection
	Code      int                  // the exit code of a batch
	Deletions *Deletions           // nil if nothing may be deleted

	planned         int   // files
	plannedBytes    int64 // of those
	exhausted       int   // files that failed because their retries were used up
	removed         int   // sources
	kept            int   // sources that could not be removed
	requests        int
	throttled       time.Duration
	throttledBucket string // for whose rate the last of these files waited
}

// Add adds the outcome of one file.
func (t *Totals) Add(status Status, res *upload.Result, err error) {
	if res != nil {
		t.Sent += res.BytesSent
		t.Resent += res.BytesResent
		t.requests += res.Requests
		t.Retries += res.Retries
		t.Waited += res.Waited
		if t.throttled += res.Throttled; res.Throttled > 0 {
			t.throttledBucket = res.Spec.Bucket
		}
		if res.SourceRemoved {
			t.removed++
		}
		if res.SourceKept != nil {
			t.kept++
		}
	}
	switch {
	case status == Skipped:
		t.Skipped++
	case status == Planned:
		t.planned++
		t.plannedBytes += res.Size
	case status == OK:
		t.Uploaded++
		t.Bytes += res.Size
	case errors.Is(err, upload.ErrNotTried):
		t.NotTried++
	case errors.Is(err, context.Canceled):
		t.Interrupted++
	default:
		t.Failed++
		if errors.Is(err, session.ErrRetriesExhausted) {
			t.exhausted++
		}
	}
	if undone := Undone(res); undone != nil && t.Code == exit.OK {
		t.Code = exit.Classify(undone).Code
	}
	if status != Failed {
		return
	}
	t.FailedWith(err)
}

// FailedWith notes the error of a file or an object. The exit code is 75 if the same command can
// finish anything, else that of the first failure.
func (t *Totals) FailedWith(err error) {
	if code := exit.Classify(err).Code; t.Code == exit.OK || code == exit.Temporary {
		t.Code = code
	}
}

// Fold reports whether a file that ended with err is only counted in messages,
// because others with the same cause were named.
func (t *Totals) Fold(err error) bool {
	switch {
	case errors.Is(err, upload.ErrNotTried):
		return t.NotTried >= MaxNamed
	case errors.Is(err, context.Canceled):
		return t.Interrupted >= MaxNamed
	case errors.Is(err, session.ErrRetriesExhausted):
		return t.exhausted >= MaxNamed
	}
	return false
}

// FoldKept reports whether another source that was not removed is only counted in messages.
func (t *Totals) FoldKept() bool { return t.kept >= MaxNamed }

// Folded returns a message for each group of files that were only counted.
func (t *Totals) Folded() (messages []string) {
	if n := t.kept - MaxNamed; n > 0 {
		messages = append(messages, "and "+readable.Plural(n, "more source was not removed", "more sources were not removed"))
	}
	if n := t.exhausted - MaxNamed; n > 0 {
		messages = append(messages, "and "+readable.Plural(n, "more file", "more files")+" failed, because the retries were used up")
	}
	if n := t.Interrupted - MaxNamed; n > 0 {
		messages = append(messages, "and "+readable.Plural(n, "more file was interrupted", "more files were interrupted"))
	}
	if n := t.NotTried - MaxNamed; n > 0 {
		messages = append(messages, "and "+readable.Plural(n, "more file was not tried", "more files were not tried"))
	}
	return messages
}

// Files returns how many files ended in this run.
func (t *Totals) Files() int {
	return t.Uploaded + t.planned + t.Skipped + t.Failed + t.NotTried + t.Interrupted
}

// None reports whether no file ended and there is no object without a file.
func (t *Totals) None() bool { return t.Files()+t.Finished == 0 && len(t.Deletions.texts()) == 0 }

// Rate returns the average of the bytes sent per second, or 0 if it is unknown.
func (t *Totals) Rate(elapsed time.Duration) float64 {
	if elapsed <= 0 {
		return 0
	}
	return float64(t.Sent) / elapsed.Seconds()
}

// TextNow returns the totals of a run that ends now as one line.
func (t *Totals) TextNow() string { return t.Text(time.Since(t.Start)) }

// Text returns the totals as one line.
func (t *Totals) Text(elapsed time.Duration) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{t.Uploaded, fmt.Sprintf("uploaded (%s)", readable.Bytes(t.Bytes))},
		{t.planned, fmt.Sprintf("would be uploaded (%s)", readable.Bytes(t.plannedBytes))}, {t.Skipped, "skipped"}, {t.Finished, "finished before"}, {t.Failed, "failed"},
		{t.Interrupted, "interrupted"}, {t.NotTried, "not tried"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	parts = append(parts, t.Deletions.texts()...)
	if len(parts) == 0 {
		return "no files"
	}
	if t.removed > 0 {
		parts = append(parts, readable.Plural(t.removed, "source removed", "sources removed"))
	}
	if t.kept > 0 {
		parts = append(parts, readable.Plural(t.kept, "source not removed", "sources not removed"))
	}
	if t.Retries > 0 {
		parts = append(parts, readable.Plural(t.Retries, "retry", "retries"))
	}
	text := fmt.Sprintf("%s: %s in %v", readable.Plural(t.Files()+t.Finished, "file", "files"), strings.Join(parts, ", "), readable.Elapsed(elapsed))
	if rate := t.Rate(elapsed); t.Sent > 0 && rate > 0 {
		text += ", " + readable.Rate(rate)
	}
	return text + t.throttledText()
}

// throttledText returns the rate that requests waited for, or "" if there was no such wait.
func (t *Totals) throttledText() string {
	if t.throttled < time.Second {
		return ""
	}
	for bucket, rate := range t.Rates.All() {
		if bucket == t.throttledBucket {
			return fmt.Sprintf(", throttled by the request rate of gs://%s, now %.0f per second", bucket, rate.PerSecond())
		}
	}
	return ""
}

// Summary returns the totals for --json.
func (t *Totals) Summary(elapsed time.Duration, code int) SummaryLine {
	return SummaryLine{
		V: 1, Type: "summary", Files: t.Files(), Uploaded: t.Uploaded, Planned: t.planned, Skipped: t.Skipped,
		Failed: t.Failed + t.Interrupted + t.NotTried, Interrupted: t.Interrupted, NotTried: t.NotTried, FinishedBefore: t.Finished,
		SourcesRemoved: t.removed, Bytes: t.Bytes, PlannedBytes: t.plannedBytes, BytesSent: t.Sent, BytesResent: t.Resent, Requests: t.requests, Retries: t.Retries,
		WaitedMS: t.Waited.Milliseconds(), ThrottledMS: t.throttled.Milliseconds(), ElapsedMS: elapsed.Milliseconds(),
		BytesPerS: Known(int64(t.Rate(elapsed)), elapsed > 0), Deletions: t.Deletions, ExitCode: code,
	}
}

// Undone returns what failed after the object of an upload existed; nil if nothing did.
// res may be nil.
func Undone(res *upload.Result) error {
	if res == nil {
		return nil
	}
	return cmp.Or(res.Leftover, res.SourceKept)
}
