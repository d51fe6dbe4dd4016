package parts

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gcsup/chunk"
	"gcsup/internal/bucket"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/upload/internal/atrisk"
	"gcsup/upload/internal/connections"
	"gcsup/upload/internal/engine"
)

// Upload sends one file in parts over several connections. It runs the workers and
// orders the steps. Its joiner does what depends on how the parts become one object.
type Upload struct {
	*dividedFile
	joiner joiner
	share  atomic.Pointer[connections.Share]
	Used   *connections.Usage // nil if no part was sent

	Unverified error // why the CRC32C of the object that Send returned is not known, or nil
}

// joiner sends parts and makes one object from them: a [composer] or a [multipart].
type joiner interface {
	// begin is called before parts are sent. It saves the saved upload if necessary, and
	// determines which parts the service has. It returns the object if an earlier request
	// made it, and otherwise nil.
	begin(ctx context.Context) (*session.Object, error)

	// send sends a part with a slot, and calls its method finish when the service has all
	// of it.
	send(ctx context.Context, p *filePart, slot *connections.Slot) error

	// join makes the object from the parts, which must all be finished. The error wraps
	// errPartMissing if the service no longer has some of them.
	join(ctx context.Context) (*session.Object, error)

	// clean removes everything except the object from the service. joined reports whether
	// the object was made. If it was not, clean also cancels open sessions. The error
	// describes what is left.
	clean(ctx context.Context, joined bool) error

	// committed requests from the service how many bytes of the parts it has, and changes nothing.
	committed(ctx context.Context) (engine.Held, error)
}

// errPartMissing means that the service no longer has a part.
var errPartMissing = errors.New("a part is missing")

// errSibling is the cause of the interruption of parts when another one failed.
var errSibling = errors.New("another part failed")

// NewUpload returns the upload in parts whose state is in the journal of d. fresh reports that it was
// just started. A stream on disk then gets its parts while it is read, and [Upload.Ended] must be called before its
// end is recorded.
func NewUpload(d Division, fresh bool) *Upload {
	f := &dividedFile{Division: d, size: d.Journal.Size()}
	for i, rng := range f.common().Ranges(f.size) {
		f.parts, f.ends = append(f.parts, f.part(i, rng)), append(f.ends, rng.To)
	}
	switch {
	case f.size < 0: // the size of a compressed file is not known
	case d.Spool != nil && fresh:
		f.size = -1
	case len(f.ends) > 0:
		f.size, f.whole = f.growth.end(), true
	}
	if d.Spool != nil {
		d.Journal.OnSave(f.releaseSaved)
	}
	if d.Zipped != nil {
		f.showEarlier()
	}
	if f.isMultipart() {
		return &Upload{dividedFile: f, joiner: &multipartUpload{file: f, fresh: fresh}}
	}
	return &Upload{dividedFile: f, joiner: &composer{f}}
}

// Progress returns how many parts there are, are finished, and are being sent.
func (p *Upload) Progress() (count, done, sending int) {
	if share := p.share.Load(); share != nil {
		sending = share.Sending()
	}
	_, parts := p.known()
	return len(parts), p.Journal.Finished(), sending
}

// Send sends the parts that are not finished, makes the object, and compares it with the
// source.
func (p *Upload) Send(ctx context.Context) (*session.Object, error) {
	object, err := p.makeObject(ctx)
	p.Journal.AwaitSaves()
	return p.verified(ctx, object, err)
}

// verified compares the object that was made with the source, unless err is not nil.
func (p *Upload) verified(ctx context.Context, object *session.Object, err error) (*session.Object, error) {
	p.updatePosition()
	if err != nil {
		return nil, err
	}
	op := bucket.OpCompose
	if p.isMultipart() {
		op = multipart.OpComplete
	}
	object, p.Unverified = p.Wire.Confirm(ctx, object)
	object, err = engine.VerifyObject(object, p.Wire.Spec, p.size, p.crc32c())
	if err != nil {
		return nil, p.Wire.Retry.Failure(&session.Error{Op: op, Status: 200, Kind: session.ErrUnexpectedData}, err)
	}
	return object, nil
}

// Committed requests from the service how many bytes of the parts it has, and changes nothing.
func (p *Upload) Committed(ctx context.Context) (engine.Held, error) { return p.joiner.committed(ctx) }

// Sums returns the sums over all parts: the bytes that earlier calls had committed, and the
// retries of this call.
func (p *Upload) Sums() (resumed int64, retries int, waited time.Duration) {
	for _, part := range p.parts {
		resumed, retries, waited = resumed+part.resumed, retries+part.Retry.Retries, waited+part.Retry.Waited()
	}
	return resumed, retries, waited
}

