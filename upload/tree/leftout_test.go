package tree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gcsup/internal/require"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// TestReportLeftOut checks that a walk reports what it leaves out, except by patterns.
func TestReportLeftOut(t *testing.T) {
	t.Parallel()
	for _, report := range []bool{false, true} {
		root := t.TempDir()
		sized(t, root, map[string]struct{ size, hours int }{
			"a": {1, 0}, "b/gone": {1, 0}, "b/stays": {1, 0}, "c": {1, 0}, "d/x": {1, 0}, "large": {10, 0}, "x.bak": {1, 0},
		})
		require.NoError(t, os.Symlink("a", filepath.Join(root, "link")))
		opts := &tree.Options{Sorted: true, ReportLeftOut: report, IgnoreSymlinks: true, MaxSize: new(int64(5)), Exclude: []string{"*.bak"}}
		trees := newTree(t, []tree.Source{{Path: root}}, upload.Spec{Bucket: "bkt", Object: "p"}, opts)
		got := withKinds(t, func(yield func(upload.Job) bool) {
			for job := range trees.Walk(t.Context()) {
				if job.Path == filepath.Join(root, "a") { // the entries of root have been read
					require.NoError(t, errors.Join(os.Remove(filepath.Join(root, "c")), os.RemoveAll(filepath.Join(root, "d"))))
				}
				if !yield(job) {
					return
				}
			}
		})
		want := "a, b/gone, b/stays"
		if report {
			want = "a, b/gone, b/stays, c vanished, d/ vanished, large left_out, link link"
		}
		if got != want {
			t.Errorf("report %v: %s, want %s", report, got, want)
		}
	}
}

func TestExcludes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		include, exclude []string
		prefix           string
		left, kept       string
	}{
		{nil, nil, "p", "", "p/a p/a/b q x"},
		{nil, []string{"tmp/"}, "p", "p/tmp/a p/x/tmp/b p/tmp/", "p/tmp q/tmp/a p p/ tmp/a"},
		{nil, []string{"/*.bak"}, "", "a.bak", "x/a.bak a"},
		{[]string{"*.txt"}, []string{"b*"}, "p", "p/a p/b.txt p/b/a.txt", "p/a.txt p/x/a.txt"},
		{[]string{"d/"}, nil, "p", "p/a p/x/a", "p/d/a p/x/d/y/z"},
	} {
		trees := newTree(t, []tree.Source{{Path: dir}}, upload.Spec{Bucket: "bkt", Object: c.prefix}, &tree.Options{Include: c.include, Exclude: c.exclude})
		for _, name := range strings.Fields(c.left) {
			if !trees.Excludes(name) {
				t.Errorf("include %q, exclude %q: %s is not left out", c.include, c.exclude, name)
			}
		}
		for _, name := range strings.Fields(c.kept) {
			if trees.Excludes(name) {
				t.Errorf("include %q, exclude %q: %s is left out", c.include, c.exclude, name)
			}
		}
	}
}
