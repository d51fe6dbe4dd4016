package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/parts"
	"gcsup/upload/internal/source"
)

// parallel sends one file in parts over several connections. It runs the workers and
// orders the steps. Everything that depends on how the parts become one object is done
// by the joiner. The Token has the state of each part, so that each can be resumed.
type parallel struct {
	*dividedFile
	source  *source.File // of the file; nil if no bytes are sent
	expect  expectation
	joiner  joiner
	adopted bool // the upload was saved by an earlier call
	u       *Uploader
	result  *jobResult
	share   atomic.Pointer[parts.Share]
}

// joiner sends parts and makes one object from them: a composer or a multipart.
type joiner interface {
	// begin is called before parts are sent. It saves the Token if necessary, and
	// determines which parts the service has. It returns the object if an earlier request
	// made it, and otherwise nil.
	begin(ctx context.Context) (*session.Object, error)

	// send sends a part, and calls its method finish when the service has all of it.
	send(ctx context.Context, p *filePart) error

	// join makes the object from the parts, which must all be finished. The error wraps
	// errPartMissing if the service no longer has some of them.
	join(ctx context.Context) (*session.Object, error)

	// clean removes everything except the object from the service. joined reports whether
	// the object was made. If it was not, clean also cancels open sessions. The error
	// describes what is left.
	clean(ctx context.Context, joined bool) error
}

// errPartMissing means that the service no longer has a part.
var errPartMissing = errors.New("a part is missing")

// errSibling is the cause of the interruption of parts when another one failed.
var errSibling = errors.New("another part failed")

// newParallel returns a parallel for a new upload in parts.
func newParallel(j *job, chosen state.Parts) *parallel {
	kept := cmp.Or(j.journal, &journal{})
	kept.begin(j.file, &chosen, int((j.file.Total()+chosen.Size-1)/chosen.Size))
	return parallelOf(j, kept, false)
}

// savedParallel returns a parallel for a saved upload.
func savedParallel(j *job, token *state.Token) *parallel {
	kept := cmp.Or(j.journal, &journal{})
	if kept != j.journal {
		kept.adopt(token) // the caller has the lease
	}
	return parallelOf(j, kept, true)
}

// parallelOf returns a parallel for the upload in a journal.
func parallelOf(j *job, journal *journal, adopted bool) *parallel {
	f := j.divide(journal)
	p := &parallel{dividedFile: f, source: j.file, expect: j.expect, adopted: adopted, u: j.u, result: &j.result}
	if f.isMultipart() {
		p.joiner = &multipart{dividedFile: f, memory: j.u.memory, fresh: !adopted}
	} else {
		p.joiner = &composer{dividedFile: f, began: j.result.began}
	}
	j.progress.parts.Store(&partsView{p.position, p.progress})
	return p
}

// progress returns the progress of the parts, for events.
func (p *parallel) progress() *PartsProgress {
	v := &PartsProgress{Count: len(p.parts), Done: p.journal.finished()}
	if share := p.share.Load(); share != nil {
		v.Connections = share.Slots()
	}
	return v
}

// send sends the parts that are not finished, makes the object, and cleans up.
func (p *parallel) send(ctx context.Context) error {
	guarded, stop := p.journal.guard(ctx)
	defer stop()
	object, err := p.make(guarded)
	p.journal.awaitSaves()
	p.updatePosition()
	if err == nil {
		err = p.verify(object)
	}
	return p.conclude(ctx, endedBy(ctx, err, p.requests, p.journal))
}

// make sends the parts that are not finished and makes the object. If parts disappear from
// the service, it sends them again.
func (p *parallel) make(ctx context.Context) (*session.Object, error) {
	if p.countResumed() {
		p.result.update(func(r *Result) { r.Resumed = true })
		p.requests.events.post(Event{Kind: Resumed})
	}
	p.updatePosition()
	// An earlier call may have made the object.
	if o, err := p.find(ctx); o != nil || err != nil {
		return o, err
	}
	var err error
	for range maxMissing {
		var o *session.Object
		if o, err = p.makeOnce(ctx); !errors.Is(err, errPartMissing) {
			return o, err
		}
	}
	if errors.Is(err, errUploadGone) {
		return nil, fmt.Errorf("%w: %w", session.ErrSessionLost, err)
	}
	return nil, fmt.Errorf("%w: parts disappear", session.ErrUnexpectedData)
}

