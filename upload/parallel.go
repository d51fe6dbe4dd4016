package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"gcsup/chunk"
	"gcsup/session"
)

// parallel sends one file in parts over several connections. It has what does not depend
// on how the parts become one object: their list, the workers, the order of the steps and
// the resume. The parts are in the Token, so that each continues where it was.
type parallel struct {
	j       *job
	size    int64
	parts   session.Parts // without the list, which is in pieces
	pieces  []*piece
	joiner  joiner
	adopted bool              // an earlier call saved the upload
	writer  *checkpointWriter // nil if the upload is not saved
	share   atomic.Pointer[share]
	done    atomic.Int32 // parts that are finished
}

// joiner is a way to send parts and to make one object of them. It has the state that
// only this way has.
type joiner interface {
	// unsuitable returns why an object with the settings of the job cannot be made in
	// this way, or "".
	unsuitable() (why string)

	// plan prepares a new upload. It returns why the service cannot do it in this way, or
	// "".
	plan(ctx context.Context) (why string, err error)

	// spec returns what the requests of a part are about.
	spec(c *piece) Spec

	// record returns where the run of a part keeps its state.
	record(c *piece) record

	// begin is called before parts are sent. It makes the Token durable if necessary, and
	// finds out which parts the service has. It returns the object if an earlier request
	// turns out to have made it.
	begin(ctx context.Context) (*session.Object, error)

	// send sends a part. It calls finished when the service has all of it.
	send(ctx context.Context, c *piece) error

	// join makes the object from the parts, which are all finished. The error is
	// errPartMissing if some are not any more.
	join(ctx context.Context) (*session.Object, error)

	// joined returns the object at the destination if an earlier request made it of
	// the parts, which are all finished. Otherwise the object is nil.
	joined(ctx context.Context) (*session.Object, error)

	// clean removes from the service what is not the object. joined reports that the
	// object was made. Otherwise what is under way is ended, too. left describes what
	// the service refuses to remove, and is "" if there is none. The error is that of a
	// request that may succeed later.
	clean(ctx context.Context, joined bool) (left string, err error)

	// leftovers describes what may be left if clean failed.
	leftovers() string

	// query asks what the service holds of the parts of a saved upload.
	query(ctx context.Context, token *session.Token) (Holding, error)
}

// errPartMissing means that the service does not have a part any more.
var errPartMissing = errors.New("a part is missing")

// planParallel returns the function that sends a file in parts, or nil if it is not sent
// in parts.
func planParallel(ctx context.Context, j *job) (func(context.Context) error, error) {
	size, parts := j.file.src.Size(), j.u.opts.Parallel
	part := parts.partSize(size)
	if part == 0 {
		return nil, nil
	}
	p := &parallel{j: j, size: size}
	suitable, why := p.suitable()
	if len(suitable) == 0 {
		j.sentAlone(why)
		return nil, nil
	}
	if why := j.u.whyOne(); why != "" {
		j.leaveWhole(why)
		return nil, nil
	}
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
	if why := j.u.whyOne(); why != "" { // the reply shows how near the service is
		j.leaveWhole(why)
		return nil, nil
	}
	seen := p.parts.Seen
	for _, p.joiner = range suitable {
		p.parts = session.Parts{Size: part, Seen: seen}
		refused, err := p.joiner.plan(ctx)
		if err != nil {
			return nil, err
		}
		if refused == "" {
			return p.upload, nil
		}
		why = reasons(why, refused)
	}
	j.leaveWhole(why)
	return nil, nil
}

// leaveWhole reports why a file is sent over one connection, unless its first request decides
// that.
func (j *job) leaveWhole(why string) {
	if j.u.opts.Parallel.auto && j.u.parts.unproven(why) {
		j.prove(why)
		return
	}
	j.sentAlone(why)
}

// whyOne returns why several connections would not be faster, or "", after it made sure
// that enough replies show how near the service is: the first one took the time to connect.
func (p *parallel) whyOne(ctx context.Context) (why string, err error) {
	u := p.j.u
	for range nearReplies {
		if !u.opts.Parallel.auto || u.parts.fastest.replies.Load() >= nearReplies || u.whyOne() != "" {
			break
		}
		if _, err := p.stat(ctx, p.j.spec); err != nil {
			return "", p.j.transfer.stopped(ctx, err, nil)
		}
	}
	return u.whyOne(), nil
}

