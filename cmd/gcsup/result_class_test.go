package main

import (
	"bytes"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/result"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// TestOutcomeIsPrintable checks that the name of an object, which comes from the
// name of a file, cannot control the terminal.
func TestOutcomeIsPrintable(t *testing.T) {
	var out, errs bytes.Buffer
	r := newReporter(stdio{out: &out, err: &errs}, outputFlags{}, commandLine{given: pflag.NewFlagSet("cp", pflag.ContinueOnError)})
	o := r.outcomes(false)
	r.tracker.start(true, nil, true)
	spec := session.Spec{Bucket: "bkt", Object: "a\x1b]0;title\x07"}
	done := task{source: spec.Object, destination: spec.URL()}
	o.report(done, false, &upload.Result{Spec: spec, Object: &session.Object{}}, nil)
	o.report(done, false, &upload.Result{Spec: spec, Planned: true}, nil)
	o.report(done, true, &upload.Result{Spec: spec, Skipped: upload.SkipExisting}, nil)
	require.NoError(t, r.flush())
	if text := out.String() + errs.String(); strings.ContainsAny(text, "\x1b\x07") || strings.Count(text, "gs://bkt/a?") != 3 {
		t.Errorf("printed %q", text)
	}
}

// TestFailuresWithOneCause checks that an outage does not print a message for each of many
// files.
func TestFailuresWithOneCause(t *testing.T) {
	var errs bytes.Buffer
	r := newReporter(stdio{out: io.Discard, err: &errs}, outputFlags{}, commandLine{given: pflag.NewFlagSet("cp", pflag.ContinueOnError)})
	o := r.outcomes(true)
	r.tracker.start(true, nil, false)
	report := func(object string, err error) {
		spec := session.Spec{Bucket: "bkt", Object: object}
		o.report(task{source: object, destination: spec.URL()}, false, &upload.Result{Path: object, Spec: spec}, err)
	}
	down := &session.Error{Op: session.OpInsert, Kind: session.ErrRetriesExhausted, Status: 503}
	for _, object := range []string{"a", "b", "c", "d", "e"} {
		report(object, down)
	}
	report("f", &session.Error{Op: session.OpInsert, Kind: session.ErrPermission, Status: 403})
	require.NoError(t, r.flush())
	if text := errs.String(); strings.Count(text, "retries exhausted: 503") != result.MaxNamed || !strings.Contains(text, "f to gs://bkt/f: permission denied") || strings.Contains(text, "insert") {
		t.Errorf("printed %s", text)
	}
	for _, object := range []string{"g", "h", "i", "j"} {
		o.report(task{source: object, destination: "gs://bkt/" + object}, false, &upload.Result{Object: &session.Object{}, SourceKept: fs.ErrPermission}, nil)
	}
	require.NoError(t, r.flush())
	if text := errs.String(); !strings.Contains(text, "i: not removed, although gs://bkt/i exists: permission denied\n") || strings.Contains(text, "gs://bkt/j") {
		t.Errorf("printed %s", text)
	}
	if got, want := r.totals.Folded(), []string{"and 1 more source was not removed", "and 2 more files failed, because the retries were used up"}; !slices.Equal(got, want) {
		t.Errorf("folded %q, want %q", got, want)
	}
	if r.totals.Failed != 6 {
		t.Errorf("%d failed, want 6", r.totals.Failed)
	}
}
