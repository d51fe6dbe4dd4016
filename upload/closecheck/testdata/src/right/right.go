// Package right has Writers whose Close publishes complete objects only.
package right

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"cloud.google.com/go/storage"
	"gcsup/upload"
)

func onlyAfterSuccess(ctx context.Context, o *storage.ObjectHandle, r io.Reader) error {
	w := o.NewWriter(ctx)
	if _, err := io.Copy(w, r); err != nil {
		return err
	}
	return w.Close()
}

func canceledFirst(ctx context.Context, o *storage.ObjectHandle, r io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := o.NewWriter(ctx)
	if _, err := io.Copy(w, r); err != nil {
		cancel()
		w.Close()
		return err
	}
	return w.Close()
}

// Deferred calls run in reverse order.
func deferredCancel(ctx context.Context, o *storage.ObjectHandle, r io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	w := o.NewWriter(ctx)
	defer w.Close()
	defer cancel()
	if _, err := io.Copy(w, r); err != nil {
		return err
	}
	return w.Close()
}

func deferredAbort(ctx context.Context, up *upload.Uploader, r io.Reader) error {
	w := up.NewWriter(ctx, upload.Spec{Bucket: "b", Object: "o"})
	defer w.Abort()
	if _, err := io.Copy(w, r); err != nil {
		return err
	}
	return w.Close()
}

func aborted(ctx context.Context, up *upload.Uploader, r io.Reader) error {
	w := up.NewWriter(ctx, upload.Spec{Bucket: "b", Object: "o"})
	defer w.Close()
	if _, err := w.ReadFrom(r); err != nil {
		w.Abort()
		return err
	}
	return nil
}

func withError(ctx context.Context, o *storage.ObjectHandle, r io.Reader) error {
	w := o.NewWriter(ctx)
	if _, err := io.Copy(w, r); err != nil {
		return errors.Join(err, w.CloseWithError(err))
	}
	return w.Close()
}

func conditional(ctx context.Context, o *storage.ObjectHandle, r io.Reader) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := o.NewWriter(ctx)
	defer func() {
		if err != nil {
			cancel()
		}
		if cerr := w.Close(); err == nil {
			err = cerr
		}
	}()
	if _, err := io.Copy(w, r); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	return nil
}

func closeIfNoError(ctx context.Context, o *storage.ObjectHandle, r io.Reader) (err error) {
	w := o.NewWriter(ctx)
	defer func() {
		if err == nil {
			err = w.Close()
		}
	}()
	_, err = io.Copy(w, r)
	return err
}

func joinedAfterSuccess(ctx context.Context, o *storage.ObjectHandle, r io.Reader) error {
	w := o.NewWriter(ctx)
	_, err := io.Copy(w, r)
	if err == nil {
		err = w.Close()
	}
	return err
}

func variable(ctx context.Context, o *storage.ObjectHandle, r io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	w := o.NewWriter(ctx)
	complete := false
	defer func() {
		if !complete {
			cancel()
		}
		w.Close()
	}()
	if _, err := io.Copy(w, r); err != nil {
		return err
	}
	complete = true
	return nil
}

func cleanup(ctx context.Context, o *storage.ObjectHandle, r io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	w := o.NewWriter(ctx)
	drop := func() {
		cancel()
		w.Close()
	}
	if _, err := io.Copy(w, r); err != nil {
		drop()
		return err
	}
	return w.Close()
}

// If Write fails, so does Close.
func onlyWrite(ctx context.Context, o *storage.ObjectHandle, data []byte) error {
	w := o.NewWriter(ctx)
	defer w.Close()
	w.ContentType = "text/plain"
	if _, err := w.Write(data); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w, "end"); err != nil {
		return err
	}
	return nil
}

func fromMemory(ctx context.Context, o *storage.ObjectHandle, text string, b *bytes.Buffer) error {
	w := o.NewWriter(ctx)
	_, err := io.Copy(w, strings.NewReader(text))
	if err == nil {
		_, err = b.WriteTo(w)
	}
	return errors.Join(err, w.Close())
}

func compressed(ctx context.Context, o *storage.ObjectHandle, rows [][]string) error {
	w := o.NewWriter(ctx)
	defer w.Close()
	z := gzip.NewWriter(w)
	c := csv.NewWriter(z)
	for _, row := range rows {
		fmt.Fprintln(z, row)
	}
	c.Flush()
	return z.Close()
}

type client struct{ o *storage.ObjectHandle }

func (c *client) create(ctx context.Context) io.WriteCloser { return c.o.NewWriter(ctx) }

func (c *client) pair(ctx context.Context) (*storage.Writer, error) {
	w := c.o.NewWriter(ctx)
	if _, err := io.WriteString(w, "header"); err != nil {
		return nil, err
	}
	return w, nil
}

type object struct{ w *storage.Writer }

func (o *object) Write(p []byte) (int, error) { return o.w.Write(p) }
func (o *object) Close() error                { return o.w.Close() }

func (c *client) wrapped(ctx context.Context) io.WriteCloser { return &object{c.o.NewWriter(ctx)} }

func attempts(ctx context.Context, o *storage.ObjectHandle, open func() (io.Reader, error)) (err error) {
	for range 3 {
		var r io.Reader
		if r, err = open(); err != nil {
			continue
		}
		w := o.NewWriter(ctx)
		if _, err = io.Copy(w, r); err != nil {
			continue
		}
		if err = w.Close(); err == nil {
			return nil
		}
	}
	return err
}

func exits(ctx context.Context, o *storage.ObjectHandle, r io.Reader) {
	w := o.NewWriter(ctx)
	if _, err := io.Copy(w, r); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
}

func untilEOF(ctx context.Context, o *storage.ObjectHandle, r io.Reader) error {
	w := o.NewWriter(ctx)
	buf := make([]byte, 1024)
	for {
		n, err := r.Read(buf)
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			return w.Close()
		}
		if err != nil {
			return err
		}
	}
}

// The object is complete.
func failsLater(ctx context.Context, o *storage.ObjectHandle, data []byte, other func() error) error {
	w := o.NewWriter(ctx)
	defer w.Close()
	if _, err := w.Write(data); err != nil {
		return err
	}
	return other()
}

// A row that cannot be read is left out on purpose.
func skips(ctx context.Context, o *storage.ObjectHandle, rows []func() ([]byte, error)) error {
	w := o.NewWriter(ctx)
	for _, row := range rows {
		data, err := row()
		if err != nil {
			log.Print(err)
			continue
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return w.Close()
}

func file(name string, r io.Reader, create func(string) (io.WriteCloser, error)) error {
	w, err := create(name)
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = io.Copy(w, r)
	return err
}

type row struct {
	Names []string
	Sizes map[string]*int64
}

// JSON can represent each row.
func encoded(ctx context.Context, o *storage.ObjectHandle, rows []row) error {
	w := o.NewWriter(ctx)
	defer w.Close()
	enc := json.NewEncoder(w)
	for _, r := range rows {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

func checkedFirst(ctx context.Context, o *storage.ObjectHandle, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w := o.NewWriter(ctx)
	if n, err := io.Copy(w, f); err != nil || n != info.Size() {
		return w.CloseWithError(errors.Join(err, io.ErrUnexpectedEOF))
	}
	return w.Close()
}
