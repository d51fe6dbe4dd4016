package upload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/upload"
)

// If the bucket does not exist, the call fails at once and reports nothing about parts.
func TestPartsMissingBucket(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string]*upload.Parts{
		"either":    upload.InParts(2, session.MultipartMinPart),
		"multipart": upload.InParts(2, session.MultipartMinPart).By(upload.ByMultipart),
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

// A request at the beginning and one at the end fail. The time to send the parts in between is
// longer than an upload retries without progress, and does not count as such.
func TestPartsProgressRestoresTheBudget(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, test := range []struct {
		with        func(*upload.Options)
		first, last faults.Op
		size        int64
	}{
		{byMultipart, faults.OpPartsStart, faults.OpPartsComplete, multipartLarge},
		{byParts, faults.OpGet, faults.OpCompose, partsLarge},
	} {
		t.Run(string(test.last), func(t *testing.T) {
			t.Parallel()
			inBubble(t, &fakegcs.Options{NoMD5: true, Rate: test.size / 120}, func(w *world) {
				failed := faults.Action{Effect: faults.EffectStatus, Status: 503}
				w.addFaults(faults.Fault{Match: faults.Match{Op: test.first}, Do: failed}, faults.Fault{Match: faults.Match{Op: test.last}, Do: failed})
				content := data(test.size)
				if _, err := w.uploader(test.with, func(o *upload.Options) { o.RetryFor = 20 * time.Second }).File(w.t.Context(), w.file(content), spec); err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				w.wantObject("obj", content)
			})
		})
	}
}

// One list of the parts is wrong. The upload requests a second one before it sends a
// part again or fails.
func TestMultipartWrongList(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(multipartLarge)
	for name, parts := range map[string]string{
		"no parts":      "",
		"truncated":     "<IsTruncated>true</IsTruncated>",
		"other parts":   `<Part><PartNumber>1</PartNumber><ETag>"x"</ETag><Size>5242880</Size></Part>`,
		"too many":      `<Part><PartNumber>9</PartNumber><ETag>"x"</ETag><Size>5</Size></Part>`,
		"another title": "</ListPartsResult><ListPartsResult>",
	} {
		for _, skip := range []int{0, 1} { // that of the resume, and that before the completion
			t.Run(fmt.Sprint(name, skip), func(t *testing.T) {
				t.Parallel()
				inBubble(t, slowly, func(w *world) {
					path := w.file(content)
					w.interruptMultipart(path)
					w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsList}, Skip: skip, Do: faults.Action{
						Effect: faults.EffectStatus, Status: 200, ContentType: "application/xml", Body: "<ListPartsResult>" + parts + "</ListPartsResult>",
					}})
					res, err := w.uploader(byMultipart).File(w.t.Context(), path, spec)
					if err != nil {
						t.Fatalf("%v\n%s", err, w.trace())
					}
					if !res.Resumed || res.ResumedFrom == 0 || res.ResumedFrom+res.BytesSent != multipartLarge {
						t.Errorf("resumed from %d, sent %d of %d\n%s", res.ResumedFrom, res.BytesSent, multipartLarge, w.trace())
					}
					w.wantOnlyObject(content)
				})
			})
		}
	}
}

// The service works on a completion for so long that the next call begins before the object exists.
// That call finds the multipart upload gone, and recognizes the object.
func TestMultipartCompletedMeanwhile(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(multipartLarge)
	for position := range 3 { // the list request at which the completion takes effect
		t.Run(fmt.Sprint(position), func(t *testing.T) {
			t.Parallel()
			inBubble(t, &fakegcs.Options{NoMD5: true}, func(w *world) {
				path, plain := w.file(content), w.http.Transport
				ctx, stop := context.WithCancel(w.t.Context())
				defer stop()
				var complete *http.Request
				var body []byte
				lists := 0
				w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
					switch of := req.URL.Query().Has("uploadId"); {
					case of && req.Method == "POST" && complete == nil:
						complete = req
						body, _ = io.ReadAll(req.Body)
						stop()
						return nil, context.Canceled
					case of && req.Method == "GET" && complete != nil:
						if lists++; lists == position+1 {
							late := complete.Clone(context.Background())
							late.Body = io.NopCloser(bytes.NewReader(body))
							resp, err := plain.RoundTrip(late)
							if err != nil {
								return nil, err
							}
							_ = resp.Body.Close()
						}
					}
					return plain.RoundTrip(req)
				})}
				if _, err := w.uploader(byMultipart).File(ctx, path, spec); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				res, err := w.uploader(byMultipart).File(w.t.Context(), path, spec)
				if err != nil || res.BytesSent != 0 || w.saw(upload.Restarted) != 0 {
					t.Errorf("sent %d bytes, %v\n%s", res.BytesSent, err, w.trace())
				}
				w.wantOnlyObject(content)
			})
		})
	}
}

