package fakegcs

import (
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"gcsup/fakegcs/internal/blob"
	"gcsup/fakegcs/internal/disk"
)

// core has the state that all parts of a server share: its options, clock and log,
// and the storage of the bytes.
type core struct {
	opts    Options
	log     *slog.Logger
	disk    *disk.Dir  // nil in memory
	heap    *blob.Heap // of the bytes; not used with a directory
	buffers blob.Pool
	memory  memory
	ahead   atomic.Int64    // how far the clock was moved
	ctx     context.Context // ends when the server is closed
}

// now returns the server's time. The service's clock has milliseconds.
func (c *core) now() time.Time {
	return time.Now().Add(time.Duration(c.ahead.Load())).UTC().Truncate(time.Millisecond)
}

// wait waits for d, or indefinitely if d is 0. It returns false if ctx ends, the server
// is closed, or stop is closed first. The context of a request shows a disconnect only
// after its body was read: before that, net/http does not watch the connection.
func (c *core) wait(ctx context.Context, d time.Duration, stop <-chan struct{}) bool {
	var after <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		after = timer.C
	}
	select {
	case <-after:
		return true
	case <-ctx.Done():
	case <-c.ctx.Done():
	case <-stop:
	}
	return false
}

// newBlob returns an empty blob for the bytes of an upload, with one reference.
func (c *core) newBlob() *blob.Blob {
	switch {
	case c.opts.Discard:
		return blob.NewDiscarding().Retain()
	case c.disk == nil:
		return c.heap.NewBlob().Retain()
	}
	return c.disk.Blob(hex.EncodeToString(randomBytes(16)), 0).Retain()
}

// fill reads r to its end into content, and sets the size and checksums of o.
func (c *core) fill(content *blob.Blob, o *Object, r io.Reader) *apiError {
	sum := blob.NewDigest(&c.buffers, !c.opts.NoMD5)
	defer sum.Idle()
	var storeErr error
	readErr := blob.ReadChunks(r, 0, &c.buffers, func(p []byte) error {
		kept, err := content.Append(p, true)
		if err != nil {
			c.buffers.Put(p)
			storeErr = err
			return err
		}
		sum.Add(p, !kept)
		return nil
	})
	if err := content.Close(); err != nil && storeErr == nil {
		storeErr = err
	}
	switch {
	case storeErr != nil:
		return errInternal(storeErr)
	case readErr != nil:
		return invalid("The body could not be read: %v", readErr)
	}
	o.Size, o.CRC32C, o.MD5 = content.Size(), CRC32C(sum.CRC32C()), sum.MD5()
	return nil
}
