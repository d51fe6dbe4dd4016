package official

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"
)

// uploads writes and reads objects whose sizes are near the limits of the protocol.
func (l *library) uploads(ctx context.Context) error {
	for _, chunkSize := range []int{0, granularity, 1 << 20, 16 << 20} {
		for _, size := range []int{0, 1, granularity - 1, granularity, granularity + 1, 2 * granularity, 1 << 20, 5<<20 + 7, 33<<20 + 1} {
			name, p := fmt.Sprintf("uploads/%d in %d", size, chunkSize), content(size)
			attrs, err := l.write(ctx, name, p, chunkSize, func(w *storage.Writer) {
				w.ContentType, w.Metadata = "text/x-test", map[string]string{"k": "v ü"}
				w.SendCRC32C, w.CRC32C = true, crc32c(p)
			})
			if err != nil {
				return err
			}
			if attrs.Size != int64(size) || attrs.CRC32C != crc32c(p) || attrs.ContentType != "text/x-test" || attrs.Metadata["k"] != "v ü" || attrs.Generation == 0 {
				return fmt.Errorf("%s: the Writer returned %+v", name, attrs)
			}
			if err := l.holds(ctx, name, p); err != nil {
				return err
			}
			if size < 1000 {
				continue
			}
			if err := errors.Join(
				l.reads(ctx, name, 0, 1, p[:1]),
				l.reads(ctx, name, 100, 200, p[100:300]),
				l.reads(ctx, name, -77, -1, p[size-77:]),
				l.reads(ctx, name, int64(size)-5, 1000, p[size-5:]),
			); err != nil {
				return err
			}
		}
	}
	// A wrong checksum creates no object.
	if _, err := l.write(ctx, "uploads/wrong", content(9), 0, func(w *storage.Writer) { w.SendCRC32C, w.CRC32C = true, 1 }); status(err) != http.StatusBadRequest {
		return fmt.Errorf("an upload with a wrong crc32c: %v, want status 400", err)
	}
	return l.gone(ctx, "uploads/wrong")
}

// derived composes and copies objects.
func (l *library) derived(ctx context.Context) error {
	p := content(3 * granularity)
	var parts []*storage.ObjectHandle
	for i := range 3 {
		name := fmt.Sprintf("derived/part-%d", i)
		if _, err := l.write(ctx, name, p[i*granularity:(i+1)*granularity], 0, nil); err != nil {
			return err
		}
		parts = append(parts, l.bucket.Object(name))
	}
	composer := l.bucket.Object("derived/whole").ComposerFrom(parts...)
	composer.ContentType, composer.SendCRC32C, composer.CRC32C = "text/x-whole", true, crc32c(p)
	attrs, err := composer.Run(ctx)
	if err != nil {
		return fmt.Errorf("compose: %w", err)
	}
	if attrs.ComponentCount != 3 || len(attrs.MD5) != 0 || attrs.ContentType != "text/x-whole" {
		return fmt.Errorf("the composed object has %d components, MD5 %x, type %q; want 3, none, text/x-whole", attrs.ComponentCount, attrs.MD5, attrs.ContentType)
	}
	if err := l.holds(ctx, "derived/whole", p); err != nil {
		return err
	}
	twice, err := l.bucket.Object("derived/twice").ComposerFrom(l.bucket.Object("derived/whole"), parts[0]).Run(ctx)
	if err != nil {
		return fmt.Errorf("compose a composed object: %w", err)
	}
	if twice.ComponentCount != 4 {
		return fmt.Errorf("composed of 3 components and 1: component count %d", twice.ComponentCount)
	}
	copier := l.bucket.Object("derived/copy").CopierFrom(l.bucket.Object("derived/whole"))
	copier.ContentType = "text/x-copy"
	var progress uint64
	copier.ProgressFunc = func(copied, total uint64) { progress = copied }
	attrs, err = copier.Run(ctx)
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	if attrs.ContentType != "text/x-copy" || progress != uint64(len(p)) {
		return fmt.Errorf("the copy has type %q, and %d bytes are reported; want text/x-copy and %d", attrs.ContentType, progress, len(p))
	}
	return l.holds(ctx, "derived/copy", p)
}

