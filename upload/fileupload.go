package upload

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"gcsup/internal/objectmeta"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/connections"
	"gcsup/upload/internal/content"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/parts"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
)

// fileUpload makes the object of an open file, step by step: [nextStep] decides which one is next.
type fileUpload struct {
	*openFile
	there *destination
	know  facts

	want    Spec          // the options of the object if the upload starts over
	given   Spec          // those of the call, without defaults
	doc     *state.Upload // the saved upload; nil if there is none
	first   Spec          // the options with which it began, with the secret of its key
	damaged bool          // the saved upload was damaged, and set aside

	loaded  content.Loaded // of a small source
	zipped  zippedFile     // if the file is compressed
	chosen  *state.Parts   // of a new upload in parts
	divided *partedFile    // of a saved upload in parts; nil before it is needed
	session *engine.Run    // the last one
	failed  error          // with which the session ended; nil if the object is made
	because error          // why the upload may have to start over
}

// noTurn is for a call that is not one of a batch, and need not wait for others.
func noTurn(context.Context) error { return nil }

// uploadFile uploads the file at path.
func uploadFile(ctx context.Context, c *call, path string) error {
	if err := c.validate(); err != nil {
		return err
	}
	f, err := openPath(ctx, c, path, "")
	if err != nil {
		return err
	}
	return f.uploadUnlisted(ctx, path, "")
}

// uploadSource uploads a source that has no path. identity is the one that the caller
// gave; "" if the upload is not saved.
func uploadSource(ctx context.Context, c *call, file *source.File, identity string) error {
	if err := c.validate(); err != nil {
		return err
	}
	f, err := newOpenFile(c, file, "the source")
	if err != nil {
		return err
	}
	return f.uploadUnlisted(ctx, "", identity)
}

// uploadUnlisted uploads the source, unless the rule of the call skips it, and closes it.
func (f *openFile) uploadUnlisted(ctx context.Context, path, identity string) error {
	defer f.close()
	f.detect(f.file.Head)
	there := &destination{openFile: f, turn: noTurn}
	if f.rule != SkipNothing {
		if skipped, err := there.skipped(ctx, false, nil); skipped || err != nil {
			return f.thenRemove(ctx, err)
		}
	}
	return f.thenRemove(ctx, there.upload(ctx, path, identity))
}

// upload uploads the source. If there is a store, the upload is saved, unless the
// source has neither a path nor an identity.
func (d *destination) upload(ctx context.Context, path, identity string) error {
	f := d.newUpload(d.spec)
	if d.u.opts.Store == nil || path == "" && identity == "" {
		d.setSpec(f.want)
		return f.run(ctx)
	}
	draft := state.Upload{ID: d.u.hashID(d.spec, "identity", identity), SourceIdentity: identity}
	if identity == "" {
		var err error
		if draft.SourcePath, err = filepath.Abs(path); err != nil {
			return err
		}
		if draft.ID, err = d.u.ID(path, d.spec); err != nil {
			return err
		}
	}
	ctx = d.storeContext(ctx)
	d.identify(draft.ID, f.want)
	if d.small() && !saved.Exists(ctx, d.u.opts.Store, draft.ID) {
		return f.run(ctx)
	}
	doc, damaged, err := d.openJournal(ctx, draft, d.waitForHolder)
	if err != nil {
		return err
	}
	defer d.journal.Close()
	f.know.made = unknown
	switch {
	case doc != nil:
		if err := f.adopt(doc); err != nil {
			return err
		}
	case damaged != nil:
		f.damaged = true
		d.events.post(Event{Kind: Discarded, Cause: damaged.Error()})
		warnOfLostParts(d.events, draft.ID, d.spec.Bucket)
	}
	return f.run(ctx)
}

// resumeFile resumes the saved upload of a file.
func resumeFile(ctx context.Context, c *call, doc *state.Upload) error {
	file, err := openPath(ctx, c, doc.SourcePath, "")
	if err != nil {
		return err
	}
	defer file.close()
	f := (&destination{openFile: file, turn: noTurn}).newUpload(doc.Spec)
	f.want = doc.Spec
	if err = f.resume(doc); err == nil {
		err = f.run(ctx)
	}
	return file.thenRemove(ctx, err)
}

