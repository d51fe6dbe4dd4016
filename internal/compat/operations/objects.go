package operations

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"slices"
	"strings"

	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"
)

const chunk = 256 << 10 // the smallest that the service accepts

// write writes an object. set may change the Writer before; it may be nil.
func write(ctx context.Context, o *storage.ObjectHandle, content string, set func(*storage.Writer)) (*storage.ObjectAttrs, error) {
	w := o.NewWriter(ctx)
	if set != nil {
		set(w)
	}
	_, _ = io.WriteString(w, content) // Close returns the error
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("write %s: %w", o.ObjectName(), err)
	}
	return w.Attrs(), nil
}

// reads checks the bytes of a range, with the arguments of NewRangeReader.
func reads(ctx context.Context, o *storage.ObjectHandle, offset, length int64, want string) error {
	r, err := o.NewRangeReader(ctx, offset, length)
	if err != nil {
		return fmt.Errorf("read %s: %w", o.ObjectName(), err)
	}
	got, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		return fmt.Errorf("read %s: %w", o.ObjectName(), err)
	}
	if string(got) != want {
		return fmt.Errorf("%s from %d: %d bytes, want others (%d)", o.ObjectName(), offset, len(got), len(want))
	}
	return nil
}

func writeWhole(ctx context.Context, p place) error {
	object := p.bucket.Object("dir/a b ü")
	attrs, err := write(ctx, object, "content", func(w *storage.Writer) {
		w.ChunkSize, w.ContentType, w.CacheControl, w.Metadata = 0, "text/x-test", "no-store", map[string]string{"k": "v"}
	})
	if err != nil {
		return err
	}
	if attrs.Size != 7 || attrs.ContentType != "text/x-test" || attrs.CacheControl != "no-store" || attrs.Metadata["k"] != "v" || attrs.Generation == 0 {
		return fmt.Errorf("attributes %+v, want those that were set", attrs)
	}
	return reads(ctx, object, 0, -1, "content")
}

// chunked writes an object of a size in chunks.
func chunked(ctx context.Context, p place, size int) error {
	content := strings.Repeat("0123456789abcde", size/15+1)[:size]
	attrs, err := write(ctx, p.bucket.Object("a"), content, func(w *storage.Writer) { w.ChunkSize = chunk })
	if err != nil {
		return err
	}
	if attrs.Size != int64(size) {
		return fmt.Errorf("%d bytes, want %d", attrs.Size, size)
	}
	return reads(ctx, p.bucket.Object("a"), 0, -1, content)
}

func writeChunks(ctx context.Context, p place) error     { return chunked(ctx, p, 2*chunk+7) }
func writeFullChunks(ctx context.Context, p place) error { return chunked(ctx, p, 2*chunk) }

func writeIfAbsent(ctx context.Context, p place) error {
	object := p.bucket.Object("a").If(storage.Conditions{DoesNotExist: true})
	if _, err := write(ctx, object, "1", nil); err != nil {
		return err
	}
	for _, size := range []int{0, chunk} {
		if _, err := write(ctx, object, "2", func(w *storage.Writer) { w.ChunkSize = size }); status(err) != http.StatusPreconditionFailed {
			return fmt.Errorf("write it again: %v, want status 412", err)
		}
	}
	return reads(ctx, p.bucket.Object("a"), 0, -1, "1")
}

func writeChecked(ctx context.Context, p place) error {
	sum := crc32.Checksum([]byte("content"), crc32.MakeTable(crc32.Castagnoli))
	for _, size := range []int{0, chunk} {
		_, err := write(ctx, p.bucket.Object("a"), "content", func(w *storage.Writer) { w.ChunkSize, w.SendCRC32C, w.CRC32C = size, true, sum+1 })
		if status(err) != http.StatusBadRequest {
			return fmt.Errorf("with a wrong checksum: %v, want status 400", err)
		}
	}
	attrs, err := write(ctx, p.bucket.Object("a"), "content", func(w *storage.Writer) { w.SendCRC32C, w.CRC32C = true, sum })
	if err != nil {
		return err
	}
	if attrs.CRC32C != sum || len(attrs.MD5) != 16 {
		return fmt.Errorf("crc32c %08x, MD5 %x; want %08x and 16 bytes", attrs.CRC32C, attrs.MD5, sum)
	}
	return nil
}

