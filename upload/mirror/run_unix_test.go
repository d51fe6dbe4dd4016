//go:build unix

package mirror_test

import (
	"os"
	"path/filepath"
	"syscall"

	"gcsup/upload/mirror"
	"gcsup/upload/tree"
)

func init() {
	unixRuns = []runCase{
		{
			name: "links and FIFOs", files: "a", objects: "p/a p/fifo p/ignored p/link p/link/x p/link2", opts: all,
			other: func(w *world) {
				_ = os.Symlink("/etc", filepath.Join(w.dir, "link"))
				_ = syscall.Mkfifo(filepath.Join(w.dir, "fifo"), 0o600)
			},
			want: "delete p/ignored, delete p/link2, keep p/a, protect p/fifo skipped, protect p/link skipped, protect p/link/x skipped, skip p/fifo fifo, skip p/link link_outside",
			left: "p/a p/fifo p/link p/link/x",
		},
		{
			name: "strict", files: "a", objects: "p/a p/link p/x", opts: &mirror.Options{Strict: true, Tree: tree.Options{MaxSize: new(int64(5))}},
			other: func(w *world) { _ = os.Symlink("nothing", filepath.Join(w.dir, "link")) },
			want:  "keep p/a, protect p/link skipped, skip p/link link_dangling", left: "p/a p/link p/x", err: mirror.ErrIncomplete,
		},
		{
			name: "ignored links", files: "a", objects: "p/a p/link p/x", opts: &mirror.Options{Tree: tree.Options{IgnoreSymlinks: true}, DeleteExcluded: true},
			other: func(w *world) { _ = os.Symlink("a", filepath.Join(w.dir, "link")) },
			want:  "delete p/x, keep p/a, protect p/link skipped, skip p/link link", left: "p/a p/link",
		},
		{
			name: "links that are not included", files: "a.txt b.txt d.bak", objects: "p/a.txt p/b.txt p/d.bak p/disk/x.txt p/fifo/x.txt p/link/x.txt p/loop/x.txt p/x.txt",
			opts: &mirror.Options{MaxDelete: mirror.Percent(100), Tree: tree.Options{Include: []string{"*.txt"}, FollowSymlinks: true}},
			other: func(w *world) {
				_ = os.Symlink(filepath.Join(w.dir, "not", "mounted"), filepath.Join(w.dir, "disk"))
				_ = syscall.Mkfifo(filepath.Join(w.dir, "fifo"), 0o600)
				_ = os.Symlink("d.bak", filepath.Join(w.dir, "link"))
				_ = os.Symlink(".", filepath.Join(w.dir, "loop"))
			},
			want: "delete p/fifo/x.txt, delete p/link/x.txt, delete p/x.txt, keep p/a.txt, keep p/b.txt, protect p/d.bak excluded, protect p/disk/x.txt skipped, protect p/loop/x.txt skipped, skip p/disk link, skip p/loop/ link",
			left: "p/a.txt p/b.txt p/d.bak p/disk/x.txt p/loop/x.txt",
		},
		{
			name: "links that are excluded", files: "a.txt", objects: "p/a.txt p/link/x.txt",
			opts:  &mirror.Options{DeleteExcluded: true, Tree: tree.Options{Include: []string{"*.txt"}, Exclude: []string{"link/"}}},
			other: func(w *world) { _ = os.Symlink("/nonexistent", filepath.Join(w.dir, "link")) },
			want:  "delete p/link/x.txt, keep p/a.txt", left: "p/a.txt",
		},
		{
			name: "links that are not included or followed", files: "a.txt b.txt", objects: "p/a.txt p/b.txt p/link/x.txt p/x.txt",
			opts:  &mirror.Options{Tree: tree.Options{Include: []string{"*.txt"}}},
			other: func(w *world) { _ = os.Symlink("/nonexistent", filepath.Join(w.dir, "link")) },
			want:  "delete p/x.txt, keep p/a.txt, keep p/b.txt, protect p/link/x.txt skipped, skip p/link link",
			left:  "p/a.txt p/b.txt p/link/x.txt",
		},
		{
			name: "unreadable name", files: "a b\nc", objects: "p/a p/x", want: "fail p/b\nc, keep p/a", left: "p/a p/x", err: mirror.ErrIncomplete,
		},
	}
}
