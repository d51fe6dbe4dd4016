package outbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"gcsup/chunk"
	"gcsup/internal/errkind"
	"gcsup/internal/sourcefile"
	"gcsup/session"
	"gcsup/upload"
)

// task is a file to upload. The fields are copies, because the entry belongs to the table.
type task struct {
	entry   *entry
	name    string
	id      chunk.Identity
	compare bool
	unsaved bool
}

// result is what a goroutine reports to the loop.
type result struct {
	task
	event   event
	attempt Attempt
}

// attempt uploads and disposes of a file.
func (o *Outbox) attempt(ctx context.Context, t task) result {
	path := o.path(t.name)
	keep := o.memory != nil
	call := upload.CallOptions{
		Below:   o.dir,
		Unsaved: t.unsaved,
		// What was found to be complete is what must be sent.
		Accept: func(path string, now fs.FileInfo) error {
			if now.Size() != t.id.Size || now.ModTime().UnixNano() != t.id.ModTimeNS {
				return errAltered
			}
			return o.checkLinks(path, now)
		},
		Observer: func(e upload.Event) { o.observe(t.entry, e) },
	}
	if t.compare {
		call.Skip = upload.SkipIdentical
	}
	if !keep {
		call.Dispose = func(dir *os.Root, path string, info fs.FileInfo, unchanged func() error) error {
			o.verified(t.entry)
			return o.disposer.dispose(dir, path, info, unchanged)
		}
	}
	res := &upload.Result{Path: path}
	up, err := o.up.With(call)
	if err == nil {
		res, err = up.File(ctx, path, o.spec(t.name))
	}
	var left error
	switch {
	case err != nil:
	case keep:
		o.verified(t.entry)
		if left = o.memory.record(res); noSpace(left) {
			o.unrecorded(t.name, left)
			left = nil // it is uploaded: the next process compares it with its object
		}
	case !res.SourceRemoved:
		if left = res.SourceKept; left == nil {
			left = session.ErrOutcomeUnknown // its bytes were not compared
		}
	}
	end := ending{stopping: ctx.Err() != nil, keep: keep, err: err, left: left}
	why := err
	if why == nil {
		why = left
	}
	if why != nil && !end.stopping {
		_, lerr := o.box.lstat(path)
		end.gone = gone(lerr)
	}
	r := result{task: t, event: event{kind: ended, outcome: judge(end)}, attempt: Attempt{Name: t.name, Result: res, Err: err, Left: left}}
	if why != nil {
		r.event.why = newCause(why)
	}
	return r
}

// causeLimit bounds the bytes of a cause, because there may be many.
const causeLimit = 300

func newCause(err error) *cause {
	text := err.Error()
	if len(text) > causeLimit {
		text = text[:causeLimit] + "…"
	}
	return &cause{errkind.Of(err), text}
}

// verified records that the object of a file was verified.
func (o *Outbox) verified(f *entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.table.step(f, event{kind: verified}, o.now(), nil)
}

// unrecorded warns that a kept file could not be recorded because of err. The first warning is for all: there may be
// many files.
func (o *Outbox) unrecorded(name string, err error) {
	o.mu.Lock()
	warned := o.warned
	o.warned = true
	o.mu.Unlock()
	if !warned {
		o.opts.Warn(fmt.Sprintf("%s is uploaded, but cannot be recorded, and perhaps others, too: the next process compares them with their objects: %v", name, err))
	}
}

// observe follows the uploads.
func (o *Outbox) observe(f *entry, e upload.Event) {
	o.mu.Lock()
	o.table.observed(f, e, time.Now())
	if e.Kind == upload.Waiting {
		o.counters.retries++
	}
	o.counters.sent += e.SentDelta
	o.mu.Unlock()
	if o.opts.Observer != nil {
		o.opts.Observer(e)
	}
}

// setAside moves a file that has no attempt left to .failed, unless it has changed.
func (o *Outbox) setAside(f task, attempts int, why cause) event {
	path := o.path(f.name)
	id, err := o.identity(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return event{kind: absent}
	case err == nil && id != f.id:
		return event{kind: glanced, id: id}
	}
	spec := o.spec(f.name)
	err = o.disposer.setAside(path, Failure{
		Name: f.name, Destination: spec.URL(), Kind: why.kind, Error: why.text, Attempts: attempts,
	})
	if err != nil {
		return event{kind: stranded, why: newCause(err)}
	}
	return event{kind: absent}
}

// identity returns the identity of the file at path.
func (o *Outbox) identity(path string) (id chunk.Identity, err error) {
	err = o.box.in(path, func(dir *os.Root, name string) (err error) {
		id, err = sourcefile.StatIdentityIn(dir, name)
		return err
	})
	return id, err
}
