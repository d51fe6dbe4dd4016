//go:build unix

package tree_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gcsup/internal/require"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// linkTree has each kind of link, and the outcome of each.
func linkTree(t *testing.T) (root string, want []string) {
	t.Helper()
	top := t.TempDir()
	root = filepath.Join(top, "root")
	write(t, top, "outside/secret", "rootlike/x")
	write(t, root, "file", "dir/file", "dir/sub/file", "empty/")
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600))
	want = []string{"dir/file", "dir/sub/file", "fifo fifo", "file"}
	for _, link := range []struct{ name, target, want string }{
		{"to-file", "file", ""},
		{"to-file-below", "dir/sub/file", ""},
		{"dir/to-file-above", "../file", ""},
		{"dir/to-file-beside", "./sub/../file", ""},
		{"through-dir-link", "to-dir/file", ""},
		{"link-to-link", "to-file-below", ""},
		{"dir/link-to-link-above", "../to-file", ""},

		{"to-dir", "dir", "link_to_directory"},
		{"to-here", ".", "link_to_directory"},
		{"dir/to-above", "..", "link_to_directory"},
		{"to-empty", "empty/", "link_to_directory"},
		{"absolute", filepath.Join(top, "outside/secret"), "link_outside"},
		{"absolute-inside", filepath.Join(root, "file"), "link_outside"},
		{"absolute-dir", top, "link_outside"},
		{"link-to-absolute", "absolute", "link_outside"},
		{"out", "../outside/secret", "link_outside"},
		{"out-and-in", "../root/file", "link_outside"},
		{"out-to-sibling", "../rootlike/x", "link_outside"},
		{"dir/out", "../../outside/secret", "link_outside"},
		{"link-to-out", "dir/out", "link_outside"},
		{"through-dir-link-out", "dir/to-above/../outside/secret", "link_outside"},
		{"dangling", "missing", "link_dangling"},
		{"below-file", "file/x", "link_dangling"},
		{"loop", "loop", "link_loop"},
		{"loop-a", "loop-b", "link_loop"},
		{"loop-b", "loop-a", "link_loop"},
		{"to-fifo", "fifo", "fifo"},
	} {
		write(t, root, link.name+" -> "+link.target)
		want = append(want, strings.TrimSuffix(link.name+" "+link.want, " "))
	}
	return root, sortedCopy(want)
}

func TestLinks(t *testing.T) {
	root, want := linkTree(t)
	src := tree.Source{Path: root}
	equal(t, "no order", sortedCopy(walk(t, nil, src)), want)
	equal(t, "sorted", sortedCopy(walk(t, &tree.Options{Sorted: true}, src)), want)
	equal(t, "ignored", walk(t, &tree.Options{Sorted: true, IgnoreSymlinks: true}, src), []string{"dir/file", "dir/sub/file", "fifo fifo", "file"})

	var reported []string
	for _, line := range want {
		path, _, _ := strings.Cut(line, " ")
		if !slices.Contains([]string{"dir/file", "dir/sub/file", "fifo", "file"}, path) {
			line = path + " link"
		}
		reported = append(reported, line)
	}
	equal(t, "reported", sortedCopy(walk(t, &tree.Options{ReportSymlinks: true}, src)), sortedCopy(reported))
	equal(t, "ignored and reported", walk(t, &tree.Options{Sorted: true, IgnoreSymlinks: true, ReportSymlinks: true}, src), []string{"dir/file", "dir/sub/file", "fifo fifo", "file"})

	// The errors contain advice.
	tr := newTree(t, []tree.Source{src}, template, nil)
	for job := range tr.Walk(t.Context()) {
		if job.Err != nil && !strings.HasPrefix(job.Err.Error(), job.Path+": ") {
			t.Errorf("%s: %v", job.Path, job.Err)
		}
	}
}

