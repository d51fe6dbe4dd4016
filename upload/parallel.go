package upload

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// parallel sends one file in parts over several connections. Each part becomes a
// temporary object, through a run of its own, and the temporary objects are composed.
// The parts and their sessions are in the Token, so that each continues at its own
// committed offset.
type parallel struct {
	j      *job
	size   int64
	parts  session.Parts // without the list, which is in pieces
	pieces []*piece
	writer *checkpointWriter // nil if the upload is not saved
}

// planParallel returns the function that sends a file in parts, or nil if it is not sent
// in parts.
func planParallel(ctx context.Context, j *job) (func(context.Context) error, error) {
	size, parts := j.file.src.Size(), j.u.opts.Parallel
	part := partSize(size, parts.connections, parts.least)
	if part == 0 {
		return nil, nil
	}
	if why := j.unsuitable(); why != "" {
		j.sentAlone(why)
		return nil, nil
	}
	p := &parallel{j: j, size: size, parts: session.Parts{Size: part, Prefix: temporaryPrefix(j.result.ID)}}
	if err := j.precondition.check(ctx); err != nil {
		return nil, err
	}
	if j.precondition.unmet() != nil {
		return nil, nil // a session shows whether the bucket is missing, too
	}
	if ok, err := p.look(ctx); err != nil {
		return nil, err
	} else if !ok {
		j.sentAlone("the object at the destination cannot be looked up")
		return nil, nil
	}
	if why, err := p.lookAtBucket(ctx); why != "" || err != nil {
		j.sentAlone(why)
		return nil, err
	}
	return p.upload, nil
}

// sentAlone reports why a file is not sent in parts.
func (j *job) sentAlone(why string) {
	if why != "" {
		j.events.post(Event{Kind: Warning, Cause: "the file is sent over one connection: " + why})
	}
}

// lookAtBucket returns why temporary objects cannot be deleted from the bucket, or "". If
// they can, and the bucket would keep them (soft delete), it chooses that the compose
// deletes them.
func (p *parallel) lookAtBucket(ctx context.Context) (why string, err error) {
	t := p.j.transfer
	var b *session.Bucket
	_, err = t.retry.repeat(ctx, func(ctx context.Context) (r session.Reply) {
		b, r = t.wire.bucket(ctx)
		return r
	})
	switch {
	case err != nil:
		return "", t.stopped(ctx, err, nil)
	case b == nil:
		return "", nil // no permission: the deletes will show it
	case b.Retention > 0:
		return "the bucket has a retention policy, and temporary objects could not be deleted", nil
	case b.DefaultEventBasedHold:
		return "the bucket holds new objects, and temporary objects could not be deleted", nil
	case b.SoftDelete > 0:
		p.parts.DeleteSources = true
		p.parts.Size = max(p.parts.Size, chunk.Ceil((p.size+session.ComposeMax-1)/session.ComposeMax)) // one compose
	}
	return "", nil
}

// unsuitable returns why the object cannot be composed, or "".
func (j *job) unsuitable() string {
	s := j.spec
	switch {
	case !s.EncryptionKey.IsZero():
		return "it has a customer-supplied encryption key"
	case s.MD5 != nil:
		return "a composed object has no MD5"
	case s.IfGenerationNotMatch != nil || s.IfMetagenerationNotMatch != nil:
		return "a compose has no not-match conditions"
	}
	return ""
}

// temporaryPrefix returns the prefix of the names of temporary objects.
func temporaryPrefix(id string) string {
	if id == "" {
		id = "upload"
	}
	return "gcsup-parts/" + id + "-" + rand.Text() + "/"
}

// look notes which object is at the destination, because the compose must not replace
// another one. ok is false if that is not known.
func (p *parallel) look(ctx context.Context) (ok bool, err error) {
	t := p.j.transfer
	if g := p.j.spec.IfGenerationMatch; g != nil {
		p.parts.Seen = *g
		return true, nil
	}
	r, err := t.retry.repeat(ctx, t.wire.stat)
	switch {
	case err != nil:
		return false, t.stopped(ctx, err, nil)
	case r.Status == 200 && r.Object != nil:
		p.parts.Seen = r.Object.Generation
		return true, nil
	}
	return r.Status == 404, nil
}

