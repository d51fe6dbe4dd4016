package tree_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// write makes files with their directories. The content of a file is its name.
// A name that ends in a slash is a directory, and "a -> b" is a link.
func write(tb testing.TB, root string, names ...string) {
	tb.Helper()
	for _, name := range names {
		link, target, isLink := strings.Cut(name, " -> ")
		path := filepath.Join(root, link)
		require.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o755))
		var err error
		switch {
		case isLink:
			err = os.Symlink(target, path)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		default:
			err = os.WriteFile(path, []byte(name), 0o644)
		}
		require.NoError(tb, err)
	}
}

// sentinel returns the name of the error of a job, or the kind of an entry that is not
// a file.
func sentinel(err error) string {
	if entry, ok := errors.AsType[*tree.EntryError](err); ok && (errors.Is(err, tree.ErrSymlink) || errors.Is(err, tree.ErrNotRegular)) {
		return string(entry.Kind)
	}
	for _, known := range []struct {
		name string
		err  error
	}{
		{"ErrCollision", tree.ErrCollision}, {"ErrSymlink", tree.ErrSymlink}, {"ErrNotRegular", tree.ErrNotRegular}, {"ErrName", tree.ErrName},
		{"ErrSort", tree.ErrSort}, {"ErrUsage", tree.ErrUsage}, {"ErrNotExist", fs.ErrNotExist}, {"ErrPermission", fs.ErrPermission},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return err.Error()
}

// outcomes returns the object of each job, with the name of its error. It checks
// that the path of each job without an error can be opened, and its size.
func outcomes(tb testing.TB, jobs iter.Seq[upload.Job]) []string {
	tb.Helper()
	got := []string{}
	for job := range jobs {
		if job.Err != nil {
			if job.Path != "" && !strings.Contains(job.Err.Error(), job.Path) {
				tb.Errorf("the error does not name %s: %v", job.Path, job.Err)
			}
			got = append(got, job.Spec.Object+" "+sentinel(job.Err))
			continue
		}
		got = append(got, job.Spec.Object)
		f, err := os.Open(job.Path)
		if err != nil {
			tb.Error(err)
			continue
		}
		info, err := f.Stat()
		if err != nil || info.Size() != job.Size || !info.ModTime().Equal(job.ModTime) || job.Spec.Bucket != "my-bucket" || job.Listed {
			tb.Errorf("job %+v of %v (%v)", job, info, err)
		}
		f.Close()
	}
	return got
}

func newTree(tb testing.TB, sources []tree.Source, spec upload.Spec, opts *tree.Options) *tree.Tree {
	tb.Helper()
	t, err := tree.New(sources, spec, opts)
	require.NoError(tb, err)
	return t
}

func walk(tb testing.TB, opts *tree.Options, sources ...tree.Source) []string {
	tb.Helper()
	return outcomes(tb, newTree(tb, sources, template, opts).Walk(tb.Context()))
}

func equal(tb testing.TB, what string, got, want []string) {
	tb.Helper()
	if !slices.Equal(got, want) {
		tb.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func sortedCopy(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// names sort differently as directories and as files, and around the slash.
var names = []string{"a", "a!", "a0", "a-", "a.b", "b", "A", "é", "é!", "~", "0", " ", "!", "日本", "\x01", "𝄞", strings.Repeat("x", 200)}

// randomTree makes a tree of about n files below root, and returns their
// slash-separated paths.
func randomTree(tb testing.TB, rnd *rand.Rand, root string, names []string, n int) []string {
	isDir := map[string]bool{}
	var files []string
	for range n {
		path := ""
		for depth := rnd.IntN(5); ; depth-- {
			path += names[rnd.IntN(len(names))]
			dir, exists := isDir[path]
			if exists && (!dir || depth == 0) {
				break
			}
			isDir[path] = depth > 0
			if depth == 0 {
				write(tb, root, path)
				files = append(files, path)
				break
			}
			path += "/"
			write(tb, root, path)
		}
	}
	slices.Sort(files)
	return files
}

// A walk of a random tree in order is the sorted list of its names. Without an
// order it has the same names. Each name is in exactly one shard.
func TestRandomTrees(t *testing.T) {
	seeds := testsize.Full(40, 8)
	if testing.Short() {
		seeds = 2
	}
	for seed := range uint64(seeds) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		root := testsize.MemDir(t)
		want := randomTree(t, rnd, root, names, 1+rnd.IntN(120))
		src := tree.Source{Path: root}
		what := fmt.Sprintf("seed %d", seed)
		equal(t, what+", in memory", walk(t, &tree.Options{Sorted: true}, src), want)
		equal(t, what+", no order", sortedCopy(walk(t, nil, src)), want)
		var parts []string
		for i := range 3 {
			parts = append(parts, walk(t, &tree.Options{Sorted: seed%2 == 0, Shard: tree.Shard{Index: i, Count: 3}}, src)...)
		}
		equal(t, what+", shards", sortedCopy(parts), want)

		func() {
			tmp := t.TempDir()
			t.Run("", func(t *testing.T) {
				tree.SortSoon(t, 2, 1)
				equal(t, what+", on disk", walk(t, &tree.Options{Sorted: true, TempDir: tmp}, src), want)
			})
			if left, _ := os.ReadDir(tmp); len(left) > 0 {
				t.Errorf("%s: %d temporary files are left", what, len(left))
			}
		}()
	}
}

// Several sources, some of which overlap, are merged. A name that two of them have is
// reported for both, sorted or not, and in its shard.
func TestRandomSources(t *testing.T) {
	if testing.Short() {
		t.Skip("makes many files")
	}
	collisions := 0
	for seed := range uint64(testsize.Full(40, 6)) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		root := testsize.MemDir(t)
		var sources []tree.Source
		count := map[string]int{} // sources of each object
		for i := range 3 + rnd.IntN(3) {
			src := tree.Source{Path: filepath.Join(root, fmt.Sprint(i)), Name: []string{"", "", "a", "a/a"}[rnd.IntN(4)]}
			if rnd.IntN(4) == 0 {
				src.Name = "a/" + names[rnd.IntN(4)]
				if slices.ContainsFunc(sources, func(s tree.Source) bool { return s.Name == src.Name }) {
					continue
				}
				write(t, root, fmt.Sprint(i))
				count[src.Name]++
			} else {
				write(t, root, fmt.Sprint(i)+"/")
				for _, rel := range randomTree(t, rnd, src.Path, names[:4], 40) {
					if src.Name != "" {
						rel = src.Name + "/" + rel
					}
					count[rel]++
				}
			}
			sources = append(sources, src)
		}
		var want []string
		for object, n := range count {
			if n == 1 {
				want = append(want, object)
				continue
			}
			collisions++
			for range n {
				want = append(want, object+" ErrCollision")
			}
		}
		key := func(s string) string { return strings.TrimSuffix(s, " ErrCollision") }
		slices.SortFunc(want, func(a, b string) int { return strings.Compare(key(a), key(b)) })
		got := walk(t, &tree.Options{Sorted: true}, sources...)
		equal(t, fmt.Sprintf("seed %d", seed), got, want)
		equal(t, fmt.Sprintf("seed %d, no order", seed), sortedCopy(walk(t, nil, sources...)), sortedCopy(want))
		var parts []string
		for i := range 4 {
			parts = append(parts, walk(t, &tree.Options{Shard: tree.Shard{Index: i, Count: 4}}, sources...)...)
		}
		equal(t, fmt.Sprintf("seed %d, shards", seed), sortedCopy(parts), sortedCopy(want))
		if t.Failed() {
			t.Fatalf("sources %+v", sources)
		}
	}
	if collisions < testsize.Full(100, 6) {
		t.Errorf("only %d collisions", collisions)
	}
}

// The paths of arguments determine the names.
func TestSources(t *testing.T) {
	for _, test := range []struct{ arg, name, path string }{
		{"dir", "dir/f", "dir/f"},
		{"dir/", "dir/f", "dir/f"},
		{"dir//", "dir/f", "dir/f"},
		{"./dir", "dir/f", "./dir/f"},
		{"dir/.", "f", "dir/f"},
		{"dir/./", "f", "dir/f"},
		{"dir/./.", "f", "dir/f"},
		{"dir/sub/..", "f", "dir/sub/../f"},
		{"up/dir", "dir/f", "up/dir/f"},
		{"up/../dir/.", "f", "up/../dir/f"},
		{"dir/f", "f", "dir/f"},
		{"./dir/./f", "f", "./dir/./f"},
		{"dir/sub", "", ""},
	} {
		root := t.TempDir()
		write(t, root, "dir/f", "up/dir/f", "dir/sub/")
		t.Chdir(root)
		for _, prefix := range []string{"", "p", "p/", "p/q/"} {
			spec := upload.Spec{Bucket: "my-bucket", Object: prefix}
			tr, err := tree.New(tree.Sources(test.arg), spec, nil)
			if err != nil {
				t.Errorf("%s: %v", test.arg, err)
				continue
			}
			want := test.name
			if prefix != "" {
				want = strings.TrimSuffix(prefix, "/") + "/" + test.name
			}
			n := 0
			for job := range tr.Walk(t.Context()) {
				n++
				if job.Err != nil || job.Spec.Object != want || filepath.ToSlash(job.Path) != test.path {
					t.Errorf("%s with prefix %q: object %q of %q (%v), want %q of %q", test.arg, prefix, job.Spec.Object, job.Path, job.Err, want, test.path)
				}
			}
			if n != 1 && test.name != "" {
				t.Errorf("%s: %d jobs", test.arg, n)
			}
		}
	}

	root := t.TempDir()
	write(t, root, "d/f", "g")
	t.Chdir(root)
	equal(t, "the current directory", walk(t, &tree.Options{Sorted: true}, tree.Sources(".")...), []string{"d/f", "g"})
	t.Chdir("d")
	equal(t, "the parent", walk(t, &tree.Options{Sorted: true}, tree.Sources("..")...), []string{"d/f", "g"})
	if s := tree.Sources("/"); s[0].Name != "" || s[0].Path != "/" {
		t.Errorf("the root directory: %+v", s[0])
	}
}

// Arguments that show a mistake are refused before anything is yielded.
func TestNewRefuses(t *testing.T) {
	root := t.TempDir()
	write(t, root, "d/f", "e/f", "f", "link -> d", "hard/x")
	t.Chdir(root)
	for _, test := range []struct {
		args []string
		opts tree.Options
		want string
	}{
		{args: []string{"d/f", "e/f"}, want: "ErrCollision"},
		{args: []string{"f", "./f"}, want: "ErrCollision"},
		{args: []string{"d", "d"}, want: "ErrCollision"},
		{args: []string{"d", "./d/"}, want: "ErrCollision"},
		{args: []string{"d/.", "link/."}, want: "ErrCollision"},
		{args: []string{"d", "missing"}, want: "ErrNotExist"},
		{args: []string{"f"}, opts: tree.Options{Exclude: []string{"[a"}}, want: "ErrUsage"},
		{args: []string{"f"}, opts: tree.Options{Include: []string{"{a,b"}}, want: "ErrUsage"},
		{args: []string{"f"}, opts: tree.Options{Exclude: []string{""}}, want: "ErrUsage"},
		{args: []string{"f"}, opts: tree.Options{IgnoreSymlinks: true, FollowSymlinks: true}, want: "ErrUsage"},
		{args: []string{"f"}, opts: tree.Options{ReportSymlinks: true, FollowSymlinks: true}, want: "ErrUsage"},
		{args: []string{"f"}, opts: tree.Options{Shard: tree.Shard{Index: 2, Count: 2}}, want: "ErrUsage"},
		{args: []string{"f"}, opts: tree.Options{Shard: tree.Shard{Index: 1}}, want: "ErrUsage"},
		{args: []string{"f"}, opts: tree.Options{Shard: tree.Shard{Index: -1, Count: 2}}, want: "ErrUsage"},
		{args: []string{"f"}, opts: tree.Options{MinSize: -1}, want: "ErrUsage"},
		{args: []string{"f"}, opts: tree.Options{MaxSize: new(int64(-1))}, want: "ErrUsage"},
		{args: []string{"f"}, opts: tree.Options{MinSize: 2, MaxSize: new(int64(1))}, want: "ErrUsage"},
		{args: []string{"f"}, opts: tree.Options{ModifiedFrom: noon, ModifiedTo: noon.Add(-1)}, want: "ErrUsage"},
		{args: []string{"f"}, opts: tree.Options{Dir: "."}, want: "ErrUsage"},
	} {
		if _, err := tree.New(tree.Sources(test.args...), template, &test.opts); err == nil || sentinel(err) != test.want {
			t.Errorf("%v %+v: %v, want %s", test.args, test.opts, err, test.want)
		}
	}
	if _, err := tree.New([]tree.Source{{Path: "f"}}, template, nil); !errors.Is(err, tree.ErrUsage) {
		t.Errorf("a file without a name: %v", err)
	}
	for _, args := range [][]string{{"d", "e"}, {"d/.", "e/."}, {"d", "link"}, {"f", "d"}} {
		if _, err := tree.New(tree.Sources(args...), template, nil); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// A name is uploaded if it only seems to be in two sources.
func TestOverlap(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a/x", "a/d/x", "a/skip/x", "a/one", "b/x/y", "b/e/x", "b/d -> e", "b/skip/x", "b/one -> /etc/passwd", "c/x")
	src := func(names ...string) (s []tree.Source) {
		for _, name := range names {
			s = append(s, tree.Source{Path: filepath.Join(root, name)})
		}
		return s
	}
	opts := &tree.Options{Sorted: true}
	equal(t, "a and b", walk(t, opts, src("a", "b")...), []string{
		"d link_to_directory", "d/x", "e/x", "one", "one link_outside", "skip/x ErrCollision", "skip/x ErrCollision", "x", "x/y"})
	opts.Exclude = []string{"skip"}
	equal(t, "an excluded directory", walk(t, opts, src("a", "b")...), []string{"d link_to_directory", "d/x", "e/x", "one", "one link_outside", "x", "x/y"})
	opts.Exclude = nil
	opts.Include = []string{"x"}
	equal(t, "a and c", walk(t, opts, src("a", "c")...), []string{"d/x", "skip/x", "x ErrCollision", "x ErrCollision"})
	equal(t, "a directory and a file", walk(t, opts, append(src("a"), tree.Source{Path: filepath.Join(root, "c/x"), Name: "d/x"})...),
		[]string{"d/x ErrCollision", "d/x ErrCollision", "skip/x", "x"})
	equal(t, "excluded in one of the sources", walk(t, &tree.Options{Sorted: true, Exclude: []string{"d", "skip", "one"}}, append(src("a"), tree.Source{Path: filepath.Join(root, "c"), Name: "d"})...),
		[]string{"d/x", "x"})
	equal(t, "nested names", walk(t, opts, append(src("a"), tree.Source{Path: filepath.Join(root, "c"), Name: "d"})...),
		[]string{"d/x ErrCollision", "d/x ErrCollision", "skip/x", "x"})
}

// Many sources at one prefix are looked up, although few of them are open.
func TestManyOverlaps(t *testing.T) {
	if testing.Short() {
		t.Skip("makes many files")
	}
	root := t.TempDir()
	var sources []tree.Source
	var want []string
	n := testsize.Full(100, 40)
	for i := range n {
		write(t, root, fmt.Sprintf("%d/%03d", i, i/2), fmt.Sprintf("%d/d/%03d", i, i))
		sources = append(sources, tree.Source{Path: filepath.Join(root, fmt.Sprint(i))})
		want = append(want, fmt.Sprintf("%03d ErrCollision", i/2))
	}
	for i := range n {
		want = append(want, fmt.Sprintf("d/%03d", i))
	}
	equal(t, "sorted", walk(t, &tree.Options{Sorted: true}, sources...), want)
}

// The error of a collision names the other file and the object.
func TestCollisionText(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a/x", "b/x")
	t.Chdir(root)
	tr := newTree(t, tree.Sources("a/.", "b/."), upload.Spec{Bucket: "my-bucket", Object: "p"}, nil)
	var got []string
	for job := range tr.Walk(t.Context()) {
		got = append(got, filepath.ToSlash(job.Err.Error()))
	}
	equal(t, "errors", got, []string{
		"a/x: two sources for one object: b/x is also the source of gs://my-bucket/p/x; give one of them, or exclude it",
		"b/x: two sources for one object: a/x is also the source of gs://my-bucket/p/x; give one of them, or exclude it"})
}

// A walk agrees with the table of patterns in the documentation of Options.
func TestPatterns(t *testing.T) {
	doc, err := os.ReadFile("tree.go")
	require.NoError(t, err)
	root := t.TempDir()
	files := []string{"a.txt", "sub/a.txt", "sub/b.jpg", "tmp/a.txt"}
	write(t, root, files...)
	_, table, _ := strings.Cut(string(doc), "//\tInclude     Exclude          a.txt  sub/a.txt  sub/b.jpg  tmp/a.txt\n")
	rows := 0
	for line := range strings.Lines(table) {
		line, ok := strings.CutPrefix(line, "//\t")
		if !ok {
			break
		}
		rows++
		var opts tree.Options
		if p := strings.TrimSpace(line[:12]); p != "" {
			opts.Include = []string{p}
		}
		if p := strings.TrimSpace(line[12:29]); p != "" {
			opts.Exclude = []string{p}
		}
		want := []string{}
		for i, yes := range strings.Fields(line[29:]) {
			if yes == "yes" {
				want = append(want, files[i])
			}
		}
		opts.Sorted = true
		equal(t, strings.TrimSpace(line), walk(t, &opts, tree.Source{Path: root}), want)

		t.Chdir(root)
		jobs, err := tree.List(t.Context(), strings.NewReader(strings.Join(files, "\n")), '\n', template, &opts)
		require.NoError(t, err)
		equal(t, "list: "+strings.TrimSpace(line), outcomes(t, jobs), want)
	}
	if rows < 10 {
		t.Errorf("%d rows", rows)
	}
}

// An excluded directory is not read.
func TestExcludePrunes(t *testing.T) {
	root := t.TempDir()
	write(t, root, "bad/x", "good/y", "good/bad/z", "bad/out -> /etc/passwd", "good/bad/out -> /etc/passwd")
	for _, pattern := range []string{"bad", "bad/", "bad/**"} {
		equal(t, pattern, walk(t, &tree.Options{Exclude: []string{pattern}}, tree.Source{Path: root}), []string{"good/y"})
	}
	equal(t, "a file that is a source", walk(t, &tree.Options{Exclude: []string{"y"}}, tree.Source{Path: filepath.Join(root, "good/y"), Name: "z"}), []string{})
}

// Sizes yields the sizes of the jobs that Walk yields without an error.
func TestCount(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a/1", "a/22", "b/333", "b/4444", "c -> /etc/passwd", "d/1")
	var src []tree.Source
	for _, d := range []string{"a", "b", "c", "d"} {
		src = append(src, tree.Source{Path: filepath.Join(root, d), Name: map[bool]string{true: "c"}[d == "c"]})
	}
	tr := newTree(t, src, template, &tree.Options{Sorted: true, IgnoreSymlinks: true})
	var sizes []int64
	for size := range tr.Sizes(t.Context()) {
		sizes = append(sizes, size)
	}
	slices.Sort(sizes)
	// a/1 and d/1 go to one object.
	if !slices.Equal(sizes, []int64{4, 5, 6}) {
		t.Errorf("sizes %v", sizes)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for size := range tr.Sizes(ctx) {
		t.Errorf("after cancellation: a file of %d bytes", size)
	}
	equal(t, "a walk after cancellation", outcomes(t, tr.Walk(ctx)), []string{})
}

// An iteration that ends early closes its files, and can be repeated.
func TestEarlyEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("makes many files")
	}
	if runtime.GOOS != "linux" {
		t.Skip("/proc/self/fd")
	}
	root, tmp := t.TempDir(), t.TempDir()
	var want []string
	for i := range testsize.Full(2000, 150) {
		want = append(want, fmt.Sprintf("a/b/c/%04d", i))
	}
	write(t, root, want...)
	write(t, root, "other/z")
	tree.SortSoon(t, 100, 1)
	open := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(fds)
	}
	before := open()
	for _, sorted := range []bool{false, true} {
		tr := newTree(t, []tree.Source{{Path: filepath.Join(root, "a"), Name: "a"}, {Path: filepath.Join(root, "other")}}, template, &tree.Options{Sorted: sorted, TempDir: tmp})
		for range 20 {
			for range tr.Walk(t.Context()) {
				break
			}
			ctx, cancel := context.WithCancel(t.Context())
			n := 0
			for range tr.Walk(ctx) {
				n++
				cancel()
			}
			cancel()
			if n != 1 {
				t.Errorf("%d jobs after cancellation", n-1)
			}
		}
		if after := open(); after != before {
			t.Errorf("sorted %v: %d files are open, before: %d", sorted, after, before)
		}
		equal(t, "a whole walk", sortedCopy(outcomes(t, tr.Walk(t.Context()))), append(slices.Clone(want), "z"))
	}
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("%d temporary files are left", len(left))
	}
}

// A sort that cannot write reports the directory, and the walk continues.
func TestSortFails(t *testing.T) {
	if testing.Short() {
		t.Skip("makes many files")
	}
	root := testsize.MemDir(t)
	for i := range 500 {
		write(t, root, fmt.Sprintf("a/%d-%s", i, strings.Repeat("x", 200)))
	}
	write(t, root, "b")
	tree.SortSoon(t, 100, 1)
	got := walk(t, &tree.Options{Sorted: true, TempDir: filepath.Join(root, "missing")}, tree.Source{Path: root})
	equal(t, "jobs", got, []string{"a/ ErrSort", "b"})
}

// A file or directory that is removed during the walk is left out.
func TestRemovedDuringWalk(t *testing.T) {
	if testing.Short() {
		t.Skip("makes many files")
	}
	for _, sorted := range []bool{false, true} {
		root := testsize.MemDir(t)
		for i := range 50 {
			write(t, root, fmt.Sprintf("f%02d", i), fmt.Sprintf("g%02d/x", i))
		}
		tr := newTree(t, []tree.Source{{Path: root}}, template, &tree.Options{Sorted: sorted})
		var got []string
		for job := range tr.Walk(t.Context()) {
			got = append(got, job.Spec.Object)
			if job.Err != nil {
				t.Error(job.Err)
			}
			if len(got) > 1 {
				continue
			}
			for i := range 50 {
				for _, path := range []string{fmt.Sprintf("f%02d", i), fmt.Sprintf("g%02d", i)} {
					if !strings.HasPrefix(job.Spec.Object, path) {
						os.RemoveAll(filepath.Join(root, path))
					}
				}
			}
		}
		if len(got) != 1 {
			t.Errorf("sorted %v: %q", sorted, got)
		}
	}
}

// If a directory is replaced by a link during the walk, the walk stays inside the
// source.
func TestReplacedDuringWalk(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	write(t, outside, "secret")
	write(t, root, "a", "b/x", "c", "d")
	tr := newTree(t, []tree.Source{{Path: root}}, template, &tree.Options{Sorted: true})
	var got []string
	for job := range tr.Walk(t.Context()) {
		s := job.Spec.Object
		if job.Err != nil {
			s += " error"
		}
		got = append(got, s)
		if s == "a" {
			for _, err := range []error{
				os.RemoveAll(filepath.Join(root, "b")), os.Symlink(outside, filepath.Join(root, "b")),
				os.Remove(filepath.Join(root, "c")), os.Symlink(filepath.Join(outside, "secret"), filepath.Join(root, "c")),
				os.Remove(filepath.Join(root, "d")), os.Mkdir(filepath.Join(root, "d"), 0o755),
			} {
				require.NoError(t, err)
			}
		}
	}
	equal(t, "jobs", got, []string{"a", "b/ error", "c error", "d error"})
}
