package upload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gcsup/chunk"
	"gcsup/session"
)

// parallel sends one file in parts over several connections. It divides the file,
// runs the workers and orders the steps. Everything that depends on how the parts
// become one object is done by the joiner. The Token has the state of each part, so
// that each can be resumed.
type parallel struct {
	j       *job
	size    int64
	parts   session.Parts // of List, only the length is used: see pieces
	pieces  []*piece
	joiner  joiner
	adopted bool // the upload was saved by an earlier call
	share   atomic.Pointer[share]
	done    atomic.Int32 // parts that are finished
}

// joiner sends parts and makes one object from them: a composer or a multipart.
type joiner interface {
	// unsuitable returns the reason why the joiner cannot make an object with the
	// settings of the job, or "".
	unsuitable() (why string)

	// plan prepares a new upload. why is the reason if the bucket or the service does not
	// allow it, or "".
	plan(ctx context.Context) (why string, err error)

	// spec returns the Spec for the requests of a part.
	spec(c *piece) Spec

	// record returns the record that keeps the state of a part.
	record(c *piece) record

	// begin is called before parts are sent. It saves the Token if necessary, and
	// determines which parts the service has. It returns the object if an earlier request
	// made it, and otherwise nil.
	begin(ctx context.Context) (*session.Object, error)

	// inspect finds out which of the finished parts the service has, and resets the
	// others.
	inspect(ctx context.Context) (missing bool, err error)

	// send sends a part, and calls its method finished when the service has all of it.
	send(ctx context.Context, c *piece) error

	// join makes the object from the parts, which must all be finished. The error wraps
	// errPartMissing if the service no longer has some of them.
	join(ctx context.Context) (*session.Object, error)

	// made reports whether o has the bytes of the parts, and is not older than the upload.
	made(o *session.Object) bool

	// clean removes everything except the object from the service. joined reports whether
	// the object was made. If it was not, clean also cancels open sessions. The error
	// describes what is left.
	clean(ctx context.Context, joined bool) error

	// query requests the state of the parts of a saved upload from the service.
	query(ctx context.Context, token *session.Token) (Holding, error)
}

// errPartMissing means that the service no longer has a part.
var errPartMissing = errors.New("a part is missing")

// upload sends all parts of a new upload and makes the object from them.
func (p *parallel) upload(ctx context.Context) error {
	p.parts.List = make([]session.Part, (p.size+p.parts.Size-1)/p.parts.Size)
	p.split(nil)
	if j := p.j.journal; j != nil {
		j.next.file = p.j.file
		j.startedParts(p.parts)
	}
	return p.send(ctx)
}

// split makes the pieces. saved is their state from an earlier call, or nil.
func (p *parallel) split(saved []session.Part) {
	for i := range p.parts.List {
		c := &piece{p: p, i: i, rng: p.parts.Range(i, p.size)}
		if saved != nil {
			switch part := saved[i]; {
			case part.Finished():
				c.done = part
				p.done.Add(1)
			case !part.URI.IsZero():
				c.saved = &part
			}
		}
		c.prepare()
		p.pieces = append(p.pieces, c)
	}
	p.j.progress.parts.Store(&partsView{p.position, p.progress})
}

// position returns the sums over all parts.
func (p *parallel) position() (size, sent, committed int64) {
	for _, c := range p.pieces {
		_, s, n := c.transfer.pos.load()
		sent, committed = sent+max(s, n), committed+n
	}
	return p.size, sent, committed
}

// progress returns the progress of the parts, for events.
func (p *parallel) progress() *PartsProgress {
	v := &PartsProgress{Count: len(p.pieces), Done: int(p.done.Load())}
	if share := p.share.Load(); share != nil {
		v.Connections = share.slots()
	}
	return v
}

// send sends the parts that are not finished, makes the object, and cleans up.
func (p *parallel) send(ctx context.Context) error {
	j := p.j
	guarded, stop := j.journal.guard(ctx)
	defer stop()
	object, err := p.make(guarded)
	j.journal.awaitSaves()
	p.updatePosition()
	if err == nil {
		err = p.verify(object)
	}
	return p.conclude(ctx, j.endError(ctx, err))
}

// updatePosition copies the sums over all parts to the transfer of the whole file.
func (p *parallel) updatePosition() {
	_, sent, committed := p.position()
	p.j.requests.pos.sent.Store(sent)
	p.j.requests.pos.committed.Store(committed)
}

