package upload_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
	"gcsup/session"
	"gcsup/upload"
)

// mapped maps a file, shared and writable. It stays mapped: a test that unmaps it itself would
// otherwise unmap what another test has at the same addresses by the end of the first one.
func (w *world) mapped(path string) []byte {
	w.t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(w.t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(w.t, err)
	m, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		w.t.Skipf("mmap: %v", err)
	}
	return m
}

// onTmpfs makes w create its files on tmpfs, where stores through a mapping never
// change their times.
func (w *world) onTmpfs() {
	w.t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "gcsup")
	if err != nil {
		w.t.Skip(err)
	}
	w.t.Cleanup(func() { os.RemoveAll(dir) })
	w.dir = dir
}

// TestStoreWhileSending checks that File and a Writer that sends a file in place notice a store that changes no time
// of the file, before the last request: to a page that was dirty before the upload, and to a file that is racy,
// here with a time in the future. Objects of earlier versions were mixtures of two versions.
func TestStoreWhileSending(t *testing.T) {
	t.Parallel()
	for _, racy := range []bool{false, true} {
		for _, writer := range []bool{false, true} {
			inBubble(t, &fakegcs.Options{NoMD5: true, Latency: 10 * time.Millisecond}, func(w *world) {
				if racy {
					w.onTmpfs()
				}
				path := w.file(data(9 * mib))
				m := w.mapped(path)
				m[100]++
				if racy {
					w.setModTime(path, w.realNow().Add(time.Hour))
				} else {
					w.letPass(path)
				}
				var once bool
				up := w.uploader(func(o *upload.Options) {
					o.ChunkSize = 2 * mib
					o.Observer = func(e upload.Event) {
						if e.Committed >= 4*mib && !once {
							once = true
							before := stat(t, path)
							m[100]++
							if racy && stat(t, path) != before {
								t.Error("the times show the store")
							}
						}
					}
				})
				var err error
				if writer {
					f, oerr := os.Open(path)
					if oerr != nil {
						t.Fatal(oerr)
					}
					defer f.Close()
					out := up.NewWriter(w.t.Context(), spec)
					_, err = out.ReadFrom(f)
					if err := out.Close(); !errors.Is(err, session.ErrSourceChanged) {
						t.Errorf("racy %v: Close: %v", racy, err)
					}
				} else {
					_, err = up.File(w.t.Context(), path, spec)
				}
				if !errors.Is(err, session.ErrSourceChanged) {
					t.Errorf("racy %v, writer %v: error = %v, want ErrSourceChanged", racy, writer, err)
				}
				w.wantNoObject("obj")
			})
		}
	}
}

// TestStoreBetweenRuns checks that a resume compares the bytes of a file on tmpfs, and those of a file with a page
// that was dirty before the upload began. A store to them changes no time of the file.
// In an earlier version, the object was a mixture of two versions.
func TestStoreBetweenRuns(t *testing.T) {
	skipShort(t)
	t.Parallel()
	for _, tt := range []struct{ memory, store bool }{{false, true}, {true, true}, {true, false}} {
		inBubble(t, &fakegcs.Options{NoMD5: true}, func(w *world) {
			if tt.memory {
				w.onTmpfs()
			}
			path := w.file(data(9 * mib))
			m := w.mapped(path)
			m[100] ^= 1 // this page is dirty now
			w.letPass(path)
			w.interrupt(path, 6*mib)
			before := stat(t, path)
			if tt.store {
				m[100]++
			}
			if tt.memory && stat(t, path) != before {
				t.Error("the times show the store")
			}
			_, err := w.uploader().File(w.t.Context(), path, spec)
			if tt.store {
				if !errors.Is(err, session.ErrSourceChanged) {
					t.Errorf("memory %v: error = %v, want ErrSourceChanged", tt.memory, err)
				}
				w.wantNoObject("obj")
				w.wantSaved(1)
				return
			}
			require.NoError(t, err)
			w.wantObject("obj", flipped(data(9*mib), 100))
		})
	}
}

func stat(t *testing.T, path string) chunk.Identity {
	t.Helper()
	src, err := sourcefile.Open(path)
	require.NoError(t, err)
	defer src.Close()
	id, err := src.Identity()
	require.NoError(t, err)
	return id
}
