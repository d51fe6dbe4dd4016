//go:build unix

package outbox_test

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
	"gcsup/session/state"
	"gcsup/upload"
	"gcsup/upload/outbox"
)

// victim is a file outside the outbox that only its owner may read.
type victim struct {
	w    *world
	dir  string
	path string
}

const secret = "the file of another user"

// newVictim makes a file name in a directory outside the outbox, with the size and the modification time of the file
// that it replaces.
func newVictim(w *world, name string, like string) victim {
	w.t.Helper()
	v := victim{w: w, dir: filepath.Join(filepath.Dir(w.dir), "victim")}
	v.path = filepath.Join(v.dir, name)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(v.path), 0o700))
	require.NoError(w.t, os.WriteFile(v.path, []byte(secret), 0o600))
	if info, err := os.Stat(like); err == nil {
		require.NoError(w.t, os.Chtimes(v.path, time.Time{}, info.ModTime()))
	}
	return v
}

// replace replaces a name in the outbox by a link to target.
func (w *world) replace(name, target string) {
	w.t.Helper()
	if err := errors.Join(os.Rename(w.path(name), w.dir+".away"), os.Symlink(target, w.path(name))); err != nil {
		w.t.Error(err)
	}
}

// check fails if the file was uploaded or removed, or if something was written beside it.
func (v victim) check(object string) {
	v.w.t.Helper()
	if got, err := os.ReadFile(v.path); err != nil || string(got) != secret {
		v.w.t.Errorf("the file outside the outbox has %q, %v", got, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(v.path)); err != nil || len(entries) != 1 {
		v.w.t.Errorf("beside it are %v, %v", entries, err)
	}
	if got, err := v.w.srv.ReadObject("bkt", "in/"+object); err == nil && string(got) == secret {
		v.w.t.Error("the file outside the outbox was uploaded")
	}
}

// TestReplacedByLinkInOutage replaces what waits for its turn by a link, while the service fails. What the link leads to is
// neither uploaded nor removed, and other files are uploaded.
func TestReplacedByLinkInOutage(t *testing.T) {
	for _, replaced := range []string{"backlog", "backlog/sub", "backlog/sub/file"} {
		t.Run(filepath.Base(replaced), func(t *testing.T) {
			inBubble(t, fakegcs.Options{}, func(w *world) {
				require.NoError(w.t, w.srv.AddFaults(faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: http.StatusServiceUnavailable}}))
				w.put("backlog/sub/file", []byte(secret))
				w.put("other", []byte("other"))
				v := newVictim(w, filepath.Join("sub", "file"), w.path("backlog/sub/file"))
				targets := map[string]string{"backlog": v.dir, "backlog/sub": filepath.Dir(v.path), "backlog/sub/file": v.path}
				w.during(outbox.Options{Rescan: time.Hour}, func(box *outbox.Outbox) {
					w.until("failed", func() bool { return box.Status().Waiting == 2 })
					w.write("backlog/sub/file", []byte("another "+secret)) // so that an upload shows
					w.replace(replaced, targets[replaced])
					w.srv.ClearFaults()
					w.until("uploaded", func() bool { return box.Status().Uploaded.Files > 0 })
					time.Sleep(30 * time.Minute) // any attempt at the other one is made
				})
				v.check("backlog/sub/file")
				w.wantObject("other", []byte("other"))
			})
		})
	}
}

// TestReplacedByLinkInTurn replaces what is about to be uploaded by a link, immediately before it is opened, and
// immediately before it is removed.
func TestReplacedByLinkInTurn(t *testing.T) {
	for _, then := range []outbox.Then{outbox.Remove, outbox.Keep, outbox.MoveTo("../done")} {
		for _, replaced := range []string{"sub", "sub/file"} {
			t.Run(then.String()[:4]+" "+filepath.Base(replaced), func(t *testing.T) {
				inBubble(t, fakegcs.Options{}, func(w *world) {
					w.put("sub/file", []byte("the file of the user here"[:len(secret)]))
					v := newVictim(w, "file", w.path("sub/file"))
					target := v.path
					if replaced == "sub" {
						target = v.dir
					}
					swap := sync.OnceFunc(func() { w.replace(replaced, target) })
					opts := outbox.Options{Then: then, Rescan: time.Minute, Spec: func(name string, spec upload.Spec) upload.Spec {
						if name == "sub/file" {
							swap()
						}
						return spec
					}}
					if then == outbox.MoveTo("../done") {
						opts.Then = outbox.MoveTo(w.dir + ".done")
					}
					w.during(opts, func(*outbox.Outbox) { time.Sleep(30 * time.Minute) })
					v.check("sub/file")
				})
			})
		}
	}
}

