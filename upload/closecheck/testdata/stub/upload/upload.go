// Package upload has the names of the real one that the tests use.
package upload

import (
	"context"
	"io"
)

type Uploader struct{}

type Spec struct{ Bucket, Object string }

func (u *Uploader) NewWriter(ctx context.Context, spec Spec) *Writer { return &Writer{} }

type Writer struct{ Spec }

func (w *Writer) Write(p []byte) (int, error)         { return len(p), nil }
func (w *Writer) ReadFrom(r io.Reader) (int64, error) { return 0, nil }
func (w *Writer) Close() error                        { return nil }
func (w *Writer) Abort()                              {}