// makeObject sends the parts that are not finished and makes the object. If parts disappear from
// the service, it sends them again.
func (p *Upload) makeObject(ctx context.Context) (*session.Object, error) {
	p.updatePosition()
	// An earlier call may have made the object.
	if o, err := p.Settle(ctx); o != nil || err != nil {
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
func (p *Upload) makeOnce(ctx context.Context) (*session.Object, error) {
	if o, err := p.joiner.begin(ctx); o != nil || err != nil {
		return o, err
	}
	before := p.Journal.Finished()
	err := p.sendAll(ctx)
	if p.Journal.Finished() > before {
		p.Wire.Retry.Progressed() // restores the budget for requests about the whole object
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

// pool returns the pool of connections of the file.
func (p *Upload) pool() *connections.Pool {
	if p.Options.Auto {
		return p.Link.Pool(p.Options.Connections)
	}
	return connections.Fixed(p.Options.Connections)
}

// sendAll sends the parts that are not finished. It begins them in the order of the file, so that a
// single connection reads the file from its beginning to its end. If one fails, the others are
// interrupted and can be resumed, and the error is that of the first.
func (p *Upload) sendAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	share := p.pool().Join(p.left())
	p.share.Store(share)
	defer func() { p.Used = new(share.Leave()) }()
	if err := p.compress(); err != nil {
		return err
	}
	var once sync.Once
	var first error
	fail := func(err error) {
		once.Do(func() {
			first = err
			cancel(errSibling)
		})
	}
	at, turn := 0, make(chan struct{}, 1)
	// next returns the first part that no worker has, and a place in the queue for slots. It takes
	// both in one turn, so that the queue has the order of the parts.
	next := func() (*filePart, chan struct{}) {
		turn <- struct{}{}
		defer func() { <-turn }()
		for {
			part, err := p.await(ctx, at)
			if err != nil {
				fail(err)
			}
			if part == nil {
				return nil, nil
			}
			if at++; !part.finished() {
				return part, share.Queue()
			}
		}
	}
	n := max(p.Options.Connections, 1)
	if p.Spool == nil && p.Zipped == nil {
		n = min(n, len(p.parts)-p.Journal.Finished())
	}
	var workers sync.WaitGroup
	for range n {
		workers.Go(func() {
			for part, place := next(); part != nil; part, place = next() {
				slot := share.Await(ctx, place, p.risk(part))
				if slot == nil {
					part.drop()
					return
				}
				err := p.joiner.send(ctx, part, slot)
				share.Release(slot, part.stored())
				if err != nil {
					fail(err)
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

// left returns a function that returns how many bytes of the file are not committed, or nil if its size is not known.
func (p *Upload) left() func() int64 {
	if p.size < 0 {
		return nil
	}
	return func() int64 {
		size, _, _, committed := p.Position()
		return size - committed
	}
}

// risk returns what a part will have at risk: all of it, or only what is on the way, because a session keeps the rest.
func (p *Upload) risk(part *filePart) *atrisk.Risk {
	if p.isMultipart() {
		return p.Uplink.AtRisk.Part(part.rng.Len())
	}
	return p.Uplink.AtRisk.Session()
}

// confirm is called before the object is made. It checks that the source did not
// change and that the expectations of the caller hold.
func (p *Upload) confirm(ctx context.Context) error {
	if err := p.Expect.CheckEnd(ctx, p.size); err != nil {
		return err
	}
	if p.Zipped != nil {
		if err := p.Zipped.Unchanged(ctx); err != nil {
			return engine.SourceFailed(ctx, err)
		}
	}
	if p.File != nil {
		whole := func() chunk.Checkpoint { return chunk.Checkpoint{Offset: p.size, CRC32C: p.crc32c()} }
		if err := p.File.Unchanged(ctx, whole); err != nil {
			return engine.SourceFailed(ctx, err)
		}
	}
	if err := p.undamaged(); err != nil {
		return err
	}
	return engine.ExpectCRC32C(p.Wire.Spec, p.crc32c())
}

// Finish removes what is left after the object was made. If that fails, the saved upload records that
// it must be removed.
func (p *Upload) Finish(ctx context.Context) error {
	return cleaning(ctx, p.Uplink, func(ctx context.Context) error {
		err := p.joiner.clean(ctx, true)
		if err != nil {
			p.markOver(ctx)
		}
		return err
	})
}

// Clean removes everything that the service stores for an upload without a saved upload. The error
// describes what is left.
func (p *Upload) Clean(ctx context.Context) error { return p.joiner.clean(ctx, false) }

// Abandon removes everything that the service stores for an upload that will not be
// resumed. The error describes what is left. The saved upload then records that it must be removed.
func (p *Upload) Abandon(ctx context.Context) error {
	return abandoning(ctx, p.Uplink, func(ctx context.Context) error {
		p.markOver(ctx)
		return p.joiner.clean(ctx, false)
	})
}
