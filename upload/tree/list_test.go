package tree_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/upload"
	"gcsup/upload/tree"
)

func list(tb testing.TB, text string, sep byte, opts *tree.Options) iter.Seq[upload.Job] {
	tb.Helper()
	jobs, err := tree.List(tb.Context(), iotest.OneByteReader(strings.NewReader(text)), sep, template, opts)
	require.NoError(tb, err)
	return jobs
}

func TestList(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "b", "d/x", "d/y", "d/sub/", "link -> a", "dir-link -> d", "dangling -> missing", "sp ace")
	t.Chdir(root)
	for _, test := range []struct {
		what, text string
		sep        byte
		opts       tree.Options
		want       []string
	}{
		{what: "empty", text: "", want: []string{}},
		{what: "newlines", text: "b\na\nd/x\n", want: []string{"b", "a", "d/x"}},
		{what: "no newline at the end", text: "b\na", want: []string{"b", "a"}},
		{what: "empty lines", text: "\n\nb\n\n\na\n\n", want: []string{"b", "a"}},
		{what: "carriage returns", text: "b\r\nd/x\r\n\r\na\r", want: []string{"b", "d/x", "a\r ErrName"}},
		{what: "spaces are kept", text: "sp ace\n a\n", want: []string{"sp ace", " a ErrNotExist"}},
		{what: "NUL", sep: 1, text: "b\x00d/x\x00a", want: []string{"b", "d/x", "a"}},
		{what: "NUL keeps line breaks", sep: 1, text: "b\n\x00a\r\x00", want: []string{"b\n ErrName", "a\r ErrName"}},
		{what: "NUL read as newlines", text: "b\x00d/x\x00a\x00", want: []string{" ErrName"}},
		{what: "clean", text: "./a\nd//x\nd/./y\n././b\n", want: []string{"a", "d/x", "d/y", "b"}},
		{what: "missing", text: "a\nmissing\nd/missing\na/x\nb\n", want: []string{"a", "missing ErrNotExist", "d/missing ErrNotExist", "a/x not a directory", "b"}},
		{what: "directories", text: "d\nd/sub/\n.\nb\n", want: []string{"d ErrNotRegular", "d/sub ErrNotRegular", " ErrName", "b"}},
		{what: "dots", text: "../a\nd/../a\nd/..\n..\n...\n", want: []string{" ErrName", " ErrName", " ErrName", " ErrName", "... ErrNotExist"}},
		{what: "links", text: "link\ndir-link/x\ndir-link\ndangling\n", want: []string{"link", "dir-link/x", "dir-link ErrNotRegular", "dangling ErrNotExist"}},
		{what: "ignored links", opts: tree.Options{IgnoreSymlinks: true}, text: "link\na\ndangling\n", want: []string{"a"}},
		{what: "the same path again", text: "a\nb\na\n./a\nd/x\nd//x\na\n", want: []string{"a", "b", "d/x"}},
		{what: "patterns", opts: tree.Options{Include: []string{"x", "/a"}, Exclude: []string{"d/sub/"}}, text: "a\nb\nd/x\nd/y\nd/sub/x\n", want: []string{"a", "d/x"}},
	} {
		sep := byte('\n')
		if test.sep == 1 {
			sep = 0
		}
		equal(t, test.what, outcomes(t, withoutErrno(list(t, test.text, sep, &test.opts))), test.want)
		test.opts.Sorted = true
		equal(t, test.what+", sorted", sortedCopy(outcomes(t, withoutErrno(list(t, test.text, sep, &test.opts)))), sortedCopy(test.want))
	}
}

// withoutErrno replaces the text of ENOTDIR, for which there is no sentinel.
func withoutErrno(jobs iter.Seq[upload.Job]) iter.Seq[upload.Job] {
	return func(yield func(upload.Job) bool) {
		for job := range jobs {
			if job.Err != nil && strings.HasSuffix(job.Err.Error(), "not a directory") && !errors.Is(job.Err, tree.ErrNotRegular) {
				job.Err, job.Path = errors.New("not a directory"), ""
			}
			if !yield(job) {
				return
			}
		}
	}
}

// An absolute path keeps its name without the first slash. Another path for the
// same object is reported.
func TestListAbsolute(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "b")
	path := filepath.ToSlash(root)
	object := strings.TrimPrefix(path[len(filepath.VolumeName(root)):], "/")
	t.Chdir(filepath.VolumeName(root) + string(filepath.Separator))
	text := path + "/a\n" + path + "/b\n" + object + "/a\n" + path + "/a\n" + object + "/a\n" + object + "/./b\n"
	equal(t, "in the order of the list", outcomes(t, list(t, text, '\n', nil)),
		[]string{object + "/a", object + "/b", object + "/a ErrCollision", object + "/a ErrCollision", object + "/b ErrCollision"})
	equal(t, "sorted", outcomes(t, list(t, text, '\n', &tree.Options{Sorted: true})),
		[]string{object + "/a", object + "/a ErrCollision", object + "/b", object + "/b ErrCollision"})

	jobs, err := tree.List(t.Context(), strings.NewReader(object+"/a\n"), '\n', upload.Spec{Bucket: "my-bucket", Object: "p"}, nil)
	require.NoError(t, err)
	equal(t, "with a prefix", outcomes(t, jobs), []string{"p/" + object + "/a"})
}