// upload sends all parts and composes them.
func (p *parallel) upload(ctx context.Context) error {
	p.parts.List = make([]session.Part, (p.size+p.parts.Size-1)/p.parts.Size)
	p.split(nil)
	if j := p.j.journal; j != nil {
		j.file = p.j.file
		j.startedParts(p.parts)
	}
	return p.send(ctx)
}

// resumeParts continues an upload in parts. spec is what it was started with.
func resumeParts(ctx context.Context, j *job, token *session.Token, spec Spec) error {
	spec.NoClobber = spec.NoClobber || j.spec.NoClobber
	j.setSpec(spec)
	over, why := token.Parts.Over, ""
	if err := j.sameSource(ctx, token); err != nil {
		switch {
		case !errors.Is(err, session.ErrSourceChanged):
			return err
		case !over && !j.u.opts.RestartChanged:
			return sourceError(err)
		}
		why = err.Error()
	}
	p := newParallel(j, token)
	if over && why == "" {
		made, err := p.made(ctx)
		if err != nil {
			return err
		}
		if !made {
			why = "it was over; the temporary objects that were left are deleted"
		}
	}
	if why != "" {
		if err := p.abandon(ctx); err != nil {
			return err
		}
		j.positions.Store(nil)
		return j.startOver(ctx, why)
	}
	j.journal.file = j.file
	return p.send(ctx)
}

// abandonParts ends the sessions of a saved upload and deletes its temporary objects.
func abandonParts(ctx context.Context, j *job, token *session.Token) error {
	defer j.positions.Store(nil)
	return newParallel(j, token).abandon(ctx)
}

// made reports whether an earlier call made the object, and it is still there.
func (p *parallel) made(ctx context.Context) (bool, error) {
	if !p.finished() {
		return false, nil
	}
	o, err := p.composed(ctx)
	return o != nil, err
}

// newParallel returns the parts of a saved upload.
func newParallel(j *job, token *session.Token) *parallel {
	p := &parallel{j: j, size: token.Source.Size, parts: *token.Parts}
	p.split(token.Parts.List)
	return p
}

// compareParts compares all bytes that were sent, as far as their checksums are saved.
func (j *job) compareParts(ctx context.Context, token *session.Token) error {
	for i, part := range token.Parts.List {
		rng := token.Parts.Range(i, token.Source.Size)
		known := part.Checkpoints
		if part.Generation != 0 {
			known = []chunk.Checkpoint{{Offset: rng.Len(), CRC32C: part.CRC32C}}
		}
		if err := j.section(rng).compare(ctx, known...); err != nil {
			return err
		}
	}
	j.file.copied = false
	return nil
}

// split makes the pieces. saved is what an earlier call saved of them.
func (p *parallel) split(saved []session.Part) {
	for i := range p.parts.List {
		c := &piece{p: p, i: i, rng: p.parts.Range(i, p.size)}
		if saved != nil {
			part := saved[i]
			c.object, c.crc32c = part.Generation, part.CRC32C
			if !part.URI.IsZero() {
				c.saved = &part
			}
		}
		c.prepare()
		p.pieces = append(p.pieces, c)
	}
	position := p.position
	p.j.positions.Store(&position)
}

// section returns the content of a part of the file. Its identity is not that of the
// file, which is compared at the end.
func (j *job) section(rng chunk.Range) *fileContent {
	src := chunk.FromReaderAt(io.NewSectionReader(j.file.src, rng.From, rng.Len()), rng.Len())
	return &fileContent{src: src, identity: chunk.Identity{Size: src.Size()}, sum: chunk.NewPrefixCRC(chunk.Checkpoint{}), settled: true, reread: j.reread}
}

// temporary returns the Spec of a temporary object. Its custom time lets a lifecycle
// rule find it, and its class is that of the destination, as a compose requires.
func (p *parallel) temporary(name string) Spec {
	s := p.j.spec
	return Spec{
		Bucket: s.Bucket, Object: name, IfGenerationMatch: new(int64), CustomTime: p.j.began.UTC().Truncate(time.Second),
		StorageClass: s.StorageClass, KMSKeyName: s.KMSKeyName, UserProject: s.UserProject,
		ContentType: "application/octet-stream",
	}
}

