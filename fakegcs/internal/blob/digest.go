package blob

import (
	"crypto/md5"
	"encoding"
	"hash"
	"hash/crc32"
	"io"
	"sync"
)

// Pool holds the buffers for request bodies, of Granularity bytes each. The zero
// value is an empty pool.
type Pool struct{ pool sync.Pool }

// Get returns a buffer of Granularity bytes.
func (b *Pool) Get() []byte {
	if p, ok := b.pool.Get().(*[Granularity]byte); ok {
		return p[:]
	}
	return make([]byte, Granularity)
}

// Put returns a buffer from Get, or its beginning, to the pool.
func (b *Pool) Put(p []byte) { b.pool.Put((*[Granularity]byte)(p[:Granularity])) }

// Digest is the running checksum of the bytes of an object, so that they need not be
// read again. MD5 has about a fifth of the speed of everything else here. It
// therefore has its own goroutine, which is at most 256 KiB behind. A Digest has one
// owner, and every caller holds the owner's lock.
type Digest struct {
	crc     uint32
	md5     hash.Hash // nil: no MD5 is computed
	pool    *Pool
	work    chan hashJob // nil: the goroutine isn't running
	pending sync.WaitGroup
}

type hashJob struct {
	p    []byte
	free bool // return the buffer to the pool after hashing
}

// NewDigest returns the checksum of no bytes, with or without MD5. Its buffers return
// to pool.
func NewDigest(pool *Pool, withMD5 bool) *Digest {
	d := &Digest{pool: pool}
	if withMD5 {
		d.md5 = md5.New()
	}
	return d
}

// ResumeDigest continues from the state that [Digest.State] and [Digest.CRC32C]
// returned. It fails if the state is not one of MD5; nil is valid without MD5.
func ResumeDigest(pool *Pool, withMD5 bool, crc uint32, state []byte) (*Digest, error) {
	d := NewDigest(pool, withMD5)
	d.crc = crc
	if d.md5 == nil {
		return d, nil
	}
	return d, d.md5.(encoding.BinaryUnmarshaler).UnmarshalBinary(state)
}

// Add hashes p, which has at most 256 KiB. If free is set, p returns to the pool
// afterwards.
func (d *Digest) Add(p []byte, free bool) {
	d.crc = crc32.Update(d.crc, castagnoli, p)
	switch {
	case d.md5 == nil:
	case len(p) < Granularity:
		d.pending.Wait()
		d.md5.Write(p)
	default:
		if d.work == nil {
			d.work = make(chan hashJob)
			go d.run(d.work)
		}
		d.pending.Add(1)
		d.work <- hashJob{p, free}
		return
	}
	if free {
		d.pool.Put(p)
	}
}

func (d *Digest) run(work <-chan hashJob) {
	for job := range work {
		d.md5.Write(job.p)
		if job.free {
			d.pool.Put(job.p)
		}
		d.pending.Done()
	}
}

// CRC32C returns the CRC32C of the bytes so far.
func (d *Digest) CRC32C() uint32 { return d.crc }

// HasMD5 reports whether d computes the MD5.
func (d *Digest) HasMD5() bool { return d.md5 != nil }

// MD5 returns the MD5 of the bytes so far, or nil without MD5.
func (d *Digest) MD5() []byte {
	if d.md5 == nil {
		return nil
	}
	d.pending.Wait()
	return d.md5.Sum(nil)
}

// State returns the state of the MD5, for [ResumeDigest]. It is nil without MD5.
func (d *Digest) State() []byte {
	if d.md5 == nil {
		return nil
	}
	d.pending.Wait()
	state, _ := d.md5.(encoding.BinaryMarshaler).MarshalBinary() // never fails
	return state
}

// Idle ends the goroutine after its work. The next Add starts another.
func (d *Digest) Idle() {
	if d.work != nil {
		d.pending.Wait()
		close(d.work)
		d.work = nil
	}
}

// ReadChunks reads r to its end and passes its bytes to take in chunks, which end at
// offsets in the object that are multiples of [Granularity]. The first byte has the
// offset off. A shorter last chunk is passed only if r ended with io.EOF: if a body
// is cut off, the service keeps a multiple of Granularity. take owns its buffer,
// which comes from pool.
func ReadChunks(r io.Reader, off int64, pool *Pool, take func(p []byte) error) error {
	for {
		p := pool.Get()[:Granularity-off%Granularity]
		n, err := fill(r, p)
		if err != nil && err != io.EOF {
			pool.Put(p)
			return err
		}
		if n == 0 {
			pool.Put(p)
			return nil
		}
		if takeErr := take(p[:n]); takeErr != nil {
			return takeErr
		}
		if err == io.EOF {
			return nil
		}
		off += int64(n)
	}
}

// fill is [io.ReadFull], except that the end of r is io.EOF even if bytes came
// before it. net/http reports a body that was cut off as io.ErrUnexpectedEOF,
// and the two must not be confused.
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = r.Read(p[n:])
		n += k
	}
	if n == len(p) && err == io.EOF {
		err = nil // the next call returns it
	}
	return n, err
}