// A walk that follows links yields the files of all directories to which they lead, in
// the order of the service. A loop is reported.
func TestFollowLinks(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "root")
	write(t, top, "outside/a", "outside/sub/b", "outside/back -> ../root", "outside/again -> .")
	write(t, root, "a", "dir/file", "dir/sub/file",
		"to-file -> dir/file", "to-dir -> dir", "to-dir.x", "to-dir0", "link-to-link -> to-dir", "absolute -> "+filepath.Join(top, "outside/a"), "out -> ../outside",
		"dir/to-here -> .", "dir/sub/to-above -> ../..", "self -> self", "dangling -> missing", "device -> /dev/null")
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600))
	write(t, root, "to-fifo -> fifo")
	below := func(dir string) []string {
		return []string{dir + "/file", dir + "/sub/file", dir + "/sub/to-above/ link_loop", dir + "/to-here/ link_loop"}
	}
	want := []string{
		"a", "absolute", "dangling link_dangling", "device device", "fifo fifo", "self link_loop", "to-dir.x", "to-dir0", "to-file", "to-fifo fifo",
		"out/a", "out/again/ link_loop", "out/back/ link_loop", "out/sub/b",
	}
	for _, dir := range []string{"dir", "to-dir", "link-to-link"} {
		want = append(want, below(dir)...)
	}
	want = sortedCopy(want)
	src := tree.Source{Path: root}
	follow := tree.Options{FollowSymlinks: true, Sorted: true}
	equal(t, "sorted", walk(t, &follow, src), want)
	follow.Sorted = false
	equal(t, "no order", sortedCopy(walk(t, &follow, src)), want)
	t.Chdir(root)
	equal(t, "the current directory", sortedCopy(walk(t, &follow, tree.Sources(".")...)), want)

	var parts []string
	for i := range 3 {
		follow.Shard = tree.Shard{Index: i, Count: 3}
		parts = append(parts, walk(t, &follow, src)...)
	}
	equal(t, "shards", sortedCopy(parts), want)
	follow.Shard = tree.Shard{}

	follow.Exclude, follow.Sorted = []string{"dir/", "to-dir/", "link-to-link/", "out/*/", "*e*"}, true
	equal(t, "excluded as directories", walk(t, &follow, src), []string{"a", "dangling link_dangling", "fifo fifo", "out/a", "to-dir.x", "to-dir0", "to-fifo fifo"})

	// Two sources for one object.
	write(t, top, "x/d/f", "x/l/f", "y/d -> ../x/d", "y/l -> .", "y/f")
	overlap := []tree.Source{{Path: filepath.Join(top, "x")}, {Path: filepath.Join(top, "y")}}
	equal(t, "overlap", walk(t, &tree.Options{FollowSymlinks: true, Sorted: true}, overlap...), []string{"d/f ErrCollision", "d/f ErrCollision", "f", "l/ link_loop", "l/f"})
	equal(t, "overlap without links", walk(t, &tree.Options{Sorted: true}, overlap...), []string{"d link_outside", "d/f", "f", "l link_to_directory", "l/f"})
}

// A source that is a link is followed, because the caller named it.
func TestSourceIsLink(t *testing.T) {
	root := t.TempDir()
	write(t, root, "top/dir/x", "top/file", "dir-link -> top/dir", "file-link -> top/file", "dangling -> missing")
	t.Chdir(root)
	args := tree.Sources("dir-link", "file-link")
	equal(t, "followed", walk(t, nil, args...), []string{"dir-link/x", "file-link"})
	equal(t, "contents", walk(t, nil, tree.Sources("dir-link/.")...), []string{"x"})
	ignore := &tree.Options{IgnoreSymlinks: true}
	equal(t, "ignored", walk(t, ignore, tree.Sources("dir-link", "file-link", "dangling", "top")...), []string{"top/file", "top/dir/x"})
	equal(t, "the directory of a link", walk(t, ignore, tree.Sources("dir-link/", "dir-link/.")...), []string{"dir-link/x", "x"})
	if _, err := tree.New(tree.Sources("dangling"), template, nil); err == nil || sentinel(err) != "ErrNotExist" {
		t.Errorf("a dangling link: %v", err)
	}
}

