// Package faulty has Writers whose Close publishes a truncated object.
package faulty

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"cloud.google.com/go/storage"
	"gcsup/upload"
)

func deferred(ctx context.Context, o *storage.ObjectHandle, r io.Reader) error {
	w := o.NewWriter(ctx)
	defer w.Close() // want `Close publishes a truncated object if io.Copy in line \d+ fails: cancel the context of NewWriter before it`
	if _, err := io.Copy(w, r); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	return w.Close()
}

func deferredUpload(ctx context.Context, up *upload.Uploader, r io.Reader) error {
	w := up.NewWriter(ctx, upload.Spec{Bucket: "b", Object: "o"})
	defer w.Close() // want `Close publishes a truncated object if ReadFrom in line \d+ fails: call Abort before it`
	_, err := w.ReadFrom(r)
	return err
}

// The deferred cancel runs after the deferred Close.
func canceledTooLate(ctx context.Context, o *storage.ObjectHandle, r io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := o.NewWriter(ctx)
	defer w.Close() // want `Close publishes a truncated object if io.Copy in line`
	_, err := io.Copy(w, r)
	return err
}

func closedBeforeTheTest(ctx context.Context, o *storage.ObjectHandle, r io.Reader) error {
	w := o.NewWriter(ctx)
	_, err := io.Copy(w, r)
	cerr := w.Close() // want `Close publishes a truncated object if io.Copy in line`
	if err != nil {
		return err
	}
	return cerr
}

func closedInTheErrorPath(ctx context.Context, o *storage.ObjectHandle, r io.Reader) error {
	w := o.NewWriter(ctx)
	if _, err := io.Copy(w, r); err != nil {
		w.Close() // want `Close publishes a truncated object if io.Copy in line`
		return err
	}
	return w.Close()
}

func ignored(ctx context.Context, o *storage.ObjectHandle, r io.Reader) error {
	w := o.NewWriter(ctx)
	io.Copy(w, r)
	return w.Close() // want `Close publishes a truncated object if io.Copy in line`
}

func logged(ctx context.Context, o *storage.ObjectHandle, r io.Reader) error {
	w := o.NewWriter(ctx)
	if _, err := io.Copy(w, r); err != nil {
		log.Print(err)
	}
	return w.Close() // want `Close publishes a truncated object if io.Copy in line`
}

func joined(ctx context.Context, o *storage.ObjectHandle, r io.Reader) (err error) {
	w := o.NewWriter(ctx)
	defer func() { // want `Close publishes a truncated object if io.Copy in line`
		err = errors.Join(err, w.Close())
	}()
	_, err = io.Copy(w, r)
	return err
}

// The error of Close does not hide that of Copy, but the object is there.
func firstError(ctx context.Context, o *storage.ObjectHandle, r io.Reader) (err error) {
	w := o.NewWriter(ctx)
	defer func() { // want `Close publishes a truncated object if io.Copy in line`
		if cerr := w.Close(); err == nil {
			err = cerr
		}
	}()
	if _, err := io.Copy(w, r); err != nil {
		return err
	}
	return nil
}

// The condition is that of success.
func reversed(ctx context.Context, o *storage.ObjectHandle, r io.Reader) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	w := o.NewWriter(ctx)
	defer func() { // want `Close publishes a truncated object if io.Copy in line`
		if err == nil {
			cancel()
		}
		w.Close()
	}()
	_, err = io.Copy(w, r)
	return err
}

func closeQuietly(c io.Closer) {
	if err := c.Close(); err != nil {
		log.Print(err)
	}
}

func helper(ctx context.Context, o *storage.ObjectHandle, r io.Reader) error {
	w := o.NewWriter(ctx)
	defer closeQuietly(w) // want `Close publishes a truncated object if io.Copy in line`
	_, err := io.Copy(w, r)
	return err
}

func closeWith(close func() error, err *error) { *err = errors.Join(*err, close()) }

func methodValue(ctx context.Context, o *storage.ObjectHandle, r io.Reader) (err error) {
	w := o.NewWriter(ctx)
	defer closeWith(w.Close, &err) // want `Close publishes a truncated object if io.Copy in line`
	_, err = io.Copy(w, r)
	return err
}

func compressed(ctx context.Context, o *storage.ObjectHandle, r io.Reader) error {
	w := o.NewWriter(ctx)
	defer w.Close() // want `Close publishes a truncated object if io.Copy in line`
	z := gzip.NewWriter(w)
	defer z.Close()
	if _, err := io.Copy(z, r); err != nil {
		return err
	}
	return nil
}

func encoded(ctx context.Context, o *storage.ObjectHandle, rows []any) error {
	w := o.NewWriter(ctx)
	defer w.Close() // want `Close publishes a truncated object if Encode in line`
	enc := json.NewEncoder(w)
	for _, row := range rows {
		if err := enc.Encode(row); err != nil {
			return err
		}
	}
	return nil
}

func severalWriters(ctx context.Context, o *storage.ObjectHandle, copyOf io.Writer, r io.Reader) error {
	w := o.NewWriter(ctx)
	defer w.Close() // want `Close publishes a truncated object if io.Copy in line`
	_, err := io.Copy(io.MultiWriter(copyOf, w), r)
	return err
}

func inClosure(ctx context.Context, o *storage.ObjectHandle, walk func(func(io.Reader) error) error) error {
	w := o.NewWriter(ctx)
	defer w.Close() // want `Close publishes a truncated object if walk in line`
	return walk(func(r io.Reader) error {
		_, err := io.Copy(w, r)
		return err
	})
}

// The bytes come from another call.
func between(ctx context.Context, o *storage.ObjectHandle, next func() ([]byte, error)) error {
	w := o.NewWriter(ctx)
	defer w.Close() // want `Close publishes an object that nothing was written to, or only a part if next in line`
	for {
		row, err := next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(row); err != nil {
			return err
		}
	}
}

func openedLater(ctx context.Context, o *storage.ObjectHandle, name string) error {
	w := o.NewWriter(ctx)
	f, err := os.Open(name)
	if err != nil {
		w.Close() // want `Close publishes an object that nothing was written to, or only a part if os.Open in line`
		return err
	}
	defer f.Close()
	if _, err := io.Copy(w, f); err != nil {
		return err
	}
	return w.Close()
}

func asInterface(ctx context.Context, o *storage.ObjectHandle, local bool, r io.Reader) (err error) {
	var w io.WriteCloser
	if local {
		if w, err = os.Create("file"); err != nil {
			return err
		}
	} else {
		w = o.NewWriter(ctx)
	}
	defer w.Close() // want `Close publishes a truncated object if io.Copy in line`
	_, err = io.Copy(w, r)
	return err
}

func parameter(w *storage.Writer, r io.Reader) error {
	defer w.Close() // want `Close publishes a truncated object if io.Copy in line`
	_, err := io.Copy(w, r)
	return err
}

func closureWithArgument(ctx context.Context, o *storage.ObjectHandle, r io.Reader) error {
	w := o.NewWriter(ctx)
	defer func(w *storage.Writer) { // want `Close publishes a truncated object if io.Copy in line`
		if err := w.Close(); err != nil {
			log.Print(err)
		}
	}(w)
	_, err := io.Copy(w, r)
	return err
}

// The deferred Close runs after the loop.
func inLoop(ctx context.Context, o *storage.ObjectHandle, rows func(func(any) bool)) error {
	for row := range rows {
		w := o.NewWriter(ctx)
		defer w.Close() // want `Close publishes a truncated object if Encode in line`
		if err := json.NewEncoder(w).Encode(row); err != nil {
			return err
		}
	}
	return nil
}
