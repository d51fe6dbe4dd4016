package tree_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gcsup/internal/require"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// TestPlace checks which objects the arguments of a command become.
func TestPlace(t *testing.T) {
	root := t.TempDir()
	for _, path := range []string{"dir/a.bin", "dir/sub/b", "a", "b"} {
		path = filepath.Join(root, path)
		require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(path), 0o600)))
	}
	for _, c := range []struct {
		args, destination string
		recursive         bool
		want, prefix      string
		err               error
	}{
		{args: "a", destination: "x", want: "a=x", prefix: "x"},
		{args: "dir/a.bin", destination: "x", want: "dir/a.bin=x", prefix: "x"},
		{args: "dir/a.bin", destination: "", want: "dir/a.bin=a.bin", prefix: ""},
		{args: "dir/a.bin", destination: "x/", want: "dir/a.bin=x/a.bin", prefix: "x/"},
		{args: "./dir/../a", destination: "x//", want: "./dir/../a=x//a", prefix: "x//"},
		{args: "a b", destination: "x/", want: "a=x/a b=x/b", prefix: "x/"},
		{args: "a b", destination: "", want: "a=a b=b", prefix: ""},
		{args: "a b", destination: "x", err: tree.ErrUsage},
		{args: "a", destination: "x", recursive: true, want: "a=x", prefix: "x"},
		{args: "a b", destination: "x", recursive: true, want: "a=x/a b=x/b", prefix: "x/"},
		{args: "dir a", destination: "x", recursive: true, want: "dir/a.bin=x/dir/a.bin dir/sub/b=x/dir/sub/b a=x/a", prefix: "x/"},
		{args: "dir", destination: "", recursive: true, want: "dir/a.bin=dir/a.bin dir/sub/b=dir/sub/b", prefix: ""},
		{args: "dir", destination: "x", recursive: true, want: "dir/a.bin=x/dir/a.bin dir/sub/b=x/dir/sub/b", prefix: "x/"},
		{args: "dir/", destination: "x/", recursive: true, want: "dir/a.bin=x/dir/a.bin dir/sub/b=x/dir/sub/b", prefix: "x/"},
		{args: "dir/.", destination: "x", recursive: true, want: "dir/a.bin=x/a.bin dir/sub/b=x/sub/b", prefix: "x/"},
		{args: "dir/.", destination: "", recursive: true, want: "dir/a.bin=a.bin dir/sub/b=sub/b", prefix: ""},
		{args: "dir/sub/.. dir", destination: "x", recursive: true, want: "dir/a.bin=x/dir/a.bin dir/sub/../a.bin=x/a.bin dir/sub/../sub/b=x/sub/b dir/sub/b=x/dir/sub/b", prefix: "x/"},
		{args: "", destination: "x", prefix: "x/"},
		{args: "gs://bkt/a", destination: "x", err: tree.ErrUsage},
		{args: "missing", destination: "x", want: "missing=x!missing", prefix: "x"},
		{args: "dir", destination: "x/", want: "dir=x/dir!directory", prefix: "x/"},
	} {
		name := fmt.Sprintf("%s to %q, recursive %v", c.args, c.destination, c.recursive)
		t.Chdir(root)
		placed, prefix, err := tree.Place(strings.Fields(c.args), upload.Spec{Bucket: "bkt", Object: c.destination}, c.recursive)
		if !errors.Is(err, c.err) || prefix != c.prefix {
			t.Errorf("%s: prefix %q, error %v; want %q, %v", name, prefix, err, c.prefix, c.err)
		}
		var got []string
		var sources []tree.Source
		for _, p := range placed {
			switch {
			case p.Err == nil:
				sources = append(sources, p.Source)
			case errors.Is(p.Err, fs.ErrNotExist):
				got = append(got, p.Path+"="+p.Name+"!missing")
			case errors.Is(p.Err, tree.ErrNotRegular) && p.IsDir:
				got = append(got, p.Path+"="+p.Name+"!directory")
			}
		}
		files, err := tree.New(sources, upload.Spec{Bucket: "bkt"}, &tree.Options{Sorted: true})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for job := range files.Walk(t.Context()) {
			if !strings.HasPrefix(job.Spec.Object, prefix) || job.Err != nil {
				t.Errorf("%s: object %q, error %v; want the prefix %q", name, job.Spec.Object, job.Err, prefix)
			}
			got = append(got, filepath.ToSlash(job.Path)+"="+job.Spec.Object)
		}
		want := strings.Fields(c.want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestPlaceEmptyArgument checks that an empty argument is refused.
func TestPlaceEmptyArgument(t *testing.T) {
	if _, _, err := tree.Place([]string{""}, upload.Spec{Bucket: "bkt"}, true); !errors.Is(err, tree.ErrUsage) {
		t.Errorf("Place = %v, want ErrUsage", err)
	}
}
