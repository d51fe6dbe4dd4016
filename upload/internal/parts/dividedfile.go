package parts

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/internal/decide"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/connections"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
	"gcsup/upload/internal/spool"
	"gcsup/upload/internal/stream"
)

// Division is what a file in parts is made of.
type Division struct {
	Wire    *engine.Requester // of the object
	Uplink  *engine.Uplink
	Journal *saved.Journal
	File    *source.File // nil if no bytes are sent, for a stream in memory, and for a compressed file
	Zipped  *source.Gzip // nil unless the bytes are those of a compressed file
	Spool   *spool.Spool // nil unless the bytes are those of a stream on disk
	Expect  engine.Expectation
	Memory  *stream.Memory
	Options Options
	Link    *connections.Link
	Began   time.Time // the call
}

// dividedFile is a file in parts, and the object that they will be. The journal has what must be
// saved of it.
type dividedFile struct {
	Division
	from int64 // the bytes of a stream that other multipart uploads have; otherwise 0

	mu    sync.Mutex // held while a stream changes what follows, and by Position and Progress
	size  int64      // of the object; -1 while it is not known
	parts []*filePart
	growth
}

// known returns the size, and the parts that are known so far.
func (f *dividedFile) known() (size int64, parts []*filePart) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.size, f.parts
}

// part returns part i of the file, which has the bytes of rng.
func (f *dividedFile) part(i int, rng chunk.Range) *filePart {
	spec := f.Wire.Spec
	if !f.isMultipart() {
		spec = f.temporary(f.partName(i))
	}
	pos := engine.NewPosition(rng.Len())
	pos.Handed = min(max(f.Wire.Pos.Handed-rng.From, 0), rng.Len()) // sent before, to measure the rate of one connection
	p := &filePart{Requester: engine.NewRequester(f.Uplink, i+1, pos).To(spec), i: i, rng: rng}
	if f.File != nil {
		p.content = f.File.Section(rng)
	}
	p.record = f.Journal.RecordPart(i+1, p.content)
	if p.finished() {
		p.resumed = rng.Len()
	}
	p.place(max(p.resumed, p.state().Committed))
	return p
}

// common returns what the saved upload describes of all parts together. [saved.Journal.Change]
// changes it.
func (f *dividedFile) common() *state.Parts { return f.Journal.Parts() }

// isMultipart reports whether the parts are those of a multipart upload to the object.
func (f *dividedFile) isMultipart() bool {
	return !f.common().Upload.IsZero() && f.common().Prefix == ""
}

// Started reports whether the service may have parts of an earlier call.
func (f *dividedFile) Started() bool {
	return !f.common().Upload.IsZero() || slices.ContainsFunc(f.parts, func(p *filePart) bool { return p.finished() || !p.state().URI.IsZero() })
}

// Position returns the sums over all parts.
func (f *dividedFile) Position() (size, sent, arrived, committed int64) {
	size, parts := f.known()
	for _, p := range parts {
		_, s, a, n := p.Pos.Load()
		sent, arrived, committed = sent+max(s, n), arrived+a, committed+n
	}
	return size, sent, arrived, committed
}

// updatePosition copies the sums over all parts to the transfer of the whole file.
func (f *dividedFile) updatePosition() {
	_, sent, _, committed := f.Position()
	f.Wire.Pos.Sent.Store(sent)
	f.Wire.Pos.Committed.Store(committed)
}

// crc32c returns the checksum of the whole file, from those of its parts.
func (f *dividedFile) crc32c() (crc uint32) {
	for _, p := range f.parts {
		crc = checksum.Combine(crc, p.state().CRC32C, p.rng.Len())
	}
	return crc
}

// Find returns the object at the destination if all parts are finished, and an earlier request
// made it from them. Otherwise the object is nil. The size of what an earlier process left of a stream is not known.
func (f *dividedFile) Find(ctx context.Context) (*session.Object, error) {
	if f.size <= 0 || f.Journal.Finished() < len(f.parts) {
		return nil, nil
	}
	a, err := f.Wire.Ask(ctx, decide.Request{}, f.Wire.Stat)
	if err != nil || a.Object == nil || !f.made(a.Object) {
		return nil, err
	}
	return a.Object, nil
}

// made reports whether o has the bytes of the parts, and may have been made by this upload. It is
// then newer than the object that was there before. An object of a multipart upload has no MD5,
// and a composed one the number of its parts, unless multipart uploads made those, as for a stream.
func (f *dividedFile) made(o *session.Object) bool {
	older := f.common().Seen
	if g := f.Wire.Spec.IfGenerationMatch; g != nil {
		older = *g
	}
	switch {
	case o.Generation <= older || o.Size != f.size || !o.HasCRC32C || o.CRC32C != f.crc32c():
		return false
	case f.isMultipart() || f.common().Size == 0:
		return o.MD5 == nil
	}
	return o.ComponentCount == int64(len(f.parts))
}

// markOver records in the saved upload that the upload has ended and only the cleanup is left.
func (f *dividedFile) markOver(ctx context.Context) {
	if f.Journal.Saved() {
		f.Journal.Change(func(p *state.Parts) { p.Over, p.Joining = true, false })
		_ = f.Journal.Save(ctx) // a failure is a warning
	}
}

// partName returns the name of the temporary object of part i.
func (f *dividedFile) partName(i int) string { return fmt.Sprintf("%s%04d", f.common().Prefix, i) }

// temporary returns the Spec of a temporary object. Its custom time is for lifecycle
// rules. Its storage class is that of the object, because a compose requires the same
// class.
func (f *dividedFile) temporary(name string) session.Spec {
	s := f.Wire.Spec
	return session.Spec{
		Bucket: s.Bucket, Object: name, IfGenerationMatch: new(int64), CustomTime: f.Began.UTC().Truncate(time.Second),
		StorageClass: s.StorageClass, KMSKeyName: s.KMSKeyName, UserProject: s.UserProject,
		ContentType: "application/octet-stream",
	}
}