// position returns the sums over all parts.
func (p *parallel) position() (size, sent, committed int64) {
	for _, c := range p.pieces {
		_, s, n := c.transfer.pos.load()
		sent, committed = sent+max(s, n), committed+n
	}
	return p.size, sent, committed
}

// send sends the parts that are not finished, composes them, and deletes them.
func (p *parallel) send(ctx context.Context) error {
	j := p.j
	if j.journal != nil {
		p.writer = newCheckpointWriter(func() {
			ctx, cancel := context.WithTimeout(j.journal.ctx, checkpointTimeout)
			defer cancel()
			_ = j.journal.save(ctx)
		})
	}
	guarded, stop := j.journal.guard(ctx)
	defer stop()
	object, err := p.make(guarded)
	if p.writer != nil {
		p.writer.stop()
	}
	p.account()
	if err == nil {
		err = j.verifyComposed(object, p.crc32c())
	}
	return p.conclude(ctx, j.ended(ctx, err))
}

// account notes in the transfer of the whole, which composes the parts, how far they are.
func (p *parallel) account() {
	_, sent, committed := p.position()
	p.j.transfer.pos.sent.Store(sent)
	p.j.transfer.pos.committed.Store(committed)
}

// make sends what is left and composes it.
func (p *parallel) make(ctx context.Context) (*session.Object, error) {
	if p.continues() {
		p.j.update(func(r *Result) { r.Resumed = true })
		p.j.events.post(Event{Kind: Resumed})
	}
	p.account()
	if p.finished() {
		// An earlier call may have composed them.
		if o, err := p.composed(ctx); o != nil || err != nil {
			return o, err
		}
	}
	for range maxMissing {
		if err := p.sendAll(ctx); err != nil {
			return nil, err
		}
		p.account()
		o, err := p.compose(ctx)
		if !errors.Is(err, errPartMissing) {
			return o, err
		}
	}
	return nil, fmt.Errorf("%w: temporary objects disappear", session.ErrUnexpectedData)
}

// maxMissing bounds how often parts that disappeared are sent again.
const maxMissing = 3

// continues reports whether there are parts of an earlier call, and counts the bytes of
// those that are finished.
func (p *parallel) continues() (earlier bool) {
	for _, c := range p.pieces {
		if c.object != 0 {
			c.resumed = c.rng.Len()
		}
		earlier = earlier || c.object != 0 || c.saved != nil
	}
	return earlier
}

func (p *parallel) finished() bool {
	for _, c := range p.pieces {
		if c.object == 0 {
			return false
		}
	}
	return true
}

// sendAll sends the parts that are not finished. The error is that of the first part
// that failed. The others are interrupted, and keep what they have.
func (p *parallel) sendAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan *piece, len(p.pieces))
	for _, c := range p.pieces {
		if c.object == 0 {
			todo <- c
		}
	}
	close(todo)
	var workers sync.WaitGroup
	var once sync.Once
	var first error
	for range max(p.j.u.opts.Parallel.connections, 1) {
		workers.Go(func() {
			for c := range todo {
				if ctx.Err() != nil {
					return
				}
				if err := c.send(ctx); err != nil {
					once.Do(func() {
						first = err
						p.j.transfer.retry.failing = c.transfer.retry.failing // for the rest of a batch
						cancel(errSibling)
					})
					return
				}
			}
		})
	}
	workers.Wait()
	if first == nil && ctx.Err() != nil {
		return context.Cause(ctx) // before a part began
	}
	return first
}

// errSibling is the cause of the end of parts whose sibling failed.
var errSibling = errors.New("another part failed")

// crc32c returns the checksum of the whole.
func (p *parallel) crc32c() (crc uint32) {
	for _, c := range p.pieces {
		crc = chunk.Combine(crc, c.crc32c, c.rng.Len())
	}
	return crc
}
