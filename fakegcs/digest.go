package fakegcs

import (
	"crypto/md5"
	"encoding"
	"hash"
	"hash/crc32"
	"io"
	"sync"
)

// buffers holds the memory that request bodies pass through, one quantum each.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() []byte {
	if p, ok := b.pool.Get().(*[quantum]byte); ok {
		return p[:]
	}
	return make([]byte, quantum)
}

func (b *buffers) put(p []byte) { b.pool.Put((*[quantum]byte)(p[:quantum])) }

// digest is the running checksum of the bytes of an object, so that they are
// never read again. MD5 runs at about a fifth of the speed of everything else
// here, so it has its own goroutine, at most one quantum behind the rest.
// A digest belongs to one owner, and whoever calls it holds the owner's lock.
type digest struct {
	crc     CRC32C
	md5     hash.Hash // nil: nobody wants it
	pool    *buffers
	work    chan hashJob // nil: the goroutine isn't running
	pending sync.WaitGroup
}

type hashJob struct {
	p    []byte
	free bool // back to the pool when hashed
}

func newDigest(pool *buffers, withMD5 bool) *digest {
	d := &digest{pool: pool}
	if withMD5 {
		d.md5 = md5.New()
	}
	return d
}

// add takes in p, one quantum or a shorter rest, and puts it back into the
// pool afterwards when free is set.
func (d *digest) add(p []byte, free bool) {
	d.crc = CRC32C(crc32.Update(uint32(d.crc), castagnoli, p))
	switch {
	case d.md5 == nil:
	case len(p) < quantum:
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
		d.pool.put(p)
	}
}

func (d *digest) run(work <-chan hashJob) {
	for job := range work {
		d.md5.Write(job.p)
		if job.free {
			d.pool.put(job.p)
		}
		d.pending.Done()
	}
}

// sumMD5 is the MD5 of what was added so far, or nil.
func (d *digest) sumMD5() []byte {
	if d.md5 == nil {
		return nil
	}
	d.pending.Wait()
	return d.md5.Sum(nil)
}

// idle ends the goroutine, once it has done its work; the next add starts
// another.
func (d *digest) idle() {
	if d.work != nil {
		d.pending.Wait()
		close(d.work)
		d.work = nil
	}
}

// readQuanta reads r to its end and hands its bytes to take, cut where the
// offset in the object is a multiple of the quantum; off is the first byte's.
// The rest after the last such boundary comes only when r ended in io.EOF: of
// a body that was cut off, the service keeps whole quanta. take becomes the
// owner of its buffer, which comes from pool.
func readQuanta(r io.Reader, off int64, pool *buffers, take func(p []byte) error) error {
	for {
		p := pool.get()[:quantum-off%quantum]
		n, err := fill(r, p)
		if err != nil && err != io.EOF {
			pool.put(p)
			return err
		}
		if n == 0 {
			pool.put(p)
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

// fill is [io.ReadFull], except that the end of r is io.EOF also when bytes
// came before it: net/http reports a body that was cut off as
// io.ErrUnexpectedEOF, and the two must not be confused.
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = r.Read(p[n:])
		n += k
	}
	if n == len(p) && err == io.EOF {
		err = nil // the next call finds it again
	}
	return n, err
}

// resume sets the MD5 to a state that was saved.
func (d *digest) resume(state []byte) error {
	return d.md5.(encoding.BinaryUnmarshaler).UnmarshalBinary(state)
}
