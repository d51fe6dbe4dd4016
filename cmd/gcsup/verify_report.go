package main

import (
	"errors"
	"fmt"
	"strings"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/result"
	"gcsup/upload"
)

// report prints the outcome of one file, and counts it. res may be nil.
func (v *verifier) report(t task, res *upload.Result, err error) error {
	source := t.source
	err = sourceError(err, source)
	status := result.Same
	switch {
	case t.entry != "":
		status = result.Skipped
	case errors.Is(err, exit.ErrDiffers) && res.Difference == upload.ObjectMissing:
		status = result.Missing
	case errors.Is(err, exit.ErrDiffers):
		status = result.Differs
	case err != nil:
		status = result.Failed
	}
	v.totals.Add(status, err)
	v.progress.end(t, status, res)
	return v.print(result.NewVerifyLine(t.file(), status, res, err), source, err)
}

// print prints the outcome of a comparison with source.
func (v *verifier) print(line result.VerifyLine, source string, err error) error {
	if v.flags.json {
		if err := result.Print(v.out, line); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
	}
	switch status := line.Status; {
	case status == result.Failed:
		text := withHint(err, v.endpoint()).Error()
		if !strings.HasPrefix(text, source+":") {
			text = source + ": " + text
		}
		v.console.Fail(text)
	case v.flags.json || status == result.Skipped || status == result.Same && !v.view.results:
	case status == result.Same:
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
