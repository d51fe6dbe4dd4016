package main

import (
	"fmt"
	"path"
	"time"
	"unicode/utf8"

	"gcsup/upload"
)

// batchView renders the state of an upload of many files.
type batchView struct {
	active         map[string]position // by path
	latest         string              // the path of the newest event
	files          int                 // files that ended
	failed         int
	sent, durable  int64 // of the files that ended
	samples        []sample
	waiting        int // active uploads that wait before a retry
	why            string
	until          time.Time
	lastSampleTime time.Time
}

type position struct {
	sent, committed int64
	waiting         bool
}

func newBatchView() *batchView { return &batchView{active: map[string]position{}} }

func (v *batchView) note(e upload.Event, now time.Time) {
	if e.Kind == upload.Waiting {
		v.until, v.why = now.Add(e.Delay), printable(e.Cause)
	}
	v.active[e.Path] = position{e.Sent, e.Committed, e.Kind == upload.Waiting}
	v.latest = e.Path
	v.sample(now)
}

// sample records the bytes sent so far, a few times per second.
func (v *batchView) sample(now time.Time) {
	if now.Sub(v.lastSampleTime) < barEvery {
		return
	}
	v.lastSampleTime = now
	sent, _, _ := v.totals()
	v.samples = append(v.samples, sample{now, sent})
	for len(v.samples) > 2 && now.Sub(v.samples[0].at) > rateWindow {
		v.samples = v.samples[1:]
	}
}

// ended records the outcome of a file.
func (v *batchView) ended(res *upload.Result, err error, now time.Time) {
	p := v.active[res.Path]
	delete(v.active, res.Path)
	v.files++
	switch {
	case err != nil:
		v.failed++
		v.durable += p.committed
	case res.Skipped == upload.SkipNothing && !res.Planned:
		v.durable += res.Size
		p.sent = res.Size
	}
	v.sent += p.sent
	v.sample(now)
}

// totals adds up all files.
func (v *batchView) totals() (sent, durable int64, waiting int) {
	sent, durable = v.sent, v.durable
	for _, p := range v.active {
		sent += p.sent
		durable += p.committed
		if p.waiting {
			waiting++
		}
	}
	return sent, durable, waiting
}

// text returns the state without a file name.
func (v *batchView) text(now time.Time) string {
	sent, durable, waiting := v.totals()
	text := fmt.Sprintf("%d files, %s sent, %s durable", v.files, bytesText(sent), bytesText(durable))
	if v.failed > 0 {
		text += fmt.Sprintf(", %d failed", v.failed)
	}
	if waiting > 0 && waiting == len(v.active) {
		return text + fmt.Sprintf("  waiting: %s, %.0f s left", v.why, max(v.until.Sub(now).Seconds(), 0))
	}
	if rate := meanRate(v.samples, now); rate > 0 {
		text += fmt.Sprintf("  %s/s", bytesText(int64(rate)))
	}
	return text
}

func (v *batchView) plainLine(now time.Time) string { return v.text(now) }

func (v *batchView) bar(now time.Time, columns int) string {
	text := v.text(now)
	left := columns - 1 - utf8.RuneCountInString(text) - 2
	if left < 8 || v.latest == "" {
		return shorten(text, columns-1)
	}
	return text + "  " + shorten(printable(path.Base(v.latest)), left)
}
