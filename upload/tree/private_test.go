package tree_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gcsup/internal/require"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// withKinds returns the objects of jobs below the prefix "p/", with the kinds of entries that were
// skipped.
func withKinds(t *testing.T, jobs func(func(upload.Job) bool)) string {
	t.Helper()
	var got []string
	for job := range jobs {
		text := strings.TrimPrefix(job.Spec.Object, "p/")
		if entry, ok := errors.AsType[*tree.EntryError](job.Err); ok {
			text += " " + string(entry.Kind)
		} else if job.Err != nil {
			text += " " + job.Err.Error()
		}
		got = append(got, text)
	}
	return strings.Join(got, ", ")
}

// TestPrivateIsNotRead checks that a private directory is left out, whatever its path is.
func TestPrivateIsNotRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "a", "home/x", "home/state/uploads/s.json", "home/statex", "z")
	if runtime.GOOS != "windows" {
		write(t, root, "way -> home/state")
	}
	inside := filepath.Join(root, "home", "state", "uploads", "s.json")
	for _, c := range []struct {
		name, private, source, want string
		opts                        tree.Options
	}{
		{"by its path", "home/state", "", "a, home/state/ private, home/statex, home/x, z", tree.Options{IgnoreSymlinks: true}},
		{"by another path", "home/../home/state/.", "", "a, home/state/ private, home/statex, home/x, z", tree.Options{IgnoreSymlinks: true}},
		{"by a link", "home/state", "", "a, home/state/ private, home/statex, home/x, way/ private, z", tree.Options{FollowSymlinks: true}},
		{"the source", "home", "home", " private", tree.Options{}},
		{"in the source", "home", "home/state", "uploads/s.json", tree.Options{}},
		{"a missing one", "nothing", "home/state", "uploads/s.json", tree.Options{}},
		{"not selected", "home/state", "", "a, home/state/ private", tree.Options{IgnoreSymlinks: true, Include: []string{"/a"}}},
		{"excluded", "home/state", "", "a, home/statex, home/x, z", tree.Options{IgnoreSymlinks: true, Exclude: []string{"state/"}}},
	} {
		if c.opts.FollowSymlinks && runtime.GOOS == "windows" {
			continue
		}
		c.opts.Sorted, c.opts.Private = true, []string{filepath.Join(root, "none"), root + "/" + c.private}
		trees := newTree(t, []tree.Source{{Path: filepath.Join(root, c.source)}}, upload.Spec{Bucket: "bkt", Object: "p"}, &c.opts)
		if got := withKinds(t, trees.Walk(t.Context())); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		files := 0
		for range trees.Sizes(t.Context()) {
			files++
		}
		if want := strings.Count(", "+c.want, ", ") - strings.Count(c.want, " private"); files != want {
			t.Errorf("%s: %d sizes, want %d", c.name, files, want)
		}
	}

	opts := &tree.Options{Private: []string{filepath.Join(root, "home", "state")}}
	trees := newTree(t, []tree.Source{{Path: inside, Name: "s"}}, upload.Spec{Bucket: "bkt", Object: "p"}, opts)
	for job := range trees.Walk(t.Context()) {
		if _, entry := errors.AsType[*tree.EntryError](job.Err); !errors.Is(job.Err, tree.ErrLeftOut) || entry {
			t.Errorf("a named file: %v", job.Err)
		}
	}
	opts.Dir = root
	list, err := tree.List(t.Context(), strings.NewReader("a\nhome/state/uploads/s.json\nhome/x\n"), '\n', upload.Spec{Bucket: "bkt", Object: "p"}, opts)
	require.NoError(t, err)
	if got, want := withKinds(t, list), "a, home/state/uploads/s.json private, home/x"; got != want {
		t.Errorf("a list: %s, want %s", got, want)
	}
}

// TestPrivateIsMadeDuringAWalk checks that a private directory is left out even if it did not exist when
// the walk began.
func TestPrivateIsMadeDuringAWalk(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "a/x", "b/y")
	private := filepath.Join(root, "b", "state")
	trees := newTree(t, []tree.Source{{Path: root}}, upload.Spec{Bucket: "bkt", Object: "p"}, &tree.Options{Sorted: true, Private: []string{private}})
	got := withKinds(t, func(yield func(upload.Job) bool) {
		for job := range trees.Walk(t.Context()) {
			require.NoError(t, os.MkdirAll(private, 0o700))
			write(t, private, "secret")
			if !yield(job) {
				return
			}
		}
	})
	if want := "a/x, b/state/ private, b/y"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
