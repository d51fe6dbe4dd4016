package upload

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"sync"
	"time"
	"unicode/utf8"

	"gcsup/chunk"
	"gcsup/internal/grace"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/parts"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
	"gcsup/upload/internal/spool"
	"gcsup/upload/internal/stream"
)

// spooled is a call whose source is in a spool.
type spooled struct {
	*call
	spool  *spool.Spool
	source *spool.Source
	record *saved.StreamRecord
	kept   chan struct{}   // closed when the upload is saved, and it is known how it is sent
	halt   func()          // ends the reading of the input
	window context.Context // ends with the input
	ended  func()          // ends window

	run   *engine.Run // the session; nil while there is none
	parts *partedFile // nil unless the stream is sent in parts
}

// spooledID is the beginning of the IDs of spooled streams that may be sent in parts, so that the next stream in
// parts finds what killed processes left.
const spooledID = "spooled-"

// unfinishable reports whether a saved upload is that of a spooled stream in parts whose object cannot be made.
// Unlike a session, its parts never expire.
func unfinishable(doc *state.Upload) bool {
	return doc.Spool != nil && doc.Parts != nil && (doc.Parts.Over || Describe(doc).Incomplete)
}

// sendSpooled uploads the bytes of r, and keeps them in a spool until the service has
// committed them.
func sendSpooled(ctx context.Context, c *call, r io.Reader) (err error) {
	ctx, c.interrupt = context.WithCancelCause(ctx)
	defer c.interrupt(nil)
	ctx = c.storeContext(ctx)
	if !utf8.ValidString(c.u.source) {
		return fmt.Errorf("%w: the stream has the name %q: want UTF-8", session.ErrInvalid, c.u.source)
	}
	o := c.u.opts.Spool
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	id := c.u.hashID(c.spec, "stream", rand.Text()) // no other call sends these bytes
	if c.u.opts.Parallel != nil {
		id = spooledID + id
	}
	c.identify(id, c.spec)
	if _, _, err := c.openJournal(ctx, state.Upload{ID: id, SourceIdentity: c.u.source, Spool: &state.Spool{Dir: dir}}, nil); err != nil {
		return err
	}
	defer c.journal.Close()
	sp, err := spool.Create(ctx, dir, id, o.limit())
	if err != nil {
		return err
	}
	defer sp.Close()
	s := &spooled{call: c, spool: sp, source: spool.NewSource(sp), record: c.journal.RecordStream(), kept: make(chan struct{})}
	s.window, s.ended = context.WithCancel(ctx)
	defer s.ended()
	head := spool.NewHeadReader(r)
	s.fill(ctx, head)
	defer s.halt()
	if err := s.begin(ctx, head); err != nil {
		return s.end(ctx, err)
	}
	s.divide(ctx)
	close(s.kept)
	if s.parts == nil {
		s.run = s.newRun()
	} else {
		defer s.removeEarlierStreams(ctx)()
	}
	return s.upload(ctx)
}

// fill starts to read the input.
func (s *spooled) fill(ctx context.Context, r *spool.HeadReader) {
	spec, expect := s.spec, s.expect
	var in io.Reader = r
	stopZip := func() {}
	if spec.Gzip {
		in, stopZip = s.u.compressor.Reader(expect.Reader(r))
		expect.Size, s.expect.Size = nil, nil // it is the size before compression
	}
	ctx, cancel := context.WithCancel(ctx) // of the confirmation
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer r.Close() // if nothing more is read
		s.spool.Fill(spool.Input{
			Reader: in, Stop: stop,
			Ended: func(whole chunk.Checkpoint) error {
				// A stream with a recorded end can be completed, so that a process which finds
				// its files must find the upload, too.
				s.ended()
				select {
				case <-s.kept:
				case <-stop:
					return fmt.Errorf("upload not saved: %w", fs.ErrClosed)
				}
				if err := expect.CheckEnd(ctx, whole.Offset); err != nil {
					return err
				}
				if err := engine.ExpectCRC32C(spec, whole.CRC32C); err != nil || s.parts == nil {
					return err
				}
				return s.saveParts(ctx, whole.Offset)
			},
			Waits:     func(why string, err error) { s.events.post(Event{Kind: InputWaits, Cause: why, Err: err}) },
			Continues: func() { s.events.post(Event{Kind: InputContinues}) },
		})
	}()
	s.halt = sync.OnceFunc(func() {
		stopZip()
		close(stop)
		cancel()
		select {
		case <-done:
			return
		default:
		}
		if r.SetReadDeadline(time.Unix(1, 0)) == nil {
			defer r.SetReadDeadline(time.Time{})
		}
		<-done
	})
}

