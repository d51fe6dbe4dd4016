package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"gcsup/internal/require"
)

// TestReportHasNoPassword checks that the command line in a report has no password of
// a URL, and no argument of a command whose output is uploaded.
func TestReportHasNoPassword(t *testing.T) {
	fs := pflag.NewFlagSet("cp", pflag.ContinueOnError)
	line := commandLine{[]string{"cp", "gs://b/o", "--", "mysqldump", "--password", "secret"}, fs}
	require.NoError(t, fs.Parse(line.args[1:]))
	if got := line.text(); strings.Contains(got, "secret") || !strings.HasSuffix(got, " gs://b/o -- mysqldump") {
		t.Errorf("got %q", got)
	}
	line = commandLine{[]string{"cp", "--endpoint=http://user:secret@host:1", "a", "gs://b/a@b"}, pflag.NewFlagSet("cp", pflag.ContinueOnError)}
	if got := line.text(); strings.Contains(got, "secret") || strings.Contains(got, "user") || !strings.HasSuffix(got, "gs://b/a@b") {
		t.Errorf("got %q", got)
	}
}

func TestHideHeaders(t *testing.T) {
	got := strings.Join(hideHeaders([]string{"cp", "--additional-headers=A=secret", "--additional-headers", "B=secret", "x"}), " ")
	if want := "cp --additional-headers=… --additional-headers … x"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