// make sends the parts that are not finished and makes the object. If parts disappear from
// the service, it sends them again.
func (p *parallel) make(ctx context.Context) (*session.Object, error) {
	if p.countResumed() {
		p.j.result.update(func(r *Result) { r.Resumed = true })
		p.j.events.post(Event{Kind: Resumed})
	}
	p.updatePosition()
	if p.finished() {
		// An earlier call may have made the object.
		if o, err := p.joined(ctx); o != nil || err != nil {
			return o, err
		}
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
	before := p.done.Load()
	err := p.sendAll(ctx)
	if p.done.Load() > before {
		p.j.requests.retry.progressed() // restores the budget for requests about the whole object
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
	earlier = p.adopted && !p.parts.Upload.IsZero()
	for _, c := range p.pieces {
		if c.done.Finished() {
			c.resumed = c.rng.Len()
		}
		earlier = earlier || c.done.Finished() || c.saved != nil
	}
	return earlier
}

// finished reports whether the service has all parts.
func (p *parallel) finished() bool {
	for _, c := range p.pieces {
		if !c.done.Finished() {
			return false
		}
	}
	return true
}

// sendAll sends the parts that are not finished. If one fails, the others are interrupted and
// can be resumed, and the error is that of the first.
func (p *parallel) sendAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan *piece, len(p.pieces))
	for _, c := range p.pieces {
		if !c.done.Finished() {
			todo <- c
		}
	}
	close(todo)
	pool := p.j.u.connections()
	share := pool.join()
	p.share.Store(share)
	defer p.report(pool, share)
	var workers sync.WaitGroup
	var once sync.Once
	var first error
	for range min(max(p.j.u.opts.Parallel.connections, 1), len(todo)) {
		workers.Go(func() {
			for c := range todo {
				err := p.sendOne(ctx, share, c)
				if ctx.Err() != nil && err == nil {
					return
				}
				if err != nil {
					once.Do(func() {
						first = err
						p.j.requests.retry.failing = c.transfer.retry.failing // for the other files of a batch
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
func (p *parallel) sendOne(ctx context.Context, s *share, c *piece) error {
	slot := s.acquire(ctx)
	if slot == nil {
		return nil
	}
	defer func() { s.release(slot, c.stored()) }()
	if ctx.Err() != nil {
		return nil
	}
	c.slot = slot
	defer func() { c.slot = nil }()
	return p.joiner.send(ctx, c)
}

// report ends the share of the file in the pool, and adds its rates to the Result.
func (p *parallel) report(pool *connPool, s *share) {
	connections, rate, each := s.measured()
	s.leave()
	p.j.u.noteTuner(pool)
	p.j.result.update(func(r *Result) {
		r.Parts = &PartsResult{Count: len(p.pieces), Connections: connections, Rate: int64(rate), RateOfOne: int64(each)}
	})
}

// forget resets parts to ones that were not sent.
func (p *parallel) forget(parts []*piece) {
	for _, c := range parts {
		c.forget()
	}
	if j := p.j.journal; j != nil {
		j.change(func(t *session.Token) {
			for _, c := range parts {
				t.Parts.List[c.i] = session.Part{}
			}
		})
	}
}

// errSibling is the cause of the interruption of parts when another one failed.
var errSibling = errors.New("another part failed")

// crc32c returns the checksum of the whole file, from those of its parts.
func (p *parallel) crc32c() (crc uint32) {
	for _, c := range p.pieces {
		crc = chunk.Combine(crc, c.done.CRC32C, c.rng.Len())
	}
	return crc
}

// confirm is called before the object is made. It checks that the source did not
// change and that the expectations of the caller hold.
func (p *parallel) confirm(ctx context.Context) error {
	j := p.j
	if err := j.expect.checkEnd(ctx, p.size); err != nil {
		return err
	}
	whole := func() chunk.Checkpoint { return chunk.Checkpoint{Offset: p.size, CRC32C: p.crc32c()} }
	if err := j.file.Unchanged(ctx, whole); err != nil {
		return j.requests.sourceFailed(ctx, err)
	}
	return expectCRC32C(j.spec, p.crc32c())
}

// verify compares the finished object with the source.
func (p *parallel) verify(object *session.Object) error {
	j, op := p.j, session.OpCompose
	if !p.parts.Upload.IsZero() {
		op = session.OpComplete
	}
	o, err := verifyObject(object, j.spec, p.size, p.crc32c())
	if err != nil {
		return j.requests.retry.failure(&session.Error{Op: op, Status: 200, Kind: session.ErrUnexpectedData}, err)
	}
	j.result.update(func(r *Result) { r.Object = o })
	j.events.committed()
	return nil
}