// begin saves the upload when the type of its content is known.
func (s *spooled) begin(ctx context.Context, head *spool.HeadReader) error {
	select {
	case <-head.Known:
	case <-ctx.Done():
		return engine.NewInterruption(ctx, nil)
	}
	s.detect(func() []byte { return head.Head })
	s.setSpec(s.spec.Resolved())
	s.journal.BeginStream()
	return s.journal.Save(ctx)
}

// divide starts to send the stream in parts, unless it is sent over one connection. A failure is no reason to stop:
// the session has the retries of an upload whose input lasts.
func (s *spooled) divide(ctx context.Context) {
	divisible, why := s.undivided()
	if limit := s.u.opts.Spool.limit(); divisible && !parts.StreamWindow(limit, limit) {
		divisible, why = false, parts.Reasons{"its spool is too small for parts"}
	}
	if !divisible {
		s.reportUndivided("stream", why)
		return
	}
	patience := s.u.opts.patience()
	first, cancel := context.WithTimeout(s.window, patience)
	defer cancel()
	size := cmp.Or(int64(s.u.opts.Window), stream.DefaultWindow)
	now, err := s.spool.Await(first, func(now spool.Status) bool { return now.Read > size || now.Waits != "" })
	switch {
	case ctx.Err() != nil || err != nil && s.window.Err() != nil: // the upload is interrupted, or the stream is short
		return
	case err != nil && first.Err() != nil:
		s.reportUndivided("stream", slowSource(patience))
		return
	case err != nil: // the session reports it
		return
	case now.Full:
		s.reportUndivided("stream", parts.Reasons{"the disk of its spool is full"}) // a session needs less space
		return
	}
	planning, cancel := s.untilEnded(ctx)
	defer cancel()
	plan, err := startParts(planning, s.call, s.result.label.get().id, parts.Destination{}, func(p *state.Parts) { s.journal.Begin(chunk.Identity{}, p) })
	switch {
	case err != nil:
		plan.Why = parts.Reasons{cmp.Or(context.Cause(planning), err).Error()}
	case plan.Parts != nil:
		s.parts = s.newParts(math.MaxInt64, true)
		s.warnOfLimit(plan)
		return
	}
	s.journal.BeginStream()
	s.reportUndivided("stream", plan.Why)
}

// planWait is how long the end of the input waits until it is known whether the stream is sent in parts.
const planWait = 2 * time.Second

// errPlanWait is why a stream whose input has ended is not sent in parts.
var errPlanWait = errors.New("its input has ended, and the service does not answer")

