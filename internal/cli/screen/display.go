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
	mu      sync.Mutex
	run     Run
	began   bool // there was an event
	active  []*activeFile
	rows    []*activeFile // those on the terminal, each in its row until it ends
	ended   struct{ files, failed, differ int }
	sum     sums        // of the active and the ended files
	before  int64       // bytes of these files that an earlier run sent
	meter   meter       // of the bytes that this run sent
	listing *activeFile // waits to list the bucket; nil if it never did

	files, size int64 // of the whole run, -1 until they are known
}

// sums are numbers of bytes: those sent, those committed, and those that are sent or need not be.
type sums struct{ sent, committed, done int64 }

// replace replaces the part of a file in the sums.
func (s *sums) replace(was, is sums) {
	s.sent += is.sent - was.sent
	s.committed += is.committed - was.committed
	s.done += is.done - was.done
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
	was := t.sums()
	t.note(e, now)
	d.sum.replace(was, t.sums())
	if e.Kind == upload.Resumed {
		d.before += t.highest - was.sent
	}
	d.meter.add(now, d.sum.sent-d.before)
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
	if d.listing == nil || !now.Before(d.listing.until.Add(listingTries)) {
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
	is := sums{t.highest, t.committed, size}
	switch status {
	case result.OK, result.Same:
		is = sums{size, size, size}
	case result.Differs, result.Missing:
		d.ended.differ++
	case result.Failed:
		d.ended.failed++
	default:
		is = sums{done: size}
	}
	d.ended.files++
	d.sum.replace(t.sums(), is)
	d.meter.add(now, d.sum.sent-d.before)
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

// markEvery is half of the time over which a rate is averaged: long enough for a steady value, and short
// enough to follow a network that changes.
const markEvery = 5 * time.Second

// sampleEvery is the least time between two recorded offsets, so that the files that change at one moment make
// one sample.
const sampleEvery = 200 * time.Millisecond

// meter measures the rate of an offset, from one or two times markEvery ago on.
type meter struct{ from, mark, last sample }

type sample struct {
	at   time.Time // zero for none
	done int64
}

// add records an offset. A lower one than before makes the rate unknown, because bytes were lost.
func (m *meter) add(now time.Time, done int64) {
	is := sample{now, done}
	switch {
	case m.last.at.IsZero() || done < m.last.done:
		*m = meter{is, is, is}
	case now.Sub(m.last.at) < sampleEvery:
		return
	case now.Sub(m.mark.at) >= markEvery:
		m.from, m.mark = m.mark, is
	}
	m.last = is
}

// rate returns bytes per second, or 0 if the rate is unknown.
func (m *meter) rate(now time.Time) float64 {
	elapsed := now.Sub(m.from.at)
	if m.last.at.IsZero() || elapsed < time.Second { // too short for a mean
		return 0
	}
	return float64(m.last.done-m.from.done) / elapsed.Seconds()
}