// suitable returns the ways in which the object can be made, the preferred one first, and
// why it cannot be made in the others.
func (p *parallel) suitable() (ways []joiner, why string) {
	all := []joiner{&multipart{parallel: p}, &composer{p}}
	switch p.j.u.opts.Parallel.way {
	case ByMultipart:
		all = all[:1]
	case ByCompose:
		all = all[1:]
	}
	for _, way := range all {
		if not := way.unsuitable(); not != "" {
			why = reasons(why, not)
			continue
		}
		ways = append(ways, way)
	}
	return ways, why
}

// reasons joins two reasons, of which the first may be "".
func reasons(first, second string) string {
	if first == "" || first == second {
		return second
	}
	return first + "; " + second
}

// sentAlone reports why a file is not sent in parts. If parts were asked for, it is a
// warning.
func (j *job) sentAlone(why string) {
	if j.u.opts.Parallel.auto {
		j.events.post(Event{Kind: Undivided, Cause: why})
		return
	}
	j.events.post(Event{Kind: Warning, Cause: "the file is sent over one connection: " + why})
}

// look notes which object is at the destination, because a request whose reply was
// lost may have made another one. ok is false if that is not known.
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
	case r.Status == 404:
		p.parts.Seen = 0
		return true, nil
	}
	return false, nil
}

// upload sends all parts and makes the object of them.
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
			why = "it was over; what was left of it is removed"
		}
	}
	if why != "" {
		if err := p.abandon(ctx); err != nil {
			return err
		}
		j.parts.Store(nil)
		return j.startOver(ctx, why)
	}
	j.journal.file = j.file
	return p.send(ctx)
}

// abandonParts removes from the service what it has of a saved upload.
func abandonParts(ctx context.Context, j *job, token *session.Token) error {
	defer j.parts.Store(nil)
	return newParallel(j, token).abandon(ctx)
}

// made reports whether an earlier call made the object, and it is still there.
func (p *parallel) made(ctx context.Context) (bool, error) {
	if !p.finished() {
		return false, nil
	}
	o, err := p.joiner.joined(ctx)
	return o != nil, err
}

// newParallel returns the parts of a saved upload.
func newParallel(j *job, token *session.Token) *parallel {
	p := &parallel{j: j, size: token.Source.Size, parts: *token.Parts, adopted: true}
	p.joiner = &composer{p}
	if !token.Parts.Upload.IsZero() {
		p.joiner = &multipart{parallel: p}
	}
	p.split(token.Parts.List)
	return p
}

// compareParts compares all bytes that were sent, as far as their checksums are saved.
func (j *job) compareParts(ctx context.Context, token *session.Token) error {
	for i, part := range token.Parts.List {
		rng := token.Parts.Range(i, token.Source.Size)
		known := part.Checkpoints
		if part.Finished() {
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
	p.j.parts.Store(&partsView{p.position, p.progress})
}

// section returns the content of a part of the file. Its identity is not that of the
// file, which is compared at the end.
func (j *job) section(rng chunk.Range) *fileContent {
	src := chunk.FromReaderAt(io.NewSectionReader(j.file.src, rng.From, rng.Len()), rng.Len())
	return &fileContent{src: src, identity: chunk.Identity{Size: src.Size()}, sum: chunk.NewPrefixCRC(chunk.Checkpoint{}), settled: true, reread: j.reread}
}

// position returns the sums over all parts.
func (p *parallel) position() (size, sent, committed int64) {
	for _, c := range p.pieces {
		_, s, n := c.transfer.pos.load()
		sent, committed = sent+max(s, n), committed+n
	}
	return p.size, sent, committed
}

// progress returns what events carry of the parts.
func (p *parallel) progress() *PartsProgress {
	v := &PartsProgress{Count: len(p.pieces), Done: int(p.done.Load())}
	if share := p.share.Load(); share != nil {
		v.Connections = share.using()
	}
	return v
}

// send sends the parts that are not finished, makes the object, and removes what is left.
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
		err = p.verify(object)
	}
	return p.conclude(ctx, j.ended(ctx, err))
}

// account notes in the transfer of the whole, which joins the parts, how far they are.
func (p *parallel) account() {
	_, sent, committed := p.position()
	p.j.transfer.pos.sent.Store(sent)
	p.j.transfer.pos.committed.Store(committed)
}

