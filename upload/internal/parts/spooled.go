package parts

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"gcsup/chunk"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/spool"
)

// growth divides a stream on disk while it is read, or a file while it is compressed. The parts are in the journal, and
// get a filePart when they are sent.
type growth struct {
	mu    sync.Mutex // held while parts are added
	ends  []int64    // the offset at which each part ends
	whole bool       // the parts are those of all of the stream
	keep  bool       // nothing is removed from the disk, because all of it is sent again

	complete bool // the service has all parts of a compressed file, which is not compressed again
}

// tooLong is the error of a stream that has more bytes than n parts hold.
func tooLong(hold int64, n int, advice string) error {
	return fmt.Errorf("%w: the stream has more than the %d bytes that %d parts hold with %s, or one connection (--parallel off)", session.ErrInvalid, hold, n, advice)
}

// read adds the parts that the bytes on disk allow, and reports whether part i can be sent, or there is none. A part
// has all bytes that it should have, unless the disk is full and no other part will give space: it then has those
// that are there.
func (f *dividedFile) read(i int, now spool.Status) (ready bool, err error) {
	g := &f.growth
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case now.End != nil:
		return true, nil
	case i < len(g.ends):
		return now.Sendable >= g.ends[i], nil
	}
	there, size := now.Sendable-g.end(), f.nextSize()
	if full := now.Full && there >= multipart.MinPart && f.Journal.Finished() == len(g.ends); there < size && !full {
		return false, nil
	}
	return true, f.add(min(there, size))
}

// end returns the offset at which the last part ends. The caller holds mu.
func (g *growth) end() int64 {
	if len(g.ends) == 0 {
		return 0
	}
	return g.ends[len(g.ends)-1]
}

// nextSize returns the size that the next part should have. The caller holds growth.mu.
func (f *dividedFile) nextSize() int64 {
	return spooledPart(f.common().Size, f.growth.end(), f.Spool.Limit())
}

// add adds a part of size bytes. The caller holds growth.mu.
func (f *dividedFile) add(size int64) error {
	g := &f.growth
	if n := len(g.ends); n >= f.Options.most() {
		return tooLong(g.end(), n, "this spool: give it more space (--spool-limit)")
	}
	f.Journal.Change(func(p *state.Parts) { p.List = append(p.List, state.Part{Size: size}) })
	g.ends = append(g.ends, g.end()+size)
	return nil
}

// Ended divides the rest of a stream of size bytes, and saves all parts, so that another process can continue as soon
// as the end is recorded. It may be called while Send runs.
func (p *Upload) Ended(ctx context.Context, size int64) error {
	if err := p.divide(size); err != nil {
		return err
	}
	err := p.Journal.Persist(ctx)
	if err != nil { // no other process can continue, and the store may need the space
		p.growth.mu.Lock()
		p.whole = false
		p.growth.mu.Unlock()
		p.release()
	}
	return err
}

// divide adds the parts of the rest of a stream of size bytes.
func (f *dividedFile) divide(size int64) error {
	g := &f.growth
	g.mu.Lock()
	defer g.mu.Unlock()
	for left := size - g.end(); left > 0; left = size - g.end() {
		if err := f.add(min(left, f.nextSize())); err != nil {
			return err
		}
	}
	g.whole = true
	return nil
}

// await waits until the bytes of part i are on disk, and returns it. It is nil if there is none.
func (p *Upload) await(ctx context.Context, i int) (*filePart, error) {
	switch {
	case p.Zipped != nil:
		return p.nextCompressed(ctx, i)
	case p.Spool != nil:
	case i < len(p.parts):
		return p.parts[i], nil
	default:
		return nil, nil
	}
	var failed error
	now, err := p.Spool.Await(ctx, func(now spool.Status) (ready bool) {
		ready, failed = p.read(i, now)
		return ready || failed != nil
	})
	if err = cmp.Or(failed, err); err != nil {
		return nil, engine.SourceFailed(ctx, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i < len(p.parts) {
		return p.parts[i], nil
	}
	p.growth.mu.Lock()
	defer p.growth.mu.Unlock()
	if i >= len(p.ends) {
		p.size = now.End.Offset
		p.Wire.Pos.Size.Store(p.size)
		return nil, nil
	}
	rng := chunk.Range{To: p.ends[i]}
	if i > 0 {
		rng.From = p.ends[i-1]
	}
	p.parts = append(p.parts, p.part(i, rng))
	return p.parts[i], nil
}

// release removes from the disk what is before the first part that the service does not have. From the end of the
// stream on, another process can continue, and must know these parts: they are saved first, see releaseSaved.
func (f *dividedFile) release() {
	if f.Spool == nil && f.Zipped == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Zipped != nil {
		f.Zipped.Offsets().Forget(f.prefix())
		return
	}
	f.growth.mu.Lock() // until the bytes are removed, so that the upload does not start over meanwhile
	defer f.growth.mu.Unlock()
	if f.growth.whole {
		f.Journal.SaveSoon()
		return
	}
	if !f.growth.keep {
		f.Spool.Release(f.prefix())
	}
}

// prefix returns the offset before which the service has all parts. The caller holds mu.
func (f *dividedFile) prefix() (to int64) {
	for _, p := range f.parts {
		if !p.finished() {
			break
		}
		to = p.rng.To
	}
	return to
}

// releaseSaved is release for parts that are saved.
func (f *dividedFile) releaseSaved(saved *state.Parts) {
	var to int64
	for i := range saved.List {
		if !saved.List[i].Finished() {
			break
		}
		to += saved.List[i].Size
	}
	f.growth.mu.Lock()
	defer f.growth.mu.Unlock()
	if !f.growth.keep {
		f.Spool.Release(to)
	}
}

// startsOver reports whether all bytes can be sent again. If so, none is removed from the disk until startedOver, because
// a save in the background may still have parts of the multipart upload that was lost.
func (f *dividedFile) startsOver() bool {
	if f.Spool == nil {
		return true
	}
	f.growth.mu.Lock()
	defer f.growth.mu.Unlock()
	f.growth.keep = f.Spool.Status().From == 0
	return f.growth.keep
}

// startedOver is called when the saved upload names the multipart upload that has the parts from now on.
func (f *dividedFile) startedOver() {
	f.growth.mu.Lock()
	defer f.growth.mu.Unlock()
	f.growth.keep = false
}

// lost returns an error if a part that the service no longer has cannot be sent again.
func (f *dividedFile) lost(p *filePart) error {
	if f.Spool == nil || p.rng.From >= f.Spool.Status().From {
		return nil
	}
	return fmt.Errorf("%w: the service no longer has part %d, and its bytes were removed from the disk", session.ErrSessionLost, p.i+1)
}

// undamaged compares the parts of a stream with what was read.
func (f *dividedFile) undamaged() error {
	if f.Spool == nil {
		return nil
	}
	if end := f.Spool.Status().End; end == nil || *end != (chunk.Checkpoint{Offset: f.size, CRC32C: f.crc32c()}) {
		return fmt.Errorf("%w: %w: its parts have another checksum than the bytes that were read (%s)", chunk.ErrRead, spool.ErrDamaged, f.Spool.Path())
	}
	return nil
}

// Again restores the retries of all parts, after they were exhausted.
func (p *Upload) Again() {
	p.Wire.Retry.Progressed()
	for _, part := range p.parts {
		part.Retry.Progressed()
	}
}