func TestSpecialFiles(t *testing.T) {
	root := t.TempDir()
	write(t, root, "empty")
	require.NoError(t, os.Truncate(filepath.Join(root, "empty"), 0))
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600))
	t.Chdir(root) // the path of a socket is short
	l, err := net.Listen("unix", "socket")
	require.NoError(t, err)
	defer l.Close()
	equal(t, "walk", walk(t, &tree.Options{Sorted: true}, tree.Source{Path: root}), []string{"empty", "fifo fifo", "socket socket"})
	equal(t, "sources", walk(t, nil, tree.Sources("fifo", "/dev/null", "empty")...), []string{"fifo ErrNotRegular", "null ErrNotRegular", "empty"})
}

// Names that the service refuses are reported, a directory once.
func TestNames(t *testing.T) {
	root := t.TempDir()
	long := strings.Repeat("n", 250)
	deep := long + "/" + long + "/" + long + "/" + long // 1003 bytes
	bad := []string{"\xff", "x\xc3", "cr\r", "lf\nlf", deep + "/" + strings.Repeat("m", 21), deep + "/0/" + strings.Repeat("m", 20)}
	badDirs := []string{"dir\xff/", "line\nbreak/", ".well-known/acme-challenge/", deep + "/" + strings.Repeat("o", 20) + "/", deep + "/" + strings.Repeat("p", 19) + "/"}
	good := []string{"good", deep + "/" + strings.Repeat("m", 20), deep + "/0/" + strings.Repeat("m", 18), ".well-known/acme-challenges", ".well-known/x/.", "...", "\x01", "tab\t", "back\\slash", "*?"}
	good[4] = ".well-known/x/..."
	var want []string
	for _, name := range good {
		write(t, root, name)
		want = append(want, name)
	}
	for _, name := range bad {
		write(t, root, name)
		want = append(want, name+" ErrName")
	}
	for _, name := range badDirs {
		write(t, root, name+"a/b", name+"c")
		want = append(want, name+" ErrName")
	}
	equal(t, "walk", sortedCopy(walk(t, nil, tree.Source{Path: root})), sortedCopy(want))
	equal(t, "walk in order", sortedCopy(walk(t, &tree.Options{Sorted: true}, tree.Source{Path: root})), sortedCopy(want))
	equal(t, "with a prefix", walk(t, nil, tree.Source{Path: filepath.Join(root, ".well-known/acme-challenge"), Name: "p"}), []string{"p/c", "p/a/b"})
	equal(t, "a source with a reserved name", walk(t, nil, tree.Source{Path: filepath.Join(root, ".well-known/acme-challenge"), Name: ".well-known/acme-challenge"}),
		[]string{".well-known/acme-challenge/ ErrName"})
	for _, name := range []string{".", "..", "", "a\nb"} {
		got, err := tree.New([]tree.Source{{Path: filepath.Join(root, "good"), Name: name}}, template, nil)
		if name == "" {
			if sentinel(err) != "ErrUsage" {
				t.Error(err)
			}
			continue
		}
		require.NoError(t, err)
		equal(t, "a source", outcomes(t, got.Walk(t.Context())), []string{name + " ErrName"})
	}
}

// checkName agrees with the check of an upload.
func TestCheckName(t *testing.T) {
	for _, name := range []string{"", "a", ".", "..", "...", "a\r", "a\n", "a\t", "\xff", "é", strings.Repeat("x", 1024), strings.Repeat("x", 1025), strings.Repeat("é", 512),
		".well-known/acme-challenge/", ".well-known/acme-challenge/x", ".well-known/acme-challenge", "a/.well-known/acme-challenge/x", "a//b", "/", "\x00"} {
		ours, theirs := tree.CheckName(name), upload.Spec{Bucket: "my-bucket", Object: name}.Validate()
		if (ours == nil) != (theirs == nil) {
			t.Errorf("%.40q: %v, the upload reports %v", name, ours, theirs)
		}
	}
}