// make sends what is left and makes the object.
func (p *parallel) make(ctx context.Context) (*session.Object, error) {
	if p.continues() {
		p.j.update(func(r *Result) { r.Resumed = true })
		p.j.events.post(Event{Kind: Resumed})
	}
	p.account()
	if p.finished() {
		// An earlier call may have made the object.
		if o, err := p.joiner.joined(ctx); o != nil || err != nil {
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

// makeOnce is make until a part is missing.
func (p *parallel) makeOnce(ctx context.Context) (*session.Object, error) {
	if o, err := p.joiner.begin(ctx); o != nil || err != nil {
		return o, err
	}
	before := p.done.Load()
	err := p.sendAll(ctx)
	if p.done.Load() > before {
		p.j.transfer.retry.progressed() // since the failures of requests about the whole
	}
	if err != nil {
		return nil, err
	}
	p.account()
	if err := p.confirm(ctx); err != nil {
		return nil, err
	}
	return p.joiner.join(ctx)
}

// maxMissing bounds how often parts that disappeared are sent again.
const maxMissing = 3

// continues reports whether there are parts of an earlier call, and counts the bytes of
// those that are finished.
func (p *parallel) continues() (earlier bool) {
	earlier = p.adopted && !p.parts.Upload.IsZero()
	for _, c := range p.pieces {
		if c.done.Finished() {
			c.resumed = c.rng.Len()
		}
		earlier = earlier || c.done.Finished() || c.saved != nil
	}
	return earlier
}

func (p *parallel) finished() bool {
	for _, c := range p.pieces {
		if !c.done.Finished() {
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
		if !c.done.Finished() {
			todo <- c
		}
	}
	close(todo)
	all := p.j.u.connections()
	share := all.enter()
	p.share.Store(share)
	defer p.report(all, share)
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

// sendOne sends a part when it is its turn. If ctx is done before, it does nothing.
func (p *parallel) sendOne(ctx context.Context, s *share, c *piece) error {
	lane := s.acquire(ctx)
	if lane == nil {
		return nil
	}
	defer func() { s.release(lane, c.stored()) }()
	if ctx.Err() != nil {
		return nil
	}
	c.transfer.lane = lane
	defer func() { c.transfer.lane = nil }()
	return p.joiner.send(ctx, c)
}

// report ends the share of the file in the connections, and notes what they reached.
func (p *parallel) report(all *connections, s *share) {
	connections, rate, one := s.reached()
	s.leave()
	p.j.u.learned(all)
	p.j.update(func(r *Result) {
		r.Parts = &PartsResult{Count: len(p.pieces), Connections: connections, Rate: int64(rate), RateOfOne: int64(one)}
	})
}

// errSibling is the cause of the end of parts whose sibling failed.
var errSibling = errors.New("another part failed")

// crc32c returns the checksum of the whole.
func (p *parallel) crc32c() (crc uint32) {
	for _, c := range p.pieces {
		crc = chunk.Combine(crc, c.done.CRC32C, c.rng.Len())
	}
	return crc
}

// confirm checks what must hold before the object is there.
func (p *parallel) confirm(ctx context.Context) error {
	j := p.j
	if err := j.transfer.expect.ended(ctx, p.size); err != nil {
		return err
	}
	whole := func() chunk.Checkpoint { return chunk.Checkpoint{Offset: p.size, CRC32C: p.crc32c()} }
	if err := j.file.unchangedFrom(ctx, whole); err != nil {
		return j.transfer.sourceFailed(ctx, err)
	}
	return j.transfer.expected(p.crc32c())
}

// ask makes a request about the whole until the service answers, once more with other
// credentials if it does not accept them.
func (p *parallel) ask(ctx context.Context, exchange func(context.Context) session.Reply) (session.Reply, error) {
	t := p.j.transfer
	for refreshed := false; ; refreshed = true {
		r, err := t.retry.repeat(ctx, exchange)
		if err != nil {
			return r, t.stopped(ctx, err, nil)
		}
		if r.Status != http.StatusUnauthorized || refreshed {
			return r, nil
		}
	}
}

// stat looks at an object until the service answers.
func (p *parallel) stat(ctx context.Context, spec Spec) (session.Reply, error) {
	t := p.j.transfer
	return t.retry.repeat(ctx, func(ctx context.Context) session.Reply { return described(t.wire.statOf(ctx, spec)) })
}

// failure returns the error of a reply about the whole.
func (p *parallel) failure(r session.Reply, kind error) error {
	refused := r.Refusal()
	refused.Kind, refused.Offset = kind, p.size
	return p.j.transfer.retry.failure(refused, nil)
}

// verify compares the finished object with the source.
func (p *parallel) verify(object *session.Object) error {
	j, op := p.j, session.OpCompose
	if !p.parts.Upload.IsZero() {
		op = session.OpComplete
	}
	o, err := verifyObject(*object, j.spec, p.size, p.crc32c())
	if err != nil {
		return j.transfer.retry.failure(&session.Error{Op: op, Status: 200, Kind: session.ErrUnexpectedData}, err)
	}
	j.update(func(r *Result) { r.Object = o })
	j.events.progress()
	return nil
}
