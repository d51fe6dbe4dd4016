package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"gcsup/internal/cli/exit"
)

// listMemory is how much of a list is kept in memory, in bytes. The rest is in a temporary file.
const listMemory = 16 << 20

// pathList is the list of --files-from. It is read before the files are submitted, because its digest is a part of
// the name of the submission, and standard input can be read only once.
type pathList struct {
	in     io.ReadCloser
	memory int64 // see listMemory

	content io.Reader // what read has read
	rest    *os.File  // nil if all is in memory
}

// read reads the list, and returns its digest.
func (l *pathList) read() (digest string, err error) {
	h := sha256.New()
	in, head := io.TeeReader(l.in, h), new(bytes.Buffer)
	l.content = head
	if _, err = io.CopyN(head, in, l.memory); err == nil {
		err = l.spill(in)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", exit.WithKind(fmt.Errorf("--files-from: %w", err), exit.ErrSource)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// spill copies the rest of the list to a temporary file.
func (l *pathList) spill(in io.Reader) (err error) {
	if l.rest, err = os.CreateTemp("", "gcsup-fleet-list-*"); err != nil {
		return err
	}
	l.content = io.MultiReader(l.content, l.rest)
	if _, err = io.Copy(l.rest, in); err == nil {
		_, err = l.rest.Seek(0, io.SeekStart)
	}
	return err
}

// Read reads the list again, after read.
func (l *pathList) Read(p []byte) (int, error) { return l.content.Read(p) }

// Close closes the list and deletes the temporary file.
func (l *pathList) Close() error {
	if l.rest != nil {
		_ = l.rest.Close()
		_ = os.Remove(l.rest.Name())
	}
	return l.in.Close()
}
