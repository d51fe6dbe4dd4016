package upload_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/multipart"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// If the bucket does not exist, the call fails at once and reports nothing about parts.
func TestPartsMissingBucket(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string]*upload.Parts{
		"either":    &upload.Parts{Connections: 2, MinPart: multipart.MinPart},
		"multipart": &upload.Parts{Connections: 2, MinPart: multipart.MinPart, Join: upload.ByMultipart},
		"auto":      upload.AutoPartsFrom(0, mib, mib),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, distant(64*mib), func(w *world) {
				_, err := w.uploader(func(o *upload.Options) { o.Parallel = parts }).File(w.t.Context(), w.file(data(multipartLarge)), upload.Spec{Bucket: "missing", Object: "obj"})
				if !errors.Is(err, session.ErrNotFound) || strings.Contains(err.Error(), "refused") {
					t.Errorf("error = %v", err)
				}
				if w.saw(upload.Warning) != 0 || w.saw(upload.Undivided) != 0 || w.saw(upload.Started) != 0 {
					t.Errorf("%q\n%s", w.undivided(), w.trace())
				}
				w.wantSaved(0)
			})
		})
	}
}

// The source changes while its parts are sent, from memory or reread for each request. The upload
// fails without an object, and the next call uploads the changed file.
func TestPartsSourceChanges(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(multipartLarge)
	changes := map[string]func(path string) error{
		"shrinks": func(path string) error { return os.Truncate(path, 7*mib) },
		"grows":   func(path string) error { return os.WriteFile(path, data(multipartLarge+mib), 0o600) },
		"edited": func(path string) error {
			return os.WriteFile(path, flipped(content, 1, multipart.MinPart, multipartLarge-1), 0o600)
		},
	}
	for name, change := range changes {
		for way, with := range map[string]func(*upload.Options){
			"multipart":             byMultipart,
			"multipart, read again": func(o *upload.Options) { byMultipart(o); o.Memory = mib },
			"compose":               func(o *upload.Options) { o.Parallel = composed(2, 4*mib) },
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				inBubble(t, slowly, func(w *world) {
					path := w.file(content)
					var once sync.Once
					_, err := w.uploader(with, func(o *upload.Options) {
						o.Observer = func(e upload.Event) {
							if e.Sent > mib {
								once.Do(func() {
									if err := change(path); err != nil {
										t.Error(err)
									}
									w.letPass(path)
								})
							}
						}
					}).File(w.t.Context(), path, spec)
					if !errors.Is(err, session.ErrSourceChanged) {
						t.Errorf("error = %v\n%s", err, w.trace())
					}
					w.wantNoObject("obj")
					w.done(w.uploader(with, func(o *upload.Options) { o.RestartChanged = true }).File(w.t.Context(), path, spec))
					now, err := os.ReadFile(path)
					require.NoError(t, err)
					w.wantOnlyObject(now)
				})
			})
		}
	}
}

// An upload in parts continues with a copy of its source after Import or TakeOver. The finished
// parts are compared with the copy, and not sent again.
func TestPartsOfACopy(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(multipartLarge)
	for _, imported := range []bool{false, true} {
		for name, test := range map[string]struct {
			copied []byte
			err    error
		}{
			"same":                       {content, nil},
			"other bytes that were sent": {flipped(content, 1, multipart.MinPart), session.ErrSourceChanged},
			"other bytes that were not":  {flipped(content, multipartLarge-1), nil},
		} {
			t.Run(fmt.Sprint(name, imported), func(t *testing.T) {
				t.Parallel()
				inBubble(t, &fakegcs.Options{NoMD5: true, Rate: 5 * mib / 2, Latency: 100 * time.Millisecond}, func(w *world) {
					path, other := w.file(content), filepath.Join(w.dir, "copy")
					id := w.interruptMultipart(path)
					require.NoError(t, os.WriteFile(other, test.copied, 0o600))
					w.letPass(other)
					doc, err := w.store.Load(w.t.Context(), id)
					require.NoError(t, err)
					done := int64(0)
					for i, rng := range doc.Parts.Ranges(multipartLarge) {
						if doc.Parts.List[i].Finished() {
							done += rng.Len()
						}
					}
					up := w.uploader(byMultipart)
					if imported {
						require.NoError(t, w.store.Delete(w.t.Context(), id))
						id, err = up.Import(w.t.Context(), doc, other)
					} else {
						id, err = up.TakeOver(w.t.Context(), id, other)
					}
					require.NoError(t, err)
					res, err := up.Resume(w.t.Context(), id)
					if !errors.Is(err, test.err) {
						t.Fatalf("%v\n%s", err, w.trace())
					}
					if test.err != nil {
						w.wantNoObject("obj")
						w.wantSaved(1)
						return
					}
					if done == 0 || res.BytesSent > multipartLarge-done {
						t.Errorf("sent %d bytes, %d of %d were there", res.BytesSent, done, multipartLarge)
					}
					w.wantObject("obj", test.copied)
					w.wantNothing()
				})
			})
		}
	}
}