// untilEnded returns a context that also ends soon after the input: its end must be recorded even if the service is
// away, because a process that is killed before would lose the stream.
func (s *spooled) untilEnded(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.window, func() {
		select {
		case <-time.After(planWait):
			cancel(errPlanWait)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// newParts returns the upload in the parts of the journal. size is that of the stream, or more.
func (s *spooled) newParts(size int64, fresh bool) *partedFile {
	d := division(s.call, source.FromReaderAt(s.spool, size, s.reread))
	d.Spool, d.Memory = s.spool, stream.NewMemory(1) // they are read from the disk
	return newParted(s.call, d, fresh)
}

// saveParts saves the parts of a stream of size bytes. While the store fails, the end of the input waits.
func (s *spooled) saveParts(ctx context.Context, size int64) error {
	for warned := false; ; warned = true {
		err := s.parts.parts.Ended(ctx, size)
		if err == nil || ctx.Err() != nil || errors.Is(err, session.ErrInvalid) || errors.Is(err, state.ErrInUse) {
			return err
		}
		if !warned {
			s.warn(fmt.Errorf("the end of the input is not recorded while the upload cannot be saved: %w", err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(againAfter):
		}
	}
}

// newRun returns the run of a stream without a session.
func (s *spooled) newRun() *engine.Run {
	return engine.NewRun(s.newTransfer(s.source, s.record, nil), &s.precondition, session.State{Size: s.source.Total()})
}

// againAfter is how long an upload whose retries are exhausted waits for the end of its input before it
// tries again.
const againAfter = 30 * time.Second

// upload makes the object. While the input lasts, it does not stop because retries are
// exhausted, or because the store does not save the session.
func (s *spooled) upload(ctx context.Context) error {
	for warned := false; ; {
		err := endedBy(ctx, s.makeObject(ctx), s.journal)
		passes := errors.Is(err, session.ErrRetriesExhausted) || errors.Is(err, saved.ErrUnsaved) && !errors.Is(err, state.ErrInUse)
		if _, failed := s.spool.Await(ctx, func(spool.Status) bool { return true }); failed != nil || s.spool.Status().End != nil || !passes {
			if err != nil && s.run != nil && s.journal.Saved() && s.spool.Status().End != nil { // otherwise the session is canceled
				s.run.AskStored(ctx, grace.Requests)
			}
			return s.end(ctx, err)
		}
		if !warned {
			warned = true
			s.events.post(Event{Kind: Warning, Cause: "the input continues, and its bytes are kept on disk: " + err.Error(), Err: err})
		}
		waiting, stop := context.WithTimeout(ctx, againAfter)
		_, _ = s.spool.Await(waiting, func(now spool.Status) bool { return now.End != nil })
		stop()
		s.requests.Retry.Progressed()
		if s.parts != nil {
			s.parts.parts.Again()
		}
	}
}

// makeObject makes the object once.
func (s *spooled) makeObject(ctx context.Context) error {
	if s.parts != nil {
		return s.parts.makeObject(ctx)
	}
	return s.makeInSession(ctx, s.run)
}

// end decides what happens to the saved upload and the files of the stream, whose upload ended with err.
func (s *spooled) end(ctx context.Context, err error) error {
	var uri session.URI
	if s.run != nil {
		uri = s.run.URI()
	}
	s.reportFailure(err) // ends a Write, which the halt awaits
	s.halt()
	now := s.spool.Status()
	e := s.endOf(ofSpool, err)
	e.unended, e.released = now.End == nil, now.From > 0
	if s.parts != nil { // parts that are lost are sent again
		e.dead = factOf(e.released && (errors.Is(err, session.ErrSessionLost) || errors.Is(err, session.ErrUnexpectedData)))
	}
	if e.dead == yes && e.released && (e.refused || errors.Is(err, session.ErrChecksum)) {
		// A refusal of all bytes at the end is one answer, and another process may still finish an open session. The
		// stream is lost without the session.
		e.dead = unknown
	}
	what := ending(e)
	if what == ask {
		e.dead = factOf(s.gone(ctx, uri))
		what = ending(e)
	}
	switch what {
	case leave:
		return err
	case discard, discardAndCancel:
		return s.remove(ctx, uri, err)
	}
	s.journal.Keep()
	if s.parts == nil {
		s.record.Ended(s.requests.Pos.Committed.Load())
		if failed, ok := errors.AsType[*session.Error](err); ok && failed.Open {
			s.record.Rejected(failed.Offset)
		}
	}
	switch what {
	case keepIncomplete:
		return fmt.Errorf("%w: %w; its bytes before %d are gone, and those up to %d are kept in %s", ErrIncomplete, err, now.From, now.Read, s.spool.Path())
	case renew:
		s.renew(ctx, uri, err)
	}
	return asIncomplete(err)
}

// gone asks the service whether the session has ended.
func (s *spooled) gone(ctx context.Context, uri session.URI) bool {
	held, err := engine.Inquire(ctx, s.wire(), uri, false)
	return held.State == engine.HeldGone || held.State == engine.HeldCanceled || err != nil && saved.Dead(err)
}

// renew makes the next call begin another session, and cancels the one that failed with err. After a crash in
// between, the session expires.
func (s *spooled) renew(ctx context.Context, uri session.URI, err error) {
	s.journal.BeginStream()
	_ = s.journal.Save(ctx) // a failure is a warning
	s.cancelSession(ctx, uri, err)
}

// asIncomplete returns err. If the files of the stream are damaged, it also wraps ErrIncomplete.
func asIncomplete(err error) error {
	if errors.Is(err, spool.ErrDamaged) {
		return fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	return err
}

// remove removes the files and the saved upload, after an upload that ended with err. A crash in between
// leaves a saved upload without files, which Prune removes if the object was made, or with
// [PruneOptions.MissingSource]. Parts at the service never expire. They are therefore
// removed first: after a crash, the saved upload still names them, and Prune removes the rest.
func (s *spooled) remove(ctx context.Context, uri session.URI, err error) error {
	if s.parts != nil {
		return s.parts.removeStored(ctx, err, s.spool.Discard)
	}
	left := s.spool.Discard()
	if left == nil { // otherwise Prune or Cancel removes both
		left = s.journal.Discard()
	}
	if err != nil {
		s.cancelSession(ctx, uri, err)
	}
	return s.discarded(err, left)
}

// resumeSpooled continues a saved stream whose input has ended.
func resumeSpooled(ctx context.Context, c *call, doc *state.Upload) error {
	spec, err := c.u.opts.unlock(doc.Spec, c.spec.EncryptionKey)
	if err != nil {
		return err
	}
	spec.NoClobber = spec.NoClobber || c.spec.NoClobber
	c.setSpec(spec)
	sp, err := spool.Open(ctx, doc.Spool.Dir, doc.ID)
	switch {
	case errors.Is(err, spool.ErrNoEnd):
		return fmt.Errorf("%w: its process ended before the input did, and the rest of the input cannot be read again: cancel upload %s, and upload the source again", ErrIncomplete, doc.ID)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: the bytes of upload %s are not in %s: they were removed, or are on another machine or on a volume that is not mounted", err, doc.ID, doc.Spool.Dir)
	case err != nil:
		return asIncomplete(err)
	}
	defer sp.Close()
	s := &spooled{call: c, spool: sp, source: spool.NewSource(sp), record: c.journal.RecordStream(), halt: func() {}}
	if spec.Gzip {
		s.expect.Size = nil
	}
	s.sized(s.source.Total())
	if doc.Parts != nil {
		if why := useless(s.u, doc); why != "" {
			return fmt.Errorf("%w: %s", session.ErrURIMismatch, why)
		}
		s.parts = s.newParts(s.source.Total(), false)
		s.result.update(func(r *Result) { r.Resumed = true })
		s.events.post(Event{Kind: Resumed})
	} else if s.run, err = s.resumedRun(doc); err != nil {
		return err
	}
	return s.upload(ctx)
}

// resumedRun returns the run that continues the session of doc, or begins one.
func (s *spooled) resumedRun(doc *state.Upload) (*engine.Run, error) {
	why := useless(s.u, doc)
	switch {
	case why == "" && !doc.URI.IsZero():
	case s.source.Replayable():
		return s.newRun(), nil
	case why != "":
		return nil, fmt.Errorf("%w: %s", session.ErrURIMismatch, why)
	default:
		return nil, fmt.Errorf("%w: its session has ended, and its bytes before %d are not in %s", ErrIncomplete, s.spool.Status().From, s.spool.Path())
	}
	t := s.newTransfer(s.source, s.record, nil)
	t.Wire.Pos.Committed.Store(doc.Committed)
	size := s.source.Total()
	before := doc.Session
	before.HighWater = size // see state.Upload
	return engine.ResumedRun(t, &s.precondition, saved.Adopted(before, size), engine.Resumption{
		URI: doc.URI, Opened: doc.Created, Seek: s.source.Seek, Resumed: s.resumed,
	}), nil
}