// makeOnce does the work of make once. The error wraps errPartMissing if the service
// no longer has a part.
func (p *parallel) makeOnce(ctx context.Context) (*session.Object, error) {
	if o, err := p.joiner.begin(ctx); o != nil || err != nil {
		return o, err
	}
	before := p.journal.finished()
	err := p.sendAll(ctx)
	if p.journal.finished() > before {
		p.requests.retry.progressed() // restores the budget for requests about the whole object
	}
	if err != nil {
		return nil, err
	}
	p.updatePosition()
	if err := p.confirm(ctx); err != nil {
		return nil, err
	}
	return p.joiner.join(ctx)
}

// maxMissing bounds the tries to make an object whose parts disappear, and the requests for a
// part that arrives damaged.
const maxMissing = 3

// countResumed counts the bytes of parts that an earlier call finished. It reports
// whether the service may have parts of an earlier call.
func (p *parallel) countResumed() (earlier bool) {
	earlier = p.adopted && p.isMultipart()
	for _, part := range p.parts {
		s := part.state()
		if s.Finished() {
			part.resumed = part.rng.Len()
		}
		earlier = earlier || s.Finished() || !s.URI.IsZero()
	}
	return earlier
}

// sendAll sends the parts that are not finished. If one fails, the others are interrupted and
// can be resumed, and the error is that of the first.
func (p *parallel) sendAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan *filePart, len(p.parts))
	for _, part := range p.parts {
		if !part.finished() {
			todo <- part
		}
	}
	close(todo)
	pool := p.u.link.Pool(p.u.opts.Parallel.options)
	share := pool.Join()
	p.share.Store(share)
	defer p.report(pool, share)
	var workers sync.WaitGroup
	var once sync.Once
	var first error
	for range min(max(p.u.opts.Parallel.options.Connections, 1), len(todo)) {
		workers.Go(func() {
			for part := range todo {
				err := p.sendOne(ctx, share, part)
				if ctx.Err() != nil && err == nil {
					return
				}
				if err != nil {
					once.Do(func() {
						first = err
						p.requests.retry.failing = part.transfer.retry.failing // for the other files of a batch
						cancel(errSibling)
					})
					return
				}
			}
		})
	}
	workers.Wait()
	if first == nil && ctx.Err() != nil {
		return context.Cause(ctx) // no part was being sent
	}
	return first
}

// sendOne waits for a slot and sends a part. If ctx ends first, it does nothing.
func (p *parallel) sendOne(ctx context.Context, s *parts.Share, part *filePart) error {
	slot := s.Acquire(ctx)
	if slot == nil {
		return nil
	}
	defer func() { s.Release(slot, part.stored()) }()
	if ctx.Err() != nil {
		return nil
	}
	part.slot = slot
	defer func() { part.slot = nil }()
	return p.joiner.send(ctx, part)
}

// report ends the share of the file in the pool, and adds its rates to the Result.
func (p *parallel) report(pool *parts.Pool, s *parts.Share) {
	used := s.Used()
	s.Leave()
	p.u.link.Used(pool)
	p.result.update(func(r *Result) {
		r.Parts = &PartsResult{Count: len(p.parts), Connections: used.Connections, Rate: int64(used.Rate), RateOfOne: int64(used.Each)}
	})
}

// confirm is called before the object is made. It checks that the source did not
// change and that the expectations of the caller hold.
func (p *parallel) confirm(ctx context.Context) error {
	if err := p.expect.checkEnd(ctx, p.size); err != nil {
		return err
	}
	whole := func() chunk.Checkpoint { return chunk.Checkpoint{Offset: p.size, CRC32C: p.crc32c()} }
	if err := p.source.Unchanged(ctx, whole); err != nil {
		return p.requests.sourceFailed(ctx, err)
	}
	return expectCRC32C(p.spec, p.crc32c())
}

// verify compares the finished object with the source.
func (p *parallel) verify(object *session.Object) error {
	op := session.OpCompose
	if p.isMultipart() {
		op = session.OpComplete
	}
	o, err := verifyObject(object, p.spec, p.size, p.crc32c())
	if err != nil {
		return p.requests.retry.failure(&session.Error{Op: op, Status: 200, Kind: session.ErrUnexpectedData}, err)
	}
	p.result.update(func(r *Result) { r.Object = o })
	p.requests.events.committed()
	return nil
}