// listing lists objects with different queries and page sizes.
func (l *library) listing(ctx context.Context) error {
	for _, name := range []string{"list/a", "list/b/1", "list/b/2", "list/ü", "list0"} {
		if _, err := l.write(ctx, name, []byte(name), 0, nil); err != nil {
			return err
		}
	}
	for _, tt := range []struct {
		query storage.Query
		want  string
	}{
		{storage.Query{Prefix: "list/"}, "list/a list/b/1 list/b/2 list/ü"},
		{storage.Query{Prefix: "list", Delimiter: "/"}, "list0 [list/]"},
		{storage.Query{Prefix: "list/", Delimiter: "/"}, "list/a list/ü [list/b/]"},
		{storage.Query{Prefix: "list/", StartOffset: "list/b/2"}, "list/b/2 list/ü"},
		{storage.Query{Prefix: "list/", EndOffset: "list/b/2"}, "list/a list/b/1"},
		{storage.Query{Prefix: "none/"}, ""},
	} {
		for _, page := range []int{1, 2, 1000} {
			var names, prefixes []string
			it := l.bucket.Objects(ctx, &tt.query)
			it.PageInfo().MaxSize = page
			for {
				attrs, err := it.Next()
				if errors.Is(err, iterator.Done) {
					break
				}
				if err != nil {
					return fmt.Errorf("list %+v: %w", tt.query, err)
				}
				if attrs.Prefix != "" {
					prefixes = append(prefixes, "["+attrs.Prefix+"]")
				} else {
					names = append(names, attrs.Name)
				}
			}
			if got := strings.Join(slices.Concat(names, prefixes), " "); got != tt.want {
				return fmt.Errorf("list %+v in pages of %d: %q, want %q", tt.query, page, got, tt.want)
			}
		}
	}
	return nil
}

// changes updates and deletes objects.
func (l *library) changes(ctx context.Context) error {
	p := content(10)
	first, err := l.write(ctx, "changes/a", p, 0, func(w *storage.Writer) { w.Metadata = map[string]string{"keep": "1", "drop": "2"} })
	if err != nil {
		return err
	}
	object := l.bucket.Object("changes/a")
	update := storage.ObjectAttrsToUpdate{ContentType: "text/x-new", CacheControl: "no-store", Metadata: map[string]string{"keep": "1", "new": "3"}}
	attrs, err := object.If(storage.Conditions{MetagenerationMatch: first.Metageneration}).Update(ctx, update)
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	if attrs.ContentType != "text/x-new" || attrs.CacheControl != "no-store" || attrs.Metadata["new"] != "3" || attrs.Generation != first.Generation || attrs.Metageneration != first.Metageneration+1 {
		return fmt.Errorf("after the update: %+v", attrs)
	}
	again, err := object.Attrs(ctx)
	if err != nil {
		return err
	}
	if !maps.Equal(again.Metadata, attrs.Metadata) {
		return fmt.Errorf("the update returned %v, the object has %v", attrs.Metadata, again.Metadata)
	}
	if _, err := object.If(storage.Conditions{MetagenerationMatch: first.Metageneration}).Update(ctx, update); status(err) != http.StatusPreconditionFailed {
		return fmt.Errorf("update of an old metageneration: %v, want status 412", err)
	}
	for _, chunkSize := range []int{0, granularity} {
		w := object.If(storage.Conditions{DoesNotExist: true}).NewWriter(ctx)
		w.ChunkSize = chunkSize
		_, _ = w.Write(p) // Close returns the error
		if err := w.Close(); status(err) != http.StatusPreconditionFailed {
			return fmt.Errorf("overwrite with DoesNotExist in chunks of %d: %v, want status 412", chunkSize, err)
		}
	}
	if err := object.If(storage.Conditions{GenerationMatch: first.Generation + 1}).Delete(ctx); status(err) != http.StatusPreconditionFailed {
		return fmt.Errorf("delete of another generation: %v, want status 412", err)
	}
	if err := l.holds(ctx, "changes/a", p); err != nil {
		return err
	}
	if err := object.Delete(ctx); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if err := object.Delete(ctx); !errors.Is(err, storage.ErrObjectNotExist) {
		return fmt.Errorf("delete again: %v, want ErrObjectNotExist", err)
	}
	return l.gone(ctx, "changes/a")
}

// gone checks that an object does not exist.
func (l *library) gone(ctx context.Context, name string) error {
	if attrs, err := l.bucket.Object(name).Attrs(ctx); !errors.Is(err, storage.ErrObjectNotExist) {
		return fmt.Errorf("%s: %v, %v; want ErrObjectNotExist", name, attrs, err)
	}
	if _, err := l.bucket.Object(name).NewReader(ctx); !errors.Is(err, storage.ErrObjectNotExist) {
		return fmt.Errorf("read %s: %v, want ErrObjectNotExist", name, err)
	}
	return nil
}

// status returns the HTTP status of an error of the library, or 0.
func status(err error) int {
	if e, ok := errors.AsType[*googleapi.Error](err); ok {
		return e.Code
	}
	return 0
}