func readWhole(ctx context.Context, p place) error {
	if _, err := write(ctx, p.bucket.Object("dir/a b ü"), "content", func(w *storage.Writer) { w.ContentType = "text/x-test" }); err != nil {
		return err
	}
	r, err := p.bucket.Object("dir/a b ü").NewReader(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != "content" || r.Attrs.ContentType != "text/x-test" || r.Attrs.Generation == 0 {
		return fmt.Errorf("read %q, %v, with %+v", got, err, r.Attrs)
	}
	if _, err := p.bucket.Object("absent").NewReader(ctx); !errors.Is(err, storage.ErrObjectNotExist) {
		return fmt.Errorf("an absent object: %v, want ErrObjectNotExist", err)
	}
	return nil
}

func readRanges(ctx context.Context, p place) error {
	object := p.bucket.Object("a")
	if _, err := write(ctx, object, "0123456789", nil); err != nil {
		return err
	}
	return errors.Join(
		reads(ctx, object, 2, 3, "234"),
		reads(ctx, object, 8, 100, "89"),
		reads(ctx, object, -3, -1, "789"),
		reads(ctx, object, 5, -1, "56789"),
	)
}

func readGeneration(ctx context.Context, p place) error {
	if _, err := p.bucket.Update(ctx, storage.BucketAttrsToUpdate{VersioningEnabled: true}); err != nil {
		return err
	}
	object := p.bucket.Object("a")
	first, err := write(ctx, object, "first", nil)
	if err != nil {
		return err
	}
	if _, err := write(ctx, object, "second", nil); err != nil {
		return err
	}
	if names, err := list(ctx, p.bucket, &storage.Query{Versions: true}); err != nil || !slices.Equal(names, []string{"a", "a"}) {
		return fmt.Errorf("versions %v, %v; want two of a", names, err)
	}
	return errors.Join(reads(ctx, object, 0, -1, "second"), reads(ctx, object.Generation(first.Generation), 0, -1, "first"))
}

func readCompressed(ctx context.Context, p place) error {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, "content") // Close returns the error
	if err := z.Close(); err != nil {
		return err
	}
	object := p.bucket.Object("a")
	if _, err := write(ctx, object, packed.String(), func(w *storage.Writer) { w.ContentEncoding, w.ContentType = "gzip", "text/plain" }); err != nil {
		return err
	}
	return reads(ctx, object, 0, -1, "content")
}

func objectAttrs(ctx context.Context, p place) error {
	wrote, err := write(ctx, p.bucket.Object("a"), "content", nil)
	if err != nil {
		return err
	}
	attrs, err := p.bucket.Object("a").Attrs(ctx)
	if err != nil {
		return err
	}
	if attrs.Size != 7 || attrs.CRC32C != wrote.CRC32C || attrs.Generation != wrote.Generation || attrs.Metageneration != 1 || attrs.Created.IsZero() || attrs.Etag == "" {
		return fmt.Errorf("attributes %+v, want those of the Writer %+v", attrs, wrote)
	}
	if _, err := p.bucket.Object("absent").Attrs(ctx); !errors.Is(err, storage.ErrObjectNotExist) {
		return fmt.Errorf("those of an absent object: %v, want ErrObjectNotExist", err)
	}
	return nil
}

func updateObject(ctx context.Context, p place) error {
	object := p.bucket.Object("a")
	if _, err := write(ctx, object, "content", func(w *storage.Writer) { w.Metadata = map[string]string{"old": "1"} }); err != nil {
		return err
	}
	first := object.If(storage.Conditions{MetagenerationMatch: 1})
	change := storage.ObjectAttrsToUpdate{ContentType: "text/x-test", CacheControl: "no-store", Metadata: map[string]string{"new": "2"}}
	if _, err := first.Update(ctx, change); err != nil {
		return err
	}
	attrs, err := object.Attrs(ctx)
	if err != nil {
		return err
	}
	if attrs.ContentType != "text/x-test" || attrs.CacheControl != "no-store" || attrs.Metadata["new"] != "2" || attrs.Metageneration != 2 {
		return fmt.Errorf("attributes %+v, want those that were set", attrs)
	}
	if _, err := first.Update(ctx, change); status(err) != http.StatusPreconditionFailed {
		return fmt.Errorf("update of an earlier metageneration: %v, want status 412", err)
	}
	return nil
}

// list returns the names and prefixes that a query finds.
func list(ctx context.Context, bucket *storage.BucketHandle, q *storage.Query) ([]string, error) {
	var names []string
	for it := bucket.Objects(ctx, q); ; {
		attrs, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		names = append(names, attrs.Name+attrs.Prefix)
	}
}

