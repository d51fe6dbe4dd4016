package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/session"
	"gcsup/upload/tree"
)

// TestChoose checks which objects the sources of a command become.
func TestChoose(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"dir/a.bin", "dir/sub/b", "e/a.bin", "a", "b"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(path), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("x", 1024)
	r := sourceFlags{recursive: true}
	for _, c := range []struct {
		flags       sourceFlags
		sources     []string
		destination string
		want        string // source=object
		err         error
	}{
		{sourceFlags{}, []string{"dir/a.bin"}, "gs://bkt/b.bin", "dir/a.bin=b.bin", nil},
		{sourceFlags{}, []string{"dir/a.bin"}, "gs://bkt", "dir/a.bin=a.bin", nil},
		{sourceFlags{}, []string{"dir/a.bin"}, "gs://bkt/", "dir/a.bin=a.bin", nil},
		{sourceFlags{}, []string{"dir/a.bin"}, "gs://bkt/x/", "dir/a.bin=x/a.bin", nil},
		{sourceFlags{}, []string{"a", "b"}, "gs://bkt/x/", "a=x/a b=x/b", nil},
		{sourceFlags{}, []string{"a"}, "gs://bkt/x//y #?%41", "a=x//y #?%41", nil},
		{sourceFlags{}, []string{"a"}, "gs://bkt/" + long, "a=" + long, nil},
		{sourceFlags{}, []string{"no"}, "gs://bkt/x", "no=x!", nil},
		{sourceFlags{}, []string{"dir"}, "gs://bkt/x", "dir=x!", nil},

		{r, []string{"dir"}, "gs://bkt", "dir/a.bin=dir/a.bin dir/sub/b=dir/sub/b", nil},
		{r, []string{"dir"}, "gs://bkt/x", "dir/a.bin=x/dir/a.bin dir/sub/b=x/dir/sub/b", nil},
		{r, []string{"dir/"}, "gs://bkt/x/", "dir/a.bin=x/dir/a.bin dir/sub/b=x/dir/sub/b", nil},
		{r, []string{"dir/."}, "gs://bkt/x", "dir/a.bin=x/a.bin dir/sub/b=x/sub/b", nil},
		{r, []string{"a"}, "gs://bkt/x", "a=x", nil},
		{r, []string{"dir", "a"}, "gs://bkt/x", "a=x/a dir/a.bin=x/dir/a.bin dir/sub/b=x/dir/sub/b", nil},
		{r, []string{"dir/.", "e/."}, "gs://bkt/x", "dir/a.bin=x/a.bin! e/a.bin=x/a.bin! dir/sub/b=x/sub/b", nil},
		{sourceFlags{recursive: true, tree: cmdline.TreeFlags{Exclude: []string{"sub"}}}, []string{"dir"}, "gs://bkt", "dir/a.bin=dir/a.bin", nil},
		{sourceFlags{fromStdin: true}, nil, "gs://bkt/x", "b=x/b dir/a.bin=x/dir/a.bin", nil},

		{sourceFlags{}, []string{"a", "b"}, "gs://bkt/x", "", tree.ErrUsage},
		{sourceFlags{}, []string{"dir/a.bin", "e/a.bin"}, "gs://bkt/x/", "", tree.ErrCollision},
		{sourceFlags{}, []string{"a", "a"}, "gs://bkt", "", tree.ErrCollision},
		{sourceFlags{}, []string{""}, "gs://bkt/x", "", tree.ErrUsage},
		{sourceFlags{}, []string{"-", "a"}, "gs://bkt/x/", "", exit.ErrUsage},
		{sourceFlags{}, []string{"a"}, "bkt/x", "", exit.ErrUsage},
		{sourceFlags{}, []string{"gs://bkt/a"}, "gs://bkt/b", "", tree.ErrUsage},
		{sourceFlags{}, []string{"a"}, "s3://bkt/x", "", exit.ErrUsage},
		{sourceFlags{}, []string{"a"}, "gs:/bkt/x", "", exit.ErrUsage},
		{sourceFlags{}, []string{"a"}, "gs://", "", exit.ErrUsage},
		{sourceFlags{}, []string{"a"}, "gs:///x", "", exit.ErrUsage},
		{sourceFlags{}, []string{"a"}, "gs://b/x", "", session.ErrInvalid},
		{sourceFlags{}, []string{"a"}, "gs://b kt/x", "", session.ErrInvalid},
		{sourceFlags{}, []string{"a"}, "gs://bkt/" + long + "y", "", session.ErrInvalid},
		{sourceFlags{}, []string{"a"}, "gs://bkt/\xff", "", session.ErrInvalid},
		{sourceFlags{recursive: true, shard: "3/3"}, []string{"dir"}, "gs://bkt", "", exit.ErrUsage},
		{sourceFlags{recursive: true, tree: cmdline.TreeFlags{Include: []string{"["}}}, []string{"dir"}, "gs://bkt", "", tree.ErrUsage},
	} {
		name := fmt.Sprintf("%+v %q to %.20q", c.flags, c.sources, c.destination)
		in := stdio{in: strings.NewReader("b\n./dir/a.bin\n")}
		chosen, err := c.flags.choose(t.Context(), in, func(string) {}, c.sources, c.destination, session.Spec{}, func(tree.Shard) bool { return true })
		if !errors.Is(err, c.err) {
			t.Errorf("%s: error %v, want %v", name, err, c.err)
		}
		if err != nil {
			if exit.Classify(err).Code != exit.Usage {
				t.Errorf("%s: exit code %d, want %d", name, exit.Classify(err).Code, exit.Usage)
			}
			continue
		}
		var got []string
		for job := range chosen.jobs {
			text := filepath.ToSlash(job.Path) + "=" + job.Spec.Object
			if job.Err != nil {
				text += "!"
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		chosen.close()
	}
}

// TestEmptyPart checks for which destinations there is a warning, and what it suggests.
func TestEmptyPart(t *testing.T) {
	for destination, want := range map[string]string{
		"gs://bkt": "", "gs://bkt/": "", "gs://bkt/a": "", "gs://bkt/a/b/": "", "bkt//a": "",
		"gs://bkt//":      "gs://bkt/",
		"gs://bkt//a":     "gs://bkt/a",
		"gs://bkt/a//b":   "gs://bkt/a/b",
		"gs://bkt/a//":    "gs://bkt/a/",
		"gs://bkt///a//b": "gs://bkt/a/b",
	} {
		if want != "" {
			want = destination + ": two slashes in a row are a part of the name; for one, give " + want
		}
		if got := emptyPart(destination); got != want {
			t.Errorf("emptyPart(%q) = %q, want %q", destination, got, want)
		}
	}
}
