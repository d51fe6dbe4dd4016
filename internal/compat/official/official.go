// Package official runs common operations with the unmodified official Go library
// on the emulator at STORAGE_EMULATOR_HOST, and checks their results. It prints a
// line for each check that passes. The exit code is 1 at the first difference.
package official

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"cloud.google.com/go/storage"
	"github.com/googleapis/gax-go/v2"
)

const granularity = 256 << 10 // the service commits multiples of it

// Main is the program, which has no arguments. It returns its exit code.
func Main([]string) int {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL the official library:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context) error {
	host := os.Getenv("STORAGE_EMULATOR_HOST")
	if host == "" {
		return fmt.Errorf("STORAGE_EMULATOR_HOST is not set: start \"gcsup emulator --create-buckets\" and run the line that it prints")
	}
	client, err := storage.NewClient(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	// The waits are short, because they are not tested here.
	client.SetRetry(storage.WithPolicy(storage.RetryAlways), storage.WithBackoff(gax.Backoff{Initial: 10 * time.Millisecond, Max: 100 * time.Millisecond, Multiplier: 2}))
	l := &library{bucket: client.Bucket("official"), control: host + "/_fakegcs/faults"}
	for _, check := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"Writer, Attrs, Reader, range reader: 4 chunk sizes, 9 sizes", l.uploads},
		{"Composer, and Copier", l.derived},
		{"listing with prefix, delimiter and pages", l.listing},
		{"Update, Delete, preconditions", l.changes},
		{"Writer through 503, 429, resets and lost replies", l.uploadFaults},
		{"Reader, Attrs, listing, Composer, Copier, Delete through 503, 429, resets and lost replies", l.otherFaults},
	} {
		begun := time.Now()
		if err := check.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", check.what, err)
		}
		fmt.Printf("ok   official library: %s (%v)\n", check.what, time.Since(begun).Round(10*time.Millisecond))
	}
	return nil
}

// library is the official client and a bucket.
type library struct {
	bucket  *storage.BucketHandle
	control string // URL of the emulator's fault plan
}

// content returns n pseudo-random bytes, the same each time.
func content(n int) []byte {
	p := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(p) // never fails
	return p
}

func crc32c(p []byte) uint32 { return crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli)) }

// write uploads p. set may change the Writer before; it may be nil.
func (l *library) write(ctx context.Context, name string, p []byte, chunkSize int, set func(*storage.Writer)) (*storage.ObjectAttrs, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	w := l.bucket.Object(name).NewWriter(ctx)
	w.ChunkSize = chunkSize
	if set != nil {
		set(w)
	}
	if _, err := w.Write(p); err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("close %s: %w", name, err)
	}
	return w.Attrs(), nil
}

// holds checks that an object has the wanted bytes.
func (l *library) holds(ctx context.Context, name string, want []byte) error {
	attrs, err := l.bucket.Object(name).Attrs(ctx)
	if err != nil {
		return fmt.Errorf("attributes of %s: %w", name, err)
	}
	if attrs.Size != int64(len(want)) || attrs.CRC32C != crc32c(want) {
		return fmt.Errorf("%s has %d bytes with crc32c %08x, want %d with %08x", name, attrs.Size, attrs.CRC32C, len(want), crc32c(want))
	}
	return l.reads(ctx, name, 0, -1, want)
}

// reads checks a range of an object, with the arguments of NewRangeReader.
func (l *library) reads(ctx context.Context, name string, offset, length int64, want []byte) error {
	r, err := l.bucket.Object(name).NewRangeReader(ctx, offset, length)
	if err != nil {
		return fmt.Errorf("read %s from %d: %w", name, offset, err)
	}
	got, err := io.ReadAll(r)
	if err := r.Close(); err != nil {
		return fmt.Errorf("close the reader of %s: %w", name, err)
	}
	if err != nil || string(got) != string(want) {
		return fmt.Errorf("%s from %d: read %d bytes (%v), which are not the %d wanted", name, offset, len(got), err, len(want))
	}
	return nil
}