// listed writes objects and checks what a query finds.
func listed(ctx context.Context, p place, q *storage.Query, want ...string) error {
	for _, name := range []string{"a/1.txt", "a/2.csv", "a/b/3.txt", "c.txt"} {
		if _, err := write(ctx, p.bucket.Object(name), "x", nil); err != nil {
			return err
		}
	}
	names, err := list(ctx, p.bucket, q)
	if err != nil {
		return err
	}
	if !slices.Equal(names, want) {
		return fmt.Errorf("found %q, want %q", names, want)
	}
	return nil
}

func listPrefix(ctx context.Context, p place) error {
	return listed(ctx, p, &storage.Query{Prefix: "a/", Delimiter: "/"}, "a/1.txt", "a/2.csv", "a/b/")
}

func listGlob(ctx context.Context, p place) error {
	return listed(ctx, p, &storage.Query{MatchGlob: "a/**.txt"}, "a/1.txt", "a/b/3.txt")
}

func listPages(ctx context.Context, p place) error {
	if err := listed(ctx, p, nil, "a/1.txt", "a/2.csv", "a/b/3.txt", "c.txt"); err != nil {
		return err
	}
	token := ""
	for _, want := range []int{3, 1} {
		var page []*storage.ObjectAttrs
		var err error
		if token, err = iterator.NewPager(p.bucket.Objects(ctx, nil), 3, token).NextPage(&page); err != nil {
			return err
		}
		if len(page) != want {
			return fmt.Errorf("%d objects in a page, want %d", len(page), want)
		}
	}
	if token != "" {
		return errors.New("the last page has a token of another")
	}
	return nil
}

func copyObject(ctx context.Context, p place) error {
	other := p.client.Bucket(p.bucket.BucketName() + "-other")
	if err := other.Create(ctx, "p", nil); err != nil {
		return err
	}
	if _, err := write(ctx, p.bucket.Object("a"), "content", func(w *storage.Writer) { w.Metadata = map[string]string{"k": "v"} }); err != nil {
		return err
	}
	attrs, err := other.Object("dir/b").CopierFrom(p.bucket.Object("a")).Run(ctx)
	if err != nil {
		return err
	}
	if attrs.Metadata["k"] != "v" || attrs.Size != 7 {
		return fmt.Errorf("metadata %v, %d bytes; want k=v and 7", attrs.Metadata, attrs.Size)
	}
	return reads(ctx, other.Object("dir/b"), 0, -1, "content")
}

func composeObjects(ctx context.Context, p place) error {
	var parts []*storage.ObjectHandle
	for _, name := range []string{"1", "2", "3"} {
		if _, err := write(ctx, p.bucket.Object(name), name, nil); err != nil {
			return err
		}
		parts = append(parts, p.bucket.Object(name))
	}
	composer := p.bucket.Object("whole").ComposerFrom(parts...)
	composer.ContentType = "text/x-test"
	attrs, err := composer.Run(ctx)
	if err != nil {
		return err
	}
	if attrs.Size != 3 || attrs.ContentType != "text/x-test" || attrs.ComponentCount != 3 {
		return fmt.Errorf("%d bytes, type %q, %d components; want 3, text/x-test, 3", attrs.Size, attrs.ContentType, attrs.ComponentCount)
	}
	return reads(ctx, p.bucket.Object("whole"), 0, -1, "123")
}

func moveObject(ctx context.Context, p place) error {
	if _, err := write(ctx, p.bucket.Object("a"), "content", nil); err != nil {
		return err
	}
	if _, err := p.bucket.Object("a").Move(ctx, storage.MoveObjectDestination{Object: "b"}); err != nil {
		return err
	}
	if _, err := p.bucket.Object("a").Attrs(ctx); !errors.Is(err, storage.ErrObjectNotExist) {
		return fmt.Errorf("the source afterwards: %v, want ErrObjectNotExist", err)
	}
	return reads(ctx, p.bucket.Object("b"), 0, -1, "content")
}

func deleteObject(ctx context.Context, p place) error {
	object := p.bucket.Object("a")
	attrs, err := write(ctx, object, "content", nil)
	if err != nil {
		return err
	}
	if err := object.If(storage.Conditions{GenerationMatch: attrs.Generation + 1}).Delete(ctx); status(err) != http.StatusPreconditionFailed {
		return fmt.Errorf("delete of another generation: %v, want status 412", err)
	}
	if err := object.If(storage.Conditions{GenerationMatch: attrs.Generation}).Delete(ctx); err != nil {
		return err
	}
	if err := object.Delete(ctx); !errors.Is(err, storage.ErrObjectNotExist) {
		return fmt.Errorf("delete it again: %v, want ErrObjectNotExist", err)
	}
	return nil
}
