package main

import (
	"bytes"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"gcsup/session"
	"gcsup/upload"
)

// TestSummaryClaimsNoChecksum checks that the line of an upload has a CRC32C only if
// the service sent one. It had that of an empty object.
func TestSummaryClaimsNoChecksum(t *testing.T) {
	o := &session.Object{Generation: 7, Size: 5}
	res := &upload.Result{Object: o, Elapsed: time.Second, BytesSent: 5}
	if got, want := summary(task{destination: "gs://b/o"}, res), "gs://b/o#7  5 B in 1s, 5 B/s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	o.CRC32C, o.HasCRC32C = 1, true
	if got, want := summary(task{destination: "gs://b/o"}, res), "gs://b/o#7  5 B in 1s, 5 B/s  crc32c AAAAAQ=="; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSummaryIsReadable checks the line of an upload that was not simple.
func TestSummaryIsReadable(t *testing.T) {
	const size = 100 * mib
	res := &upload.Result{
		Object: &session.Object{Generation: 7, Size: size}, Elapsed: 12345 * time.Millisecond, Resumed: true, ResumedFrom: 40 * mib,
		BytesSent: 80 * mib, BytesResent: 20 * mib, Retries: 2, Waited: 3 * time.Second,
	}
	want := "gs://b/o#7  100 MiB in 12s, 6.5 MiB/s  resumed at 40 MiB  2 retries, waited 3s, 20 MiB sent again"
	if got := summary(task{destination: "gs://b/o"}, res); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

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
	if err := r.flush(); err != nil {
		t.Fatal(err)
	}
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
	if err := r.flush(); err != nil {
		t.Fatal(err)
	}
	if text := errs.String(); strings.Count(text, "retries exhausted: 503") != maxLeftOver || !strings.Contains(text, "f to gs://bkt/f: permission denied") || strings.Contains(text, "insert") {
		t.Errorf("printed %s", text)
	}
	for _, object := range []string{"g", "h", "i", "j"} {
		o.report(task{source: object, destination: "gs://bkt/" + object}, false, &upload.Result{Object: &session.Object{}, SourceKept: fs.ErrPermission}, nil)
	}
	if err := r.flush(); err != nil {
		t.Fatal(err)
	}
	if text := errs.String(); !strings.Contains(text, "i: not removed, although gs://bkt/i exists: permission denied\n") || strings.Contains(text, "gs://bkt/j") {
		t.Errorf("printed %s", text)
	}
	if got, want := r.totals.folded(), []string{"and 1 more source was not removed", "and 2 more files failed, because the retries were used up"}; !slices.Equal(got, want) {
		t.Errorf("folded %q, want %q", got, want)
	}
	if r.totals.failed != 6 {
		t.Errorf("%d failed, want 6", r.totals.failed)
	}
}
