package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"gcsup/session"
	"gcsup/upload"
)

// TestOutcomeIsPrintable checks that the name of an object, which comes from the
// name of a file, cannot control the terminal.
func TestOutcomeIsPrintable(t *testing.T) {
	var out, errs bytes.Buffer
	r := newReporter(stdio{out: &out, err: &errs}, outputFlags{}, pflag.NewFlagSet("cp", pflag.ContinueOnError))
	spec := session.Spec{Bucket: "bkt", Object: "a\x1b]0;title\x07"}
	done := task{source: spec.Object, destination: spec.URL()}
	r.outcome(done, false, &upload.Result{Spec: spec, Object: &session.Object{}}, nil)
	r.outcome(done, false, &upload.Result{Spec: spec, Planned: true}, nil)
	r.outcome(done, true, &upload.Result{Spec: spec, Skipped: upload.SkipExisting}, nil)
	if err := r.flush(); err != nil {
		t.Fatal(err)
	}
	if text := out.String() + errs.String(); strings.ContainsAny(text, "\x1b\x07") || strings.Count(text, "gs://bkt/a?") != 3 {
		t.Errorf("printed %q", text)
	}
}
