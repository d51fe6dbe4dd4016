package upload_test

import (
	"errors"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/session"
	"gcsup/upload"
)

// mapped maps a file, shared and writable. It stays mapped: a test that unmaps it itself would
// otherwise unmap what another test has at the same addresses by the end of the first one.
func (w *world) mapped(path string) []byte {
	w.t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		w.t.Skipf("mmap: %v", err)
	}
	return m
}

// TestStoreToADirtyPageBetweenRuns checks that a resume detects a store to a page
// that was dirty before the upload began. Such a store changes no time of the file.
// In an earlier version, the object was a mixture of two versions.
func TestStoreToADirtyPageBetweenRuns(t *testing.T) {
	t.Parallel()
	inBubble(t, &fakegcs.Options{NoMD5: true}, func(w *world) {
		path := w.file(data(9 * mib))
		m := w.mapped(path)
		m[100] ^= 1 // this page is dirty now
		w.letPass(path)
		w.interrupt(path, 6*mib)
		m[100]++
		_, err := w.uploader().File(w.t.Context(), path, spec)
		if !errors.Is(err, session.ErrSourceChanged) {
			t.Errorf("error = %v, want ErrSourceChanged", err)
		}
		w.wantNoObject("obj")
		w.wantSaved(1)
	})
}

// TestStoreToADirtyPageWhileSending checks the same for a store during the
// upload.
func TestStoreToADirtyPageWhileSending(t *testing.T) {
	t.Parallel()
	inBubble(t, &fakegcs.Options{NoMD5: true, Latency: 10 * time.Millisecond}, func(w *world) {
		path := w.file(data(9 * mib))
		m := w.mapped(path)
		m[100]++
		w.letPass(path)
		var once bool
		up := w.uploader(func(o *upload.Options) {
			o.ChunkSize = 2 * mib
			o.Observer = func(e upload.Event) {
				if e.Committed >= 4*mib && !once {
					once = true
					m[100]++
				}
			}
		})
		if _, err := up.File(w.t.Context(), path, spec); !errors.Is(err, session.ErrSourceChanged) {
			t.Errorf("error = %v, want ErrSourceChanged", err)
		}
		w.wantNoObject("obj")
	})
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

// TestRemoveSourceAfterStore checks that a source stays if a store to a page that was dirty before changes
// it after it was read. Such a store changes no time of the file.
func TestRemoveSourceAfterStore(t *testing.T) {
	t.Parallel()
	for _, memory := range []bool{false, true} {
		for _, size := range []int64{1000, 9 * mib} {
			inBubble(t, &fakegcs.Options{NoMD5: true}, func(w *world) {
				if memory {
					w.onTmpfs()
				}
				path := w.file(data(size))
				m := w.mapped(path)
				m[100] ^= 1
				w.letPass(path)
				puts := 0
				w.http.Transport = meddler{w.http.Transport, func(req *http.Request) {
					if req.Method == http.MethodPut {
						puts++
					}
					if puts == 2 || size < mib && req.Method == http.MethodPost { // all bytes were read
						m[100] ^= 0x42
						if err := syscall.Munmap(m); err != nil { // the file is no longer open for writing
							w.t.Error(err)
						}
						puts++
					}
				}}
				res, err := w.uploader().With(removing).File(w.t.Context(), path, spec)
				if err == nil {
					err = res.SourceKept // otherwise, the change was detected earlier
				}
				if !errors.Is(err, session.ErrSourceChanged) {
					w.t.Errorf("memory %v, %d bytes: error %v, want that the source changed", memory, size, err)
				}
				wantSource(w.t, path, false, res)
			})
		}
	}
}

// TestStoreToARacyFileWhileSending checks that a change that does not change the
// times of a racy file is detected before the last request. The file here has a time
// in the future.
func TestStoreToARacyFileWhileSending(t *testing.T) {
	t.Parallel()
	inBubble(t, &fakegcs.Options{NoMD5: true, Latency: 10 * time.Millisecond}, func(w *world) {
		w.onTmpfs()
		path := w.file(data(9 * mib))
		m := w.mapped(path)
		m[100]++
		w.setModTime(path, w.realNow().Add(time.Hour))
		var once bool
		up := w.uploader(func(o *upload.Options) {
			o.ChunkSize = 2 * mib
			o.Observer = func(e upload.Event) {
				if e.Committed >= 4*mib && !once {
					once = true
					before := stat(t, path)
					m[100]++
					if stat(t, path) != before {
						t.Error("the times show the store")
					}
				}
			}
		})
		if _, err := up.File(w.t.Context(), path, spec); !errors.Is(err, session.ErrSourceChanged) {
			t.Errorf("error = %v, want ErrSourceChanged", err)
		}
		w.wantNoObject("obj")
	})
}

// TestStoreToAFileOfAWriter checks that a Writer that sends a file in place notices
// a store that changes no time of the file: to a page that was dirty before, and to a
// file that is racy. Both objects were mixtures of two versions.
func TestStoreToAFileOfAWriter(t *testing.T) {
	t.Parallel()
	for _, racy := range []bool{false, true} {
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
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var once bool
			out := w.uploader(func(o *upload.Options) {
				o.ChunkSize = 2 * mib
				o.Observer = func(e upload.Event) {
					if e.Committed >= 4*mib && !once {
						once = true
						m[100]++
					}
				}
			}).NewWriter(w.t.Context(), spec)
			if _, err := out.ReadFrom(f); !errors.Is(err, session.ErrSourceChanged) {
				t.Errorf("racy %v: error = %v, want ErrSourceChanged", racy, err)
			}
			if err := out.Close(); !errors.Is(err, session.ErrSourceChanged) {
				t.Errorf("racy %v: Close: %v", racy, err)
			}
			w.wantNoObject("obj")
		})
	}
}

// TestStoreOnTmpfsBetweenRuns checks that each resume compares the bytes of a
// file on tmpfs.
func TestStoreOnTmpfsBetweenRuns(t *testing.T) {
	skipShort(t)
	t.Parallel()
	for _, edit := range []bool{false, true} {
		inBubble(t, &fakegcs.Options{NoMD5: true}, func(w *world) {
			w.onTmpfs()
			content := data(9 * mib)
			path := w.file(content)
			m := w.mapped(path)
			m[100]++
			content = flipped(content, 100)
			w.letPass(path)
			w.interrupt(path, 6*mib)
			before := stat(t, path)
			if edit {
				m[100]++
			}
			if stat(t, path) != before {
				t.Error("the times show the store")
			}
			_, err := w.uploader().File(w.t.Context(), path, spec)
			if edit {
				if !errors.Is(err, session.ErrSourceChanged) {
					t.Errorf("error = %v, want ErrSourceChanged", err)
				}
				w.wantNoObject("obj")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			w.wantObject("obj", content)
		})
	}
}

func stat(t *testing.T, path string) chunk.Identity {
	t.Helper()
	src, err := chunk.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	id, err := src.Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}
