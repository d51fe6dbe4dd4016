package main

import (
	"errors"
	"fmt"
	"strings"

	"gcsup/chunk"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// verifyLine is the comparison of one file in JSON.
type verifyLine struct {
	V            int        `json:"v"`
	Type         string     `json:"type"`
	Status       string     `json:"status"`
	Source       *string    `json:"source"` // null for an object without a file
	Destination  string     `json:"destination"`
	Size         *int64     `json:"size"`
	Generation   *string    `json:"generation"`
	ObjectSize   *int64     `json:"object_size"`
	ObjectCRC32C *string    `json:"object_crc32c"`
	Entry        tree.Kind  `json:"entry,omitempty"` // of a skipped entry of a directory that is not a file
	Error        *errorLine `json:"error"`
}

// report prints the outcome of one file, and counts it. res may be nil.
func (v *verifier) report(t task, res *upload.Result, err error) error {
	source, destination := t.source, t.destination
	err = sourceError(err, source)
	status := statusSame
	switch {
	case t.entry != "":
		status = statusSkipped
	case errors.Is(err, exit.ErrDiffers) && res.Difference == upload.ObjectMissing:
		status = statusMissing
	case errors.Is(err, exit.ErrDiffers):
		status = statusDiffers
	case err != nil:
		status = statusFailed
	}
	v.totals.add(status, err)
	v.progress.end(t, status, res)
	if v.flags.json {
		line := verifyLine{V: 1, Type: "verify", Status: status, Source: &source, Destination: destination, Entry: t.entry}
		if res != nil {
			line.Size = known(res.Size, res.Size >= 0)
		}
		if res != nil && res.Object != nil {
			line.Generation, line.ObjectSize = new(generationText(res.Object)), &res.Object.Size
			line.ObjectCRC32C = known(chunk.EncodeCRC32C(res.Object.CRC32C), res.Object.HasCRC32C)
		}
		if err != nil {
			line.Error = newErrorLine(err)
		}
		if err := printJSON(v.out, line); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
	}
	switch {
	case status == statusFailed:
		text := withHint(err, v.endpoint()).Error()
		if !strings.HasPrefix(text, source+":") {
			text = source + ": " + text
		}
		v.console.fail(printablePath(text, source))
	case v.flags.json || status == statusSkipped || status == statusSame && !v.view.results:
	case status == statusSame:
		if _, err := fmt.Fprintf(v.out, "same     %s\n", process.Printable(source)); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
	default:
		if _, err := fmt.Fprintf(v.out, "%-8s %s: %s\n", status, process.Printable(source), process.Printable(err.Error())); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
	}
	return nil
}

func (v *verifier) endpoint() string {
	if v.c == nil {
		return ""
	}
	return v.c.endpoint
}
