package state

import (
	"errors"
	"fmt"
	"iter"

	"gcsup/chunk"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/session/internal/secret"
)

// Parts is the part of a saved upload that describes a file sent in parts. There are two
// ways to send it. By compose, each part becomes a temporary object through a session
// of its own, and the temporary objects are composed at the end. By multipart, the
// parts are those of one multipart upload.
type Parts struct {
	// Size is the number of bytes of each part except the last: a multiple of
	// chunk.Granularity. The parts of a stream in a spool, and of a compressed file, each have a Part.Size. Size is
	// then the size of the first part, or less.
	Size int64 `json:"size"`

	// Prefix is the prefix of the names of the temporary objects. It contains the ID of
	// the upload and is unique. It is "" for a multipart upload to the object itself.
	Prefix string `json:"prefix,omitempty"`

	// Upload names the multipart upload, and is a secret. It is zero if there is none.
	Upload session.URI `json:"-"`

	// Seen is the generation of the object at the destination when the upload began, or when a
	// compose found that another client had replaced it; 0 if there was none. A compose replaces
	// the object only if it has this generation, unless Spec has a condition of its own. An object
	// that an earlier request of this upload made has a greater generation.
	Seen int64 `json:"seen,omitempty"`

	// DeleteSources is set if the request that composes the parts deletes them.
	DeleteSources bool `json:"delete_sources,omitempty"`

	// Joining is set if a request that makes the object from the parts may have been sent, and
	// its outcome is not known. It is saved before that request. The object at the destination
	// is then not replaced unless its generation is Seen.
	Joining bool `json:"joining,omitempty"`

	// Over is set if the object was made, or the upload was abandoned. Only the temporary objects, or
	// the multipart upload, must still be deleted. It is also set while a stream is sent in parts,
	// because no other process can finish it. Size is then 0. If there is a Prefix, List has the
	// temporary objects that were made, and the multipart upload in Upload makes the next one.
	Over bool `json:"over,omitempty"`

	List []Part `json:"-"` // in the order of the file
}

// ofStream reports whether the parts are those of a stream.
func (p *Parts) ofStream() bool {
	return p.Over && p.Size == 0 && (p.Prefix != "" || !p.Upload.IsZero())
}

// soundStream checks the invariants of the parts of a stream.
func (p *Parts) soundStream() error {
	if p.Seen != 0 || p.DeleteSources || p.Joining || p.Prefix == "" && len(p.List) > 0 {
		return errors.New("invalid parts of a stream")
	}
	for i := range p.List {
		if part := &p.List[i]; part.Generation <= 0 || part.ETag != "" || part.HighWater > 0 || !part.URI.IsZero() {
			return errors.New("invalid temporary object of a stream")
		}
	}
	return nil
}

// Part is one part of a file. The offsets of its Session are relative to the part. A part of
// a multipart upload has no Session, and only ETag and CRC32C, which are set when it is
// finished.
type Part struct {
	Session

	Generation int64  `json:"generation,omitempty"` // of the temporary object; 0 until it was made
	Size       int64  `json:"size,omitempty"`       // of the part of a stream in a spool, or of a compressed file; 0 for another file
	ETag       string `json:"etag,omitempty"`       // of the part, by multipart; "" until the service has all of it
	CRC32C     uint32 `json:"crc32c,omitempty"`     // of the part, once it is finished
}

// Finished reports whether the service has all bytes of the part.
func (p *Part) Finished() bool { return p.Generation != 0 || p.ETag != "" }

// Ranges yields the number of each part, from 0, and its bytes in a file of size bytes, or in a stream.
func (p *Parts) Ranges(size int64) iter.Seq2[int, chunk.Range] {
	return func(yield func(int, chunk.Range) bool) {
		var rng chunk.Range
		for i := range p.List {
			rng.From = rng.To
			if own := p.List[i].Size; own > 0 {
				rng.To += own
			} else {
				rng.To = min(rng.From+p.Size, size)
			}
			if !yield(i, rng) {
				return
			}
		}
	}
}

// Offsets returns how many bytes of all parts of a file of size bytes are committed, and
// how many are known to have been sent.
func (p *Parts) Offsets(size int64) (committed, sent int64) {
	for i, rng := range p.Ranges(size) {
		part := &p.List[i]
		n := part.Committed
		if part.Finished() {
			n = rng.Len()
		}
		committed, sent = committed+n, sent+n
		if k := len(part.Checkpoints); k > 0 {
			sent += max(part.Checkpoints[k-1].Offset-n, 0)
		}
	}
	return committed, sent
}

// sound checks the invariants of the parts of a file of size bytes. grown reports that each part has a
// size of its own: those of a stream in a spool, and of a compressed file.
func (p *Parts) sound(size int64, grown bool) error {
	if p.ofStream() {
		return p.soundStream()
	}
	byMultipart := !p.Upload.IsZero()
	if p.Size <= 0 || p.Size%chunk.Granularity != 0 || (p.Prefix == "") != byMultipart || p.Seen < 0 || byMultipart && p.DeleteSources {
		return errors.New("invalid parts")
	}
	n := (size + p.Size - 1) / p.Size
	switch {
	case grown && !byMultipart:
		return errors.New("invalid parts of a stream")
	case !grown && (p.Size > size || int64(len(p.List)) != n):
		return errors.New("invalid number of parts")
	}
	for i, rng := range p.Ranges(size) {
		part := &p.List[i]
		switch {
		case grown != (part.Size > 0) || part.Size%chunk.Granularity != 0 && i < len(p.List)-1 || part.Size < 0:
			return errors.New("invalid size of a part")
		case part.Generation < 0:
			return errors.New("invalid generation of a part")
		case part.HighWater > 0 && !part.Finished() && part.URI.IsZero():
			return errors.New("a part has no session")
		case !byMultipart && part.ETag != "", part.ETag != "" && !multipart.ValidETag(part.ETag),
			byMultipart && (part.Generation != 0 || part.HighWater > 0 || !part.URI.IsZero()):
			return errors.New("a part is joined in another way")
		}
		if err := part.sound(rng.Len()); err != nil {
			return fmt.Errorf("part %d: %w", i+1, err)
		}
	}
	return nil
}

// savedParts is the saved form of Parts. A URI redacts itself, and is therefore saved as
// text.
type savedParts struct {
	Parts
	UploadURI string      `json:"upload_uri,omitempty"`
	List      []savedPart `json:"list"`
}

type savedPart struct {
	Part
	SessionURI string `json:"session_uri,omitempty"`
}

// save returns the saved form.
func (p *Parts) save() *savedParts {
	if p == nil {
		return nil
	}
	s := &savedParts{Parts: *p, UploadURI: secret.Reveal(p.Upload)}
	for _, part := range p.List {
		s.List = append(s.List, savedPart{part, secret.Reveal(part.URI)})
	}
	return s
}

// restore returns the Parts that were saved as s.
func (s *savedParts) restore() *Parts {
	if s == nil {
		return nil
	}
	p := s.Parts
	p.Upload = session.URI(secret.New(s.UploadURI))
	for _, saved := range s.List {
		saved.URI = session.URI(secret.New(saved.SessionURI))
		p.List = append(p.List, saved.Part)
	}
	return &p
}
