package main

import (
	"sync"
	"time"

	"gcsup/internal/cli/result"
	"gcsup/internal/cli/screen"
	"gcsup/upload"
)

// verifyProgress follows the files of a run of verify.
type verifyProgress struct {
	display *screen.Display

	mu    sync.Mutex
	files trackedFiles
}

func newVerifyProgress(d *screen.Display) *verifyProgress {
	return &verifyProgress{display: d, files: newTrackedFiles()}
}

// observe receives the library's events.
func (p *verifyProgress) observe(e upload.Event) {
	if e.Kind.Terminal() {
		return // end follows
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Path == "" {
		p.display.NoteListing("listing "+e.Spec.Bucket, e, time.Now())
		return
	}
	p.display.Note(p.files.of(e.Spec.URL()).id, e.Path, e, time.Now())
}

// end records the outcome of a file.
func (p *verifyProgress) end(t task, status result.Status, res *upload.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := p.files.of(t.destination).id
	delete(p.files.active, t.destination)
	if t.entry == "" { // the number of all files does not include entries
		p.display.End(id, status, res, time.Now())
	}
}
