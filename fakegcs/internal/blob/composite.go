package blob

import (
	"errors"
	"io"
)

// composite is a list of blobs, one after the other. A composed object shares
// the bytes of its sources, and an object of an XML multipart upload those of
// its parts. It holds a reference to each piece. No piece is a composite.
type composite struct{ pieces []*Blob }

// Join returns a blob that consists of blobs, in their order.
func Join(blobs []*Blob) *Blob {
	c := &composite{}
	for _, b := range blobs {
		if nested, ok := b.storage.(*composite); ok {
			c.pieces = append(c.pieces, nested.pieces...)
		} else {
			c.pieces = append(c.pieces, b)
		}
	}
	for _, p := range c.pieces {
		p.Retain()
	}
	return &Blob{storage: c, remove: func() error {
		for _, p := range c.pieces {
			p.Release()
		}
		return nil
	}}
}

// Pieces returns the blobs that b consists of if it is from [Join], else nil.
func (b *Blob) Pieces() []*Blob {
	if c, ok := b.storage.(*composite); ok {
		return c.pieces
	}
	return nil
}

func (b *composite) Size() int64 {
	n := int64(0)
	for _, p := range b.pieces {
		n += p.Size()
	}
	return n
}

var errComposite = errors.New("fakegcs: a composed object does not change")

func (b *composite) Append([]byte, bool) (bool, error) { return false, errComposite }
func (b *composite) Truncate(int64) error              { return errComposite }
func (b *composite) Close() error                      { return nil }

func (b *composite) Section(from, to int64) (io.ReadCloser, error) {
	r := &pieceReader[*Blob]{pieces: b.pieces, from: from, to: to}
	if err := r.open(); err != nil && err != io.EOF {
		return nil, err
	}
	return r, nil
}

// pieceReader reads pieces one after the other. It has one of them open at a time.
type pieceReader[P interface {
	Size() int64
	Section(from, to int64) (io.ReadCloser, error)
}] struct {
	pieces   []P           // those still to come
	from, to int64         // relative to the start of pieces
	current  io.ReadCloser // nil: none is open
}

// open opens the next piece that has any of the bytes.
func (r *pieceReader[P]) open() error {
	for len(r.pieces) > 0 && r.from < r.to {
		next := r.pieces[0]
		n := next.Size()
		from, to := r.from, min(r.to, n)
		r.pieces, r.from, r.to = r.pieces[1:], max(0, r.from-n), r.to-n
		if from < n {
			var err error
			r.current, err = next.Section(from, to)
			return err
		}
	}
	return io.EOF
}

func (r *pieceReader[P]) Read(p []byte) (int, error) {
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

func (r *pieceReader[P]) Close() error {
	if r.current == nil {
		return nil
	}
	return r.current.Close()
}