// newUpload returns the upload of a file to an object with the options in given. It is not saved.
func (d *destination) newUpload(given Spec) *fileUpload {
	return &fileUpload{
		openFile: d.openFile, there: d, given: given, want: given.Resolved(),
		know: facts{made: no, replace: d.u.opts.RestartChanged},
	}
}

// adopt makes f continue the upload that doc describes, as the options of the call permit.
func (f *fileUpload) adopt(doc *state.Upload) error {
	if f.rule == SkipSameTime {
		f.given = sameMTime(f.given, doc.Spec)
	}
	f.know.restart, f.know.differs = f.u.opts.Restart, doc.Spec.Conflict(f.given) != ""
	if f.want.EncryptionKey.IsZero() && !f.know.restart {
		f.want.EncryptionKey = doc.Spec.EncryptionKey // if the upload starts over, the object is still encrypted
	}
	return f.resume(doc)
}

// resume makes f continue the upload that doc describes.
func (f *fileUpload) resume(doc *state.Upload) (err error) {
	f.doc = doc
	switch {
	case doc.Parts == nil:
		f.know.saved = savedSession
	case doc.Parts.Over:
		f.know.saved, f.know.made = savedRemoval, unknown
	default:
		f.know.saved = savedParts
	}
	if f.know.restart || f.know.differs {
		return nil
	}
	if why := useless(f.u, doc); why != "" {
		f.know.unusable, f.because = true, errors.New(why)
	}
	f.first, err = f.u.opts.unlock(doc.Spec, f.want.EncryptionKey)
	f.want.EncryptionKey = f.first.EncryptionKey
	return err
}

// warnOfLostParts warns of what a damaged upload may have stored in parts. Its saved upload does not
// tell.
func warnOfLostParts(e *events, id, bucket string) {
	e.post(Event{Kind: Warning, Cause: fmt.Sprintf("if the damaged upload was in parts, they are left and billed: remove temporary objects with \"gcloud storage rm 'gs://%s/%s%s-*'\", or in a bucket with hierarchical namespace or managed folders \"gcloud storage rm 'gs://%s/**%s%s-*'\", and let a rule of the bucket abort multipart uploads",
		bucket, parts.TemporaryDir, id, bucket, parts.TemporaryName, id)})
}