// The rates are those at which the service received the bytes, and not those of the
// buffers on the way, which take 2 MiB of each request at once.
func TestPartsRates(t *testing.T) {
	t.Parallel()
	skipShort(t)
	const each = 4 * mib
	content := random(96 * mib)
	for name, parts := range map[string]*upload.Parts{"auto": upload.AutoPartsFrom(0, mib, mib), "fixed": upload.InParts(8, 0)} {
		if name != "auto" && testsize.Full(0, 1) == 1 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, distant(each), func(w *world) {
				plain := w.http.Transport
				w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
					if req.Method == "PUT" {
						full := make([]byte, 2*mib)
						n, _ := io.ReadFull(req.Body, full)
						req.Body = struct {
							io.Reader
							io.Closer
						}{io.MultiReader(bytes.NewReader(full[:n]), req.Body), req.Body}
					}
					return plain.RoundTrip(req)
				})}
				res, err := w.uploader(func(o *upload.Options) { o.Parallel = parts }).File(w.t.Context(), w.file(content), spec)
				if err != nil {
					t.Fatal(err)
				}
				p := res.Parts
				if p.Connections < 4 || p.RateOfOne > each || p.RateOfOne < each*7/10 || p.Rate > int64(p.Connections)*each || p.Rate < int64(p.Connections)*each*7/10 {
					t.Errorf("%+v", p)
				}
			})
		})
	}
}

// A bucket that does not exist is the reason for one connection until it is created, because the
// facts of a missing bucket are not kept.
func TestPartsBucketCreatedLater(t *testing.T) {
	t.Parallel()
	inBubble(t, distant(64*mib), func(w *world) {
		to := upload.Spec{Bucket: "missing", Object: "obj"}
		up := w.uploader(func(o *upload.Options) { o.Parallel = upload.AutoPartsFrom(0, mib, mib).By(upload.ByCompose) })
		path := w.file(data(multipartLarge))
		if res, err := up.File(w.t.Context(), path, spec); err != nil || res.Parts == nil { // one connection is slow
			t.Fatalf("%+v, %v", res.Parts, err)
		}
		if _, err := up.File(w.t.Context(), path, to); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("error = %v", err)
		}
		if why := w.undivided(); len(why) != 1 || why[0] != "the bucket is not found" {
			t.Errorf("%q", why)
		}
		if err := w.srv.CreateBucket(fakegcs.Bucket{Name: "missing"}); err != nil {
			t.Fatal(err)
		}
		if res, err := up.File(w.t.Context(), path, to); err != nil || res.Parts == nil {
			t.Errorf("%+v, %v", res.Parts, err)
		}
	})
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
			return os.WriteFile(path, flipped(content, 1, session.MultipartMinPart, multipartLarge-1), 0o600)
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
					if _, err := w.uploader(with, func(o *upload.Options) { o.RestartChanged = true }).File(w.t.Context(), path, spec); err != nil {
						t.Fatalf("%v\n%s", err, w.trace())
					}
					now, err := os.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
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
			"other bytes that were sent": {flipped(content, 1, session.MultipartMinPart), session.ErrSourceChanged},
			"other bytes that were not":  {flipped(content, multipartLarge-1), nil},
		} {
			t.Run(fmt.Sprint(name, imported), func(t *testing.T) {
				t.Parallel()
				inBubble(t, &fakegcs.Options{NoMD5: true, Rate: 5 * mib / 2, Latency: 100 * time.Millisecond}, func(w *world) {
					path, other := w.file(content), filepath.Join(w.dir, "copy")
					id := w.interruptMultipart(path)
					if err := os.WriteFile(other, test.copied, 0o600); err != nil {
						t.Fatal(err)
					}
					w.letPass(other)
					token, err := w.store.Load(w.t.Context(), id)
					if err != nil {
						t.Fatal(err)
					}
					done := int64(0)
					for i, part := range token.Parts.List {
						if part.Finished() {
							done += token.Parts.Range(i, multipartLarge).Len()
						}
					}
					up := w.uploader(byMultipart)
					if imported {
						if err := w.store.Delete(w.t.Context(), id); err != nil {
							t.Fatal(err)
						}
						id, err = up.Import(w.t.Context(), token, other)
					} else {
						id, err = up.TakeOver(w.t.Context(), id, other)
					}
					if err != nil {
						t.Fatal(err)
					}
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
					w.wantSaved(0)
					w.wantNoUploads()
				})
			})
		}
	}
}
