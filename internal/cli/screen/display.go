package screen

import (
	"slices"
	"sync"
	"time"

	"gcsup/internal/cli/process"
	"gcsup/internal/cli/result"
	"gcsup/upload"
)

// maxRows is how many active files are shown at most.
const maxRows = 8

// Display is the state of a run, as the terminal or a log shows it. Events only
// update it, so that thousands of small files per second cost little. Drawing a
// frame costs the same for any number of files: it looks at the active ones.
type Display struct {
	mu     sync.Mutex
	run    Run
	began  bool // there was an event
	active []*activeFile
	rows   []*activeFile // those on the terminal, each in its row until it ends
	ended  struct {
		files, failed, differ int
		sent, committed, done int64 // bytes; done includes those of skipped files
	}
	before  int64 // bytes of active and ended files that an earlier run sent
	samples samples
	listing *activeFile // waits to list the bucket; nil if it never did

	files, size int64 // of the whole run, -1 until they are known
}

// Run is what a Display shows.
type Run struct {
	Work     Work
	Files    int        // -1 if the number is not known
	Parts    bool       // the line of a log has the parts of a file
	Finished func() int // how many files an earlier run finished; nil for none
}

// single reports whether the run is one file.
func (r *Run) single() bool { return r.Files == 1 }

// NewDisplay returns the display of a run.
func NewDisplay(r Run) *Display {
	if r.Finished == nil {
		r.Finished = func() int { return 0 }
	}
	return &Display{run: r, files: int64(r.Files), size: -1}
}

// SetTotals records how many files there are, and their size.
func (d *Display) SetTotals(files, size int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files, d.size = files, size
}

// Note updates the state with an event of the file with that ID.
func (d *Display) Note(id int, name string, e upload.Event, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.began = true
	i := d.find(id)
	if i < 0 {
		i = len(d.active)
		d.active = append(d.active, &activeFile{id: id, name: process.Printable(name), size: -1, work: d.run.Work})
	}
	t := d.active[i]
	was := t.highest
	t.note(e, now)
	if e.Kind == upload.Resumed {
		d.before += t.highest - was
	}
	d.sample(now)
}

// NoteListing updates the state with an event of the listing of the bucket.
func (d *Display) NoteListing(name string, e upload.Event, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.began = true
	d.listing = &activeFile{name: process.Printable(name), size: -1}
	d.listing.note(e, now)
}

// listingTries is how long a listing is still shown as waiting when its wait is over.
// No event reports that the next request succeeded.
const listingTries = 2 * time.Second

// waitingListing returns the listing if it waits, or nil.
func (d *Display) waitingListing(now time.Time) *activeFile {
	if d.listing == nil || !now.Before(d.listing.wait.until.Add(listingTries)) {
		return nil
	}
	return d.listing
}

// End records the outcome of a file.
func (d *Display) End(id int, status result.Status, res *upload.Result, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.began = true
	var t activeFile
	if i := d.find(id); i >= 0 {
		t = *d.active[i]
		d.active = slices.Delete(d.active, i, i+1)
	}
	size := max(t.size, 0)
	if res != nil {
		size = max(res.Size, 0)
	}
	sent, committed := t.highest, t.committed
	switch status {
	case result.OK, result.Same:
		sent, committed = size, size
	case result.Differs, result.Missing:
		d.ended.differ++
	case result.Failed:
		d.ended.failed++
	default:
		sent, committed = 0, 0
	}
	d.ended.files++
	d.ended.sent += sent
	d.ended.committed += committed
	d.ended.done += size
	d.sample(now)
}

// find returns the index of the active file with that ID, or -1. The newest are the most likely.
func (d *Display) find(id int) int {
	for i, t := range slices.Backward(d.active) {
		if t.id == id {
			return i
		}
	}
	return -1
}

// only returns the file of a run of one file, or nil.
func (d *Display) only() *activeFile {
	if d.run.single() && len(d.active) == 1 {
		return d.active[0]
	}
	return nil
}

// sample records the bytes that this run has sent so far, a few times per second.
func (d *Display) sample(now time.Time) {
	if d.samples.due(now) {
		sent, _, _ := d.totals()
		d.samples.add(now, sent-d.before)
	}
}

// totals adds up all files: the bytes sent, those that are committed, and the bytes
// of the run that are sent or need not be.
func (d *Display) totals() (sent, committed, done int64) {
	sent, committed, done = d.ended.sent, d.ended.committed, d.ended.done
	for _, t := range d.active {
		sent += t.highest
		committed += t.committed
		done += t.highest
	}
	return sent, committed, done
}

// progress returns the bytes of the run that are sent, or compared, and committed, and the time left.
func (d *Display) progress(now time.Time) (sent, committed int64, eta string) {
	sent, committed, done := d.totals()
	if d.run.Work == Comparing {
		sent = done // a file that need not be read is compared, too
	}
	if d.size >= 0 && d.run.Finished() == 0 {
		eta = etaText(d.size-done, d.samples.rate(now))
	}
	return sent, committed, eta
}

// visible returns the active files to show, at most n. A file keeps its row. The
// oldest files get the free rows. In a run of many files, those that are about to end
// get none.
func (d *Display) visible(n int, now time.Time) []*activeFile {
	hidden := func(t *activeFile) bool { return !d.run.single() && t.ending(now) }
	d.rows = slices.DeleteFunc(d.rows, func(t *activeFile) bool { return t == nil || hidden(t) || !slices.Contains(d.active, t) })
	if len(d.rows) > n {
		d.rows = d.rows[:n]
	}
	for _, t := range d.active {
		if len(d.rows) == n {
			break
		}
		if !hidden(t) && !slices.Contains(d.rows, t) {
			d.rows = append(d.rows, t)
		}
	}
	return d.rows
}

// A rate is averaged over a window that is long enough for a steady value, and short enough to follow a
// network that changes.
const (
	rateWindow  = 10 * time.Second
	sampleEvery = 200 * time.Millisecond // bounds the number of samples in a window
)

// samples are the offsets of the last rateWindow, oldest first.
type samples []sample

type sample struct {
	at   time.Time
	done int64
}

// due reports whether it is time for another sample.
func (s samples) due(now time.Time) bool {
	return len(s) == 0 || now.Sub(s[len(s)-1].at) >= sampleEvery
}

// add adds a sample, and drops those that are too old, or all if bytes were lost.
func (s *samples) add(now time.Time, done int64) {
	list := *s
	if n := len(list); n > 0 && done < list[n-1].done {
		list = nil
	}
	if n := len(list); n > 1 && now.Sub(list[n-2].at) < sampleEvery {
		list = list[:n-1]
	}
	list = append(list, sample{now, done})
	for len(list) > 2 && now.Sub(list[0].at) > rateWindow {
		list = list[1:]
	}
	*s = list
}

// rate returns bytes per second, or 0 if the rate is unknown.
func (s samples) rate(now time.Time) float64 {
	if len(s) < 2 || now.Sub(s[0].at) < time.Second { // too short for a mean
		return 0
	}
	return float64(s[len(s)-1].done-s[0].done) / now.Sub(s[0].at).Seconds()
}
