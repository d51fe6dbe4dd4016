package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"gcsup/internal/require"
)

// TestSubmitNames checks that the objects have the names that gcsup cp with the same
// arguments gives them, and that the listing includes them.
func TestSubmitNames(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"main.go gs://my-bucket/x":                                   "x",
		"-r main.go gs://my-bucket/x":                                "x",
		"main.go gs://my-bucket/x/":                                  "x/main.go",
		"main.go gs://my-bucket":                                     "main.go",
		"main.go up.go gs://my-bucket/x/":                            "x/main.go x/up.go",
		"-r main.go up.go gs://my-bucket/x":                          "x/main.go x/up.go",
		"-r ../gcsup-fleet/. gs://my-bucket/x --include main.go":     "x/main.go",
		"-r ../gcsup-fleet/. gs://my-bucket --include main.go":       "main.go",
		"-r ../gcsup-fleet gs://my-bucket/x/ --include main.go":      "x/gcsup-fleet/main.go",
		"--files-from testdata/list -C .. gs://my-bucket/x":          "x/gcsup-fleet/main.go",
		"-r ../gcsup-fleet main.go gs://my-bucket --include ma*n.go": "gcsup-fleet/main.go main.go",
	} {
		f, fs := &submitFlags{}, pflag.NewFlagSet("submit", pflag.ContinueOnError)
		f.add(fs)
		require.NoError(t, fs.Parse(strings.Fields(line)))
		s, done, err := f.submission(t.Context(), fs.Args())
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if f.list != nil {
			if _, err := f.list.read(); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for job := range s.Jobs {
			if job.Err != nil || !strings.HasPrefix(job.Spec.Object, s.Listing.Prefix) {
				t.Errorf("%s: object %q, error %v; want the prefix %q", line, job.Spec.Object, job.Err, s.Listing.Prefix)
			}
			got = append(got, job.Spec.Object)
		}
		done()
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
