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
			name: "unreadable name", files: "a b\nc", objects: "p/a p/x", want: "fail p/b\nc, keep p/a", left: "p/a p/x", err: mirror.ErrIncomplete,
		},
	}
}