// TestOwnDirectories checks that a directory of the package is refused if it is a link or belongs to another user, and that
// nothing is written through it.
func TestOwnDirectories(t *testing.T) {
	for _, name := range []string{".outbox", ".failed"} {
		for what, plant := range map[string]func(w *world, v victim) error{
			"link": func(w *world, v victim) error { return os.Symlink(v.dir, w.path(name)) },
			"foreign": func(w *world, _ victim) error {
				return errors.Join(os.Mkdir(w.path(name), 0o700), os.Chown(w.path(name), 65534, 65534))
			},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				if what == "foreign" && os.Geteuid() != 0 {
					t.Skip("only root can make a file of another user")
				}
				inBubble(t, fakegcs.Options{}, func(w *world) {
					v := newVictim(w, "file", "")
					require.NoError(w.t, plant(w, v))
					box, err := outbox.Open(w.dir, w.uploader(), upload.Spec{Bucket: "bkt"}, nil)
					if err == nil {
						_ = box.Close()
					}
					if !errors.Is(err, state.ErrInsecurePermissions) {
						w.t.Errorf("Open = %v", err)
					}
					if what == "foreign" {
						return
					}
					if _, err := outbox.ReadStatus(w.dir); !errors.Is(err, state.ErrInsecurePermissions) {
						w.t.Errorf("ReadStatus = %v", err)
					}
					if _, err := outbox.Retry(w.dir); name == ".failed" && !errors.Is(err, state.ErrInsecurePermissions) {
						w.t.Errorf("Retry = %v", err)
					}
					v.check("file")
				})
			})
		}
	}
}

// TestStatusAfterSwap replaces the directory .outbox by a link while a process runs the outbox, which only a user who
// can rename it can do. Nothing is written through the link: a file is removed through the directory that is still open.
func TestStatusAfterSwap(t *testing.T) {
	inBubble(t, fakegcs.Options{}, func(w *world) {
		v := newVictim(w, "file", "")
		w.during(outbox.Options{}, func(box *outbox.Outbox) {
			w.untilEmpty(box)
			w.replace(".outbox", v.dir)
			w.put("new", []byte("new"))
			time.Sleep(10 * time.Minute)
		})
		v.check("file")
		w.wantObject("new", []byte("new"))
		if _, err := os.Lstat(w.path("new")); !errors.Is(err, fs.ErrNotExist) {
			w.t.Errorf("the uploaded file is left: %v", err)
		}
	})
}

// TestHardLinks checks that a file is not uploaded if another user may have linked it into the outbox.
func TestHardLinks(t *testing.T) {
	for _, mode := range []os.FileMode{0o700, 0o777, 0o777 | os.ModeSticky} {
		t.Run(mode.String(), func(t *testing.T) {
			inBubble(t, fakegcs.Options{}, func(w *world) {
				v := newVictim(w, "file", "")
				require.NoError(w.t, errors.Join(os.Link(v.path, w.path("linked")), os.Chmod(w.dir, mode)))
				w.put("own", []byte("own"))
				box := w.open(outbox.Options{Attempts: 3})
				box.WithoutLinkProtection()
				w.run(box, func() {
					w.until("uploaded", func() bool { return box.Status().Uploaded.Files > 0 })
					time.Sleep(time.Minute)
				})
				if mode != 0o700 {
					v.check("linked")
					if a := w.ended("linked"); len(a) == 0 || !errors.Is(a[0].Err, chunk.ErrNotRegular) {
						w.t.Errorf("attempts: %+v", a)
					}
					return
				}
				w.wantObject("linked", []byte(secret))
			})
		})
	}
}

// TestGivesNamesBack checks that a file that a killed process was removing gets its name back, and is uploaded.
func TestGivesNamesBack(t *testing.T) {
	inBubble(t, fakegcs.Options{}, func(w *world) {
		w.write("sub/"+sourcefile.Aside("a"), []byte("content of a"))
		w.write("sub/"+sourcefile.Aside("b"), []byte("older b"))
		w.write("sub/b", []byte("newer b"))
		w.write(sourcefile.Aside("gcsup-d"), []byte("content of d")) // whose name begins like that of a temporary file
		w.write("c", []byte("content of c"))
		require.NoError(w.t, os.Link(w.path("c"), w.path(sourcefile.Aside("c")))) // it was getting its name back
		w.during(outbox.Options{}, w.untilEmpty)
		w.wantObject("sub/a", []byte("content of a"))
		w.wantObject("sub/b", []byte("newer b"))
		w.wantObject("c", []byte("content of c"))
		w.wantObject("gcsup-d", []byte("content of d"))
		w.wantFiles(".failed/sub/b", ".failed/sub/b.reason.json")
	})
}
