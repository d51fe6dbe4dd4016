package tree_test

import (
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
	"gcsup/upload"
	"gcsup/upload/tree"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// sized makes files with their sizes, each modified some hours after noon.
func sized(t *testing.T, root string, files map[string]struct{ size, hours int }) {
	t.Helper()
	for name, f := range files {
		path := filepath.Join(root, name)
		at := noon.Add(time.Duration(f.hours) * time.Hour)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, make([]byte, f.size), 0o644), os.Chtimes(path, at, at))
		require.NoError(t, err)
	}
}

func TestLimits(t *testing.T) {
	root := t.TempDir()
	sized(t, root, map[string]struct{ size, hours int }{
		"empty": {0, 0}, "a": {10, 1}, "d/b": {11, 2}, "d/c": {12, 3},
	})
	require.NoError(t, os.Symlink("d/c", filepath.Join(root, "link")))
	require.NoError(t, os.Symlink("missing", filepath.Join(root, "dangling")))
	for _, c := range []struct {
		what string
		opts tree.Options
		want string
	}{
		{"none", tree.Options{}, "a d/b d/c empty link"},
		{"at least 11", tree.Options{MinSize: 11}, "d/b d/c link"},
		{"at most 11", tree.Options{MaxSize: new(int64(11))}, "a d/b empty"},
		{"exactly 11", tree.Options{MinSize: 11, MaxSize: new(int64(11))}, "d/b"},
		{"only empty", tree.Options{MaxSize: new(int64)}, "empty"},
		{"from", tree.Options{ModifiedFrom: noon.Add(2 * time.Hour)}, "d/b d/c link"},
		{"to", tree.Options{ModifiedTo: noon.Add(2 * time.Hour)}, "a d/b empty"},
		{"at a time", tree.Options{ModifiedFrom: noon.Add(time.Hour), ModifiedTo: noon.Add(time.Hour)}, "a"},
		{"with a pattern", tree.Options{MinSize: 11, Exclude: []string{"c"}}, "d/b link"},
	} {
		t.Run(c.what, func(t *testing.T) {
			c.opts.Sorted = true
			trees := newTree(t, []tree.Source{{Path: root}}, upload.Spec{Bucket: "b"}, &c.opts)
			var names []string
			var dangling int
			var total, sizes int64
			for job := range trees.Walk(t.Context()) {
				if job.Err != nil {
					dangling++
					continue
				}
				names = append(names, job.Spec.Object)
				total += job.Size
			}
			for size := range trees.Sizes(t.Context()) {
				sizes += size
			}
			if got := strings.Join(names, " "); got != c.want || sizes != total {
				t.Errorf("got %s with %d bytes, and sizes of %d bytes; want %s", got, total, sizes, c.want)
			}
			if dangling != 1 {
				t.Errorf("%d dangling links are reported, want 1", dangling)
			}
			text := "a\nd/b\nd/c\nempty\nlink\n"
			var listed []string
			c.opts.Dir = root
			for job := range list(t, text, '\n', &c.opts) {
				if job.Err != nil {
					t.Error(job.Err)
				}
				listed = append(listed, job.Spec.Object)
			}
			if got := strings.Join(listed, " "); got != c.want {
				t.Errorf("the list has %s, want %s", got, c.want)
			}
		})
	}
}

// TestLimitsOfRivals checks that a file that the limits leave out is no other source
// of an object.
func TestLimitsOfRivals(t *testing.T) {
	root := t.TempDir()
	sized(t, root, map[string]struct{ size, hours int }{"a/x": {10, 0}, "b/x": {20, 0}, "f/x": {20, 0}})
	sources := []tree.Source{{Path: filepath.Join(root, "a")}, {Path: filepath.Join(root, "b")}, {Path: filepath.Join(root, "f/x"), Name: "x"}}
	trees := newTree(t, sources, upload.Spec{Bucket: "b"}, &tree.Options{MaxSize: new(int64(10))})
	only(t, trees.Walk(t.Context()), "x")
}

// TestLimitsOfUnreadable checks that a file that is left out need not be readable.
func TestLimitsOfUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can read every file")
	}
	root := t.TempDir()
	sized(t, root, map[string]struct{ size, hours int }{"large": {20, 0}, "small": {10, 0}})
	require.NoError(t, os.Chmod(filepath.Join(root, "large"), 0))
	trees := newTree(t, []tree.Source{{Path: root}}, upload.Spec{Bucket: "b"}, &tree.Options{MaxSize: new(int64(10))})
	only(t, trees.Walk(t.Context()), "small")
}

// TestLimitsOfDirectory checks that the limits do not hide that a path in a list is a directory.
func TestLimitsOfDirectory(t *testing.T) {
	root := t.TempDir()
	sized(t, root, map[string]struct{ size, hours int }{"d/a": {10, 0}})
	n := 0
	for job := range list(t, "d\n", '\n', &tree.Options{Dir: root, MinSize: 1 << 30}) {
		if n++; !errors.Is(job.Err, tree.ErrNotRegular) {
			t.Errorf("error %v, want ErrNotRegular", job.Err)
		}
	}
	if n != 1 {
		t.Errorf("%d jobs, want 1", n)
	}
}

// only checks that there is one job, without an error.
func only(t *testing.T, jobs iter.Seq[upload.Job], object string) {
	t.Helper()
	n := 0
	for job := range jobs {
		if n++; job.Spec.Object != object || job.Err != nil || n > 1 {
			t.Errorf("job %d is %s with the error %v, want only %s", n, job.Spec.Object, job.Err, object)
		}
	}
	if n == 0 {
		t.Errorf("there is no job, want %s", object)
	}
}
