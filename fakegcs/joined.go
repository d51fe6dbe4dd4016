package fakegcs

import (
	"errors"
	"io"
)

// joinedBlob is blobs one after the other: a composed object shares the bytes of
// its sources, and one of an XML multipart upload those of its parts. It holds a
// reference to each.
type joinedBlob struct{ pieces []*sharedBlob } // none is a joinedBlob

// joinBlobs makes one, with one reference.
func joinBlobs(blobs []*sharedBlob) *sharedBlob {
	j := &joinedBlob{}
	for _, b := range blobs {
		if nested, ok := b.blob.(*joinedBlob); ok {
			j.pieces = append(j.pieces, nested.pieces...)
		} else {
			j.pieces = append(j.pieces, b)
		}
	}
	for _, p := range j.pieces {
		p.retain()
	}
	b := &sharedBlob{blob: j, remove: func() error {
		for _, p := range j.pieces {
			p.release()
		}
		return nil
	}}
	return b.retain()
}

func (b *joinedBlob) size() int64 {
	n := int64(0)
	for _, p := range b.pieces {
		n += p.size()
	}
	return n
}

var errJoined = errors.New("fakegcs: a composed object doesn't change")

func (b *joinedBlob) append([]byte, bool) (bool, error) { return false, errJoined }
func (b *joinedBlob) truncate(int64) error              { return errJoined }
func (b *joinedBlob) close() error                      { return nil }

func (b *joinedBlob) section(from, to int64) (io.ReadCloser, error) {
	r := &joinedReader{pieces: b.pieces, from: from, to: to}
	if err := r.open(); err != nil && err != io.EOF {
		return nil, err
	}
	return r, nil
}

// joinedReader has one piece open at a time.
type joinedReader struct {
	pieces   []*sharedBlob // those still to come
	from, to int64         // counted from where pieces begin
	current  io.ReadCloser // nil: none is open
}

// open opens the next piece that has any of the bytes.
func (r *joinedReader) open() error {
	for len(r.pieces) > 0 && r.from < r.to {
		next := r.pieces[0]
		n := next.size()
		from, to := r.from, min(r.to, n)
		r.pieces, r.from, r.to = r.pieces[1:], max(0, r.from-n), r.to-n
		if from < n {
			var err error
			r.current, err = next.section(from, to)
			return err
		}
	}
	return io.EOF
}

func (r *joinedReader) Read(p []byte) (int, error) {
	for {
		if r.current == nil {
			if err := r.open(); err != nil {
				return 0, err
			}
		}
		n, err := r.current.Read(p)
		if err != io.EOF {
			return n, err
		}
		closeErr := r.current.Close()
		r.current = nil
		if n > 0 || closeErr != nil {
			return n, closeErr
		}
	}
}

func (r *joinedReader) Close() error {
	if r.current == nil {
		return nil
	}
	return r.current.Close()
}