// run takes one step after the other until the object is made, or the upload fails.
func (f *fileUpload) run(ctx context.Context) error {
	for {
		var err error
		switch next := nextStep(f.know); next.step {
		case lookAgain:
			err = f.lookAgain(ctx)
		case findObject:
			err = f.findObject(ctx)
		case compareSource:
			err = f.compareSource(ctx)
		case prepare:
			err = f.prepare(ctx)
		case divide:
			err = f.divide(ctx)
		case startOver:
			err = f.startOver(ctx, next.why)
		case resumeSession:
			f.resumeSession(ctx)
		case newSession:
			f.newSession(ctx, nil)
		case measureSession:
			f.newSession(ctx, f.measure)
		case continueSession:
			f.session.Unmeasured()
			f.attempt(ctx)
		case resumeParts:
			if err = f.resumeParts(ctx); f.know.tried != wrongBytes {
				return err
			}
		case sendParts:
			f.journal.Begin(f.file.Identity(), f.chosen)
			p := f.newParts(true)
			return p.end(ctx, p.makeObject(ctx))
		case insert:
			return f.insert(ctx, f.source, f.loaded, f.there.seen)
		case refuseOptions:
			return fmt.Errorf("%w: %s", state.ErrOptionsDiffer, f.doc.Spec.Conflict(f.given))
		case refuseSource:
			return engine.SourceError(f.because)
		case finish:
			return f.finishSession(ctx, ofFile, f.session, f.failed)
		case stop:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// lookAgain finds out whether another process made the object meanwhile.
func (f *fileUpload) lookAgain(ctx context.Context) error {
	made, err := f.there.madeMeanwhile(ctx, f.given, f.damaged)
	f.know.made = factOf(made)
	return err
}

// findObject finds out whether the saved upload, of which only the removal is left, made its object.
func (f *fileUpload) findObject(ctx context.Context) error {
	f.divided = f.newParts(false)
	made, err := f.divided.parts.Find(ctx)
	f.know.made, f.because = factOf(made != nil), errors.New("it had ended, and only its cleanup was left")
	return err
}

// compareSource compares the file with the one with which the saved upload began, and sets the options with which it
// began.
func (f *fileUpload) compareSource(ctx context.Context) error {
	if err := f.settle(ctx); err != nil {
		return err
	}
	spec := f.first
	spec.NoClobber = spec.NoClobber || f.spec.NoClobber
	f.setSpec(spec)
	f.compress()
	err := f.sameSource(ctx, f.doc)
	if err != nil && !errors.Is(err, session.ErrSourceChanged) {
		return err
	}
	f.know.changed, f.because = factOf(err != nil), err
	return nil
}

// prepare checks the preconditions, and loads the source if it is small.
func (f *fileUpload) prepare(ctx context.Context) error {
	f.compress()
	if f.spec.Gzip {
		f.source.Restart()
		f.setSpec(withMetadata(f.spec, objectmeta.UncompressedSize, f.file.Total()))
	}
	if err := f.precondition.Look(ctx, f.wire()); err != nil {
		return err
	}
	if f.precondition.Unmet() != nil {
		f.know.unmet = yes
		return nil
	}
	load := f.source.Load
	if !f.small() {
		if err := f.settle(ctx); err != nil {
			return err
		}
		load = f.source.LoadWindow
		if zipped, ok := f.source.(*source.Gzip); ok {
			load = func(ctx context.Context) (content.Loaded, error) { return f.loadHeld(ctx, zipped) }
		}
	}
	var err error
	if f.loaded, err = load(ctx); err != nil {
		return engine.SourceFailed(ctx, err)
	}
	f.know.unmet, f.know.small = no, factOf(f.loaded.Open != nil && f.u.opts.single(f.loaded.Size))
	if f.know.small == yes {
		return nil
	}
	return f.settle(ctx)
}

// divide chooses the parts of the file. The reason why it has none is reported, unless its first bytes are measured.
func (f *fileUpload) divide(ctx context.Context) error {
	var plan parts.Plan
	var err error
	if zipped, ok := f.source.(*source.Gzip); ok {
		plan, err = f.planZipped(ctx, zipped)
	} else {
		plan, err = planParts(ctx, f.call, f.file)
	}
	if err != nil && f.know.tried == slowSession {
		f.know.tried, f.failed = sessionEnded, err // the session stays
		return nil
	}
	f.chosen = plan.Parts
	switch {
	case plan.Parts != nil:
		f.know.parts = inParts
	case plan.Way != parts.Measured:
		f.know.parts = undivided
		f.reportUndivided("file", plan.Why)
	case f.know.tried == noSession:
		f.know.parts = unmeasured
	default: // the measurement is too old by now
		f.know.parts = undivided
	}
	return err
}

// newSession uploads the file through a new session. measure measures its first bytes, if it is not nil.
func (f *fileUpload) newSession(ctx context.Context, measure func() engine.Measure) {
	var record engine.Recorder = engine.Unrecorded{}
	if f.know.unmet == no {
		record = f.journal.RecordFile(f.source)
	}
	t := f.newTransfer(f.source, record, measure)
	f.session = engine.NewRun(t, &f.precondition, session.State{Size: f.source.Total()})
	f.attempt(ctx)
}

// resumeSession continues the session of the saved upload.
func (f *fileUpload) resumeSession(ctx context.Context) {
	f.source.Adopt(savedSource(f.doc))
	t := f.newTransfer(f.source, f.journal.RecordFile(f.source), nil)
	size := f.source.Total()
	t.Wire.Pos.Size.Store(size)
	t.Wire.Pos.Committed.Store(f.doc.Committed)
	f.session = engine.ResumedRun(t, &f.precondition, saved.Adopted(f.doc.Session, size), engine.Resumption{
		URI: f.doc.URI, Opened: f.doc.Created, Seek: f.source.Seek, Resumed: f.resumed,
	})
	f.attempt(ctx)
}

// attempt drives the session until it has ended, or something suggests another step.
func (f *fileUpload) attempt(ctx context.Context) {
	f.failed = f.makeInSession(ctx, f.session)
	f.know.tried = sessionEnded
	if slow, ok := errors.AsType[*slowConnection](f.failed); ok {
		f.know.tried, f.know.parts, f.because = slowSession, undecided, slow
	} else if differs, ok := errors.AsType[*source.CopyDiffers](f.failed); ok {
		f.know.tried, f.because = wrongSource, engine.SourceError(differs)
	} else if other, ok := errors.AsType[*source.OtherCompressor](f.failed); ok {
		f.know.tried, f.because = wrongBytes, other
	}
}

// startOver discards what is saved and sent. The saved upload is deleted before its session is canceled. After a crash
// in between, the session expires: if it were canceled first, the next call would find a saved upload whose session
// another client seems to have canceled.
func (f *fileUpload) startOver(ctx context.Context, why reason) error {
	var drop session.URI
	usable := f.doc != nil && state.Adopt(f.u.client, f.doc) == nil
	switch {
	case why == slowLink || why == otherCompressor && f.session != nil:
		drop = f.session.URI()
	case usable && f.doc.Parts != nil && why != otherEndpoint:
		if err := newPartedFile(f.call, nil, false).abandon(ctx); err != nil {
			return err
		}
		f.divided = nil
	case usable && (why == asRequested || why == sourceChanged):
		drop = f.doc.URI
	}
	if why == otherCompressor {
		f.want = f.spec // the options of the first run, as after the loss of a session
	}
	f.source.Restart()
	f.requests.Pos.Sent.Store(0)
	f.requests.Pos.Committed.Store(0)
	f.result.update(func(r *Result) { r.Resumed, r.ResumedFrom, r.Parts = false, 0, nil })
	f.setSpec(f.want)
	kind, cause := Discarded, "discarded, as requested"
	if why == slowLink {
		kind = Divided
	}
	if why != asRequested {
		cause = f.because.Error()
	}
	f.events.post(Event{Kind: kind, Cause: cause})
	switch err := f.journal.Discard(); {
	case err == nil:
		f.wire().Drop(ctx, drop)
	case kind == Divided: // the saved upload of the parts replaces this one
		f.events.post(Event{Kind: Warning, Cause: err.Error()})
	default:
		return err
	}
	f.doc, f.know = nil, f.know.startedOver(why)
	return nil
}

// resumeParts continues a saved upload in parts.
func (f *fileUpload) resumeParts(ctx context.Context) error {
	if f.divided == nil {
		f.divided = f.newParts(false)
	}
	if f.divided.parts.Started() {
		f.result.update(func(r *Result) { r.Resumed = true })
		f.events.post(Event{Kind: Resumed})
	}
	err := f.divided.makeObject(ctx)
	if other, ok := errors.AsType[*source.OtherCompressor](err); ok {
		f.know.tried, f.because = wrongBytes, other
		return nil
	}
	return f.divided.end(ctx, err)
}

// slowConnection is the error of a request whose first bytes were slow.
type slowConnection struct{ rate int64 } // bytes per second

func (e *slowConnection) Error() string {
	return fmt.Sprintf("one connection reaches only %.1f MiB/s", float64(e.rate)/(1<<20))
}

// measure returns the measurement of the rate of a single connection. If it is high enough, the reason is reported,
// and otherwise the request ends with a slowConnection. It begins again after a failed request: if the session has too
// many bytes by then, it stays.
func (f *fileUpload) measure() engine.Measure {
	limit, link := f.u.opts.RateLimit, f.u.link
	held, measure := limit.held(), link.Measure()
	return func(n int64, took time.Duration) (done bool, err error) {
		rate, done := measure(n, took-(limit.held()-held))
		if !done {
			return false, nil
		}
		if need, why := link.Need(f.u.opts.Parallel.options().Connections); need != connections.Several {
			f.reportUndivided("file", parts.Reasons{why})
			return true, nil
		}
		if committed := f.requests.Pos.Committed.Load(); committed > 0 && committed+n > connections.Discardable {
			f.reportUndivided("file", parts.Reasons{"its session has too many bytes to be discarded, after a failed request"})
			return true, nil
		}
		return true, &slowConnection{rate}
	}
}