func TestListErrors(t *testing.T) {
	if _, err := tree.List(t.Context(), strings.NewReader(""), ';', template, nil); !errors.Is(err, tree.ErrUsage) {
		t.Errorf("a semicolon: %v", err)
	}
	if _, err := tree.List(t.Context(), strings.NewReader(""), 0, template, &tree.Options{Include: []string{"["}}); !errors.Is(err, tree.ErrUsage) {
		t.Errorf("a wrong pattern: %v", err)
	}

	t.Chdir(t.TempDir())
	write(t, ".", "a", "b")
	broken := errors.New("the disk is broken")
	for _, sorted := range []bool{false, true} {
		// The last path, b1, is cut.
		jobs, err := tree.List(t.Context(), io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), '\n', template, &tree.Options{Sorted: sorted})
		require.NoError(t, err)
		failed := 0
		for job := range jobs {
			if job.Path == "b" {
				t.Error("the beginning of a path is a path")
			}
			if job.Err != nil {
				failed++
				if !errors.Is(job.Err, broken) || job.Path != "" {
					t.Errorf("%q: %v", job.Path, job.Err)
				}
			}
		}
		if failed != 1 {
			t.Errorf("%d errors", failed)
		}
	}

	long := strings.Repeat("x", 70_000)
	got := outcomes(t, list(t, "a\n"+long+"\nb\n"+long, '\n', nil))
	equal(t, "a long line", got, []string{"a", " ErrName", "b", " ErrName"})

	ctx, cancel := context.WithCancel(t.Context())
	jobs, _ := tree.List(ctx, strings.NewReader("a\nb\n"), '\n', template, nil)
	n := 0
	for range jobs {
		n++
		cancel()
	}
	cancel()
	if n != 1 {
		t.Errorf("%d jobs after cancellation", n)
	}

	tree.SortSoon(t, 1, 1)
	text := strings.Builder{}
	for i := range 3000 {
		fmt.Fprintf(&text, "%d-%s\n", i, strings.Repeat("x", 100))
	}
	got = outcomes(t, list(t, text.String(), '\n', &tree.Options{Sorted: true, TempDir: "missing"}))
	equal(t, "no directory for the sort", got, []string{" ErrSort"})
}

// A sorted list has the order of objects. Sorted and unsorted lists agree, and
// the shards have each name once.
func TestListSortedAndShards(t *testing.T) {
	if testing.Short() {
		t.Skip("makes many files")
	}
	root, tmp := t.TempDir(), t.TempDir()
	t.Chdir(root)
	var text strings.Builder
	var want []string
	n := testsize.Full(1500, 300)
	for i := range n {
		name := fmt.Sprintf("%s/%d", []string{"a", "a!", "a0", "é"}[i%4], i*7919%n)
		write(t, root, name)
		want = append(want, name)
		fmt.Fprintf(&text, "%s\n./%s\n", name, name)
	}
	want = sortedCopy(want)
	tree.SortSoon(t, 1, 1)
	equal(t, "sorted", outcomes(t, list(t, text.String(), '\n', &tree.Options{Sorted: true, TempDir: tmp})), want)
	equal(t, "unsorted", sortedCopy(outcomes(t, list(t, text.String(), '\n', nil))), want)
	var parts []string
	for i := range 3 {
		parts = append(parts, outcomes(t, list(t, text.String(), '\n', &tree.Options{Shard: tree.Shard{Index: i, Count: 3}}))...)
	}
	equal(t, "shards", sortedCopy(parts), want)
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("%d temporary files are left", len(left))
	}
}

// TestListDir checks that paths are relative to Options.Dir, and that it is no part of the
// objects.
func TestListDir(t *testing.T) {
	root := t.TempDir()
	write(t, root, "data/a", "data/d/x", "data2/a", "a")
	t.Chdir(root)
	abs := func(text string) string { return strings.ReplaceAll(text, "ROOT", filepath.ToSlash(root)) }
	for _, dir := range []string{"data", "./data/", abs("ROOT/data")} {
		for _, sorted := range []bool{false, true} {
			for text, want := range map[string][]string{
				"d/x\na\n":                 {"a", "d/x"},
				"./d//x\nROOT/data/a\n":    {"a", "d/x"},
				"a\nROOT/data/a\nd/../a\n": {" ErrName", "a"},
				"ROOT/data2/a\nROOT/a\nROOT/data/../a\nROOT/data\n../a\n": {" ErrName", " ErrName", " ErrName", " ErrName", " ErrName"},
				"data/a\n": {"data/a ErrNotExist"},
			} {
				got := outcomes(t, list(t, abs(text), '\n', &tree.Options{Dir: dir, Sorted: sorted}))
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("%s, sorted %v: %q gives %q, want %q", dir, sorted, text, got, want)
				}
			}
		}
	}
}
