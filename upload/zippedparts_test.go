package upload_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// zippedLarge is the size of a file that streamParts sends compressed in parts of 6, 5, 5, 5 and less than 5 MiB.
const zippedLarge = partedWindow + 3*multipart.MinPart + mib

// wantZipped fails unless the object is the compressed content, and nothing else is left.
func (w *world) wantZipped(content []byte) {
	w.t.Helper()
	w.wantUnzipped("obj", content, true)
	w.wantSaved(0)
	w.wantNoLeftovers()
	w.wantNoUploads()
}

// TestZippedInParts sends compressed files in parts, each byte once, and nothing is left. A file whose compressed bytes
// fit in the first window has the same requests as over one connection.
func TestZippedInParts(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for size, parts := range map[int64]int{q: 0, 2 * mib: 0, 8*mib + 1: 2, 12 * mib: 3, zippedLarge: 5, 30 * mib: 0} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			content := data(size)
			if size == 30*mib { // compressed, it fits in the first window
				content = make([]byte, size)
			}
			var short string
			inBubble(t, nil, func(w *world) {
				if _, err := w.uploader(streamParts, func(o *upload.Options) { o.Parallel = nil }).File(w.t.Context(), w.file(content), zipped); err != nil {
					t.Fatal(err)
				}
				short = w.trace()
			})
			inBubble(t, nil, func(w *world) {
				res, err := w.uploader(streamParts).File(w.t.Context(), w.file(content), zipped)
				if err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				if got := w.trace(); parts == 0 && got != short {
					t.Errorf("requests\n%swant\n%s", got, short)
				}
				want := "get bucket-permissions parts-start" + strings.Repeat(" parts-put", parts) + " parts-list parts-complete get"
				if got := w.operations(); parts > 0 && got != want {
					t.Errorf("requests %s, want %s", got, want)
				}
				o, _ := w.srv.Object("bkt", "obj")
				if res.BytesSent != o.Size || res.Size != size || res.BytesReread != 0 || (res.Parts != nil) != (parts > 0) || w.saw(upload.Warning) != 0 {
					t.Errorf("Result = %+v, %d warnings", res, w.saw(upload.Warning))
				}
				if parts > 0 && (res.Parts == nil || res.Parts.Count != parts || w.saw(upload.PartDone) != parts || res.Object.MD5 != nil) {
					t.Errorf("%+v", res.Parts)
				}
				w.wantZipped(content)
			})
		})
	}
}

// TestZippedAuto checks that Parts.Auto sends a compressed file in parts, and that one that ends within two windows has
// the requests of one connection.
func TestZippedAuto(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for size, long := range map[int64]bool{2*partedWindow - mib: false, 4*partedWindow + mib: true} {
		var requests []string
		for _, with := range []func(*upload.Options){
			func(*upload.Options) {},
			func(o *upload.Options) { o.Parallel = upload.AutoPartsFrom(0, mib, multipart.MinPart) },
		} {
			inBubble(t, distant(8*mib), func(w *world) {
				content := random(size)
				res, err := w.uploader(func(o *upload.Options) { o.Window = int(partedWindow) }, with).File(w.t.Context(), w.file(content), zipped)
				if err != nil || (res.Parts != nil) != (long && len(requests) > 0) {
					t.Errorf("%+v, %v\n%s", res, err, w.trace())
				}
				requests = append(requests, w.operations())
				w.wantZipped(content)
			})
		}
		if !long && requests[0] != requests[1] {
			t.Errorf("requests %q", requests)
		}
	}
}

// TestZippedInPartsRates checks that parts of a compressed file are sent at a time, and stay within the memory.
func TestZippedInPartsRates(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := random(80 * mib)
	took := func(with ...func(*upload.Options)) (took time.Duration) {
		inBubble(t, distant(mib), func(w *world) {
			path := w.file(content)
			began := time.Now()
			if _, err := w.uploader(with...).File(w.t.Context(), path, zipped); err != nil {
				t.Fatal(err)
			}
			took = time.Since(began)
			w.wantZipped(content)
		})
		return took
	}
	one := took()
	eight := took(func(o *upload.Options) { o.Parallel = &upload.Parts{Connections: 8} })
	little := took(func(o *upload.Options) { o.Parallel, o.Memory = &upload.Parts{Connections: 8}, 24*mib })
	if eight*5 > one || little*2 > one || little < one/5 {
		t.Errorf("%v with eight connections, %v with little memory, %v with one connection", eight, little, one)
	}
}

// TestZippedOverOneConnection checks when a compressed file is sent over one connection although the caller asks for
// parts, and that the reason is reported.
func TestZippedOverOneConnection(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(zippedLarge)
	sum := md5.Sum(content)
	for _, test := range []struct {
		name string
		with func(*upload.Options)
		spec func(*upload.Spec)
		op   faults.Op // is refused
		why  string
	}{
		{name: "no store", with: func(o *upload.Options) { o.Store = nil }, why: "it is not saved"},
		{name: "an MD5", spec: func(s *upload.Spec) { s.MD5 = sum[:] }, why: "MD5"},
		{name: "a precondition", spec: func(s *upload.Spec) { s.IfGenerationMatch = new(int64) }, why: "preconditions"},
		{name: "composed", with: func(o *upload.Options) { o.Parallel = o.Parallel.Joined(upload.ByCompose) }, why: "a compressed file is not composed"},
		{name: "a short window", with: func(o *upload.Options) { o.Window = int(2 * mib) }, why: "its memory is too small"},
		{name: "refused", op: faults.OpPartsStart, why: "multipart uploads are refused"},
		{name: "not readable", op: faults.OpGet, why: "cannot be read"},
		{name: "too long", with: func(o *upload.Options) { o.Parallel = o.Parallel.AtMost(2) }, why: "its parts would hold"},
		{name: "requests of a maximum size", with: func(o *upload.Options) {
			o.Parallel, o.ChunkSize = upload.AutoPartsFrom(4, mib, multipart.MinPart), mib
		}, why: "maximum size"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubbleWithMD5(t, &fakegcs.Options{}, func(w *world) {
				if test.op != "" {
					w.addFaults(faults.Fault{Match: faults.Match{Op: test.op}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "forbidden"}})
				}
				var why []string
				with := []func(*upload.Options){streamParts, func(o *upload.Options) {
					o.Observer = func(e upload.Event) {
						if e.Kind == upload.Warning || e.Kind == upload.Undivided {
							why = append(why, e.Cause)
						}
					}
				}}
				if test.with != nil {
					with = append(with, test.with)
				}
				s := zipped
				if test.spec != nil {
					test.spec(&s)
				}
				res, err := w.uploader(with...).File(w.t.Context(), w.file(content), s)
				if s.MD5 != nil { // of the bytes before compression
					if !errors.Is(err, session.ErrChecksum) {
						t.Error(err)
					}
				} else if err != nil || res.Parts != nil {
					t.Fatalf("%v, %+v\n%s", err, res, w.trace())
				} else {
					w.wantZipped(content)
				}
				if len(why) != 1 || !strings.Contains(why[0], test.why) {
					t.Errorf("warnings %q, want one with %q", why, test.why)
				}
				w.wantSaved(0)
				w.wantNoUploads()
			})
		})
	}
}

// TestZippedInPartsSurvives checks that a compressed file in parts is uploaded despite each fault of each of its
// requests.
func TestZippedInPartsSurvives(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(partedLarge)
	body := slices.Concat(dataFaults[:4], []fault{
		{"damaged", faults.Fault{Do: faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}}},
		{"404", faults.Fault{Do: faults.Action{Effect: faults.EffectStatus, Status: 404}}},
	})
	eachFault(t, 3, []point{
		{"look", faults.Match{Op: faults.OpGet}, nil},
		{"start", faults.Match{Op: faults.OpPartsStart}, nil},
		{"part", faults.Match{Op: faults.OpPartsPut}, body},
		{"list", faults.Match{Op: faults.OpPartsList}, nil},
		{"complete", faults.Match{Op: faults.OpPartsComplete}, objectFaults},
	}, func(w *world, at string, do faults.Action) {
		res, err := w.uploader(streamParts).File(w.t.Context(), w.file(content), zipped)
		if err != nil || res.Parts == nil {
			w.t.Fatalf("%v\n%s", err, w.trace())
		}
		w.wantFaults()
		w.wantUnzipped("obj", content, true)
		w.wantSaved(0)
		if at != "start" { // a reply that is lost has the only ID
			w.wantNoUploads()
		}
	})
}

// TestZippedInPartsKilled kills a process before and after each request. Another process completes the upload with
// another memory, and sends no part again that the service has.
func TestZippedInPartsKilled(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(zippedLarge)
	for n := int64(3); n <= 11; n++ { // the first requests are about the object and the bucket
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(n, after), func(t *testing.T) {
				t.Parallel()
				inBubbleWithMD5(t, &fakegcs.Options{Rate: 8 * mib}, func(w *world) {
					path, plain := w.file(content), w.http
					if err := os.MkdirAll(w.spoolDir(), 0o700); err != nil { // of the snapshot
						t.Fatal(err)
					}
					reached, die := w.kill(n, after)
					ctx, cancel := context.WithCancel(w.t.Context())
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						_, _ = w.uploader(streamParts).File(ctx, path, zipped)
					}()
					<-reached
					time.Sleep(time.Second) // the other parts are sent
					next := w.snapshot()
					next.http = plain
					die()
					cancel()
					<-ended
					stored := next.storedParts()
					memory := []int64{0, 24 * mib, 64 * mib}[n%3]
					res, err := next.uploader(streamParts, func(o *upload.Options) { o.Memory, o.Window = memory, int((5+n)*mib) }).File(w.t.Context(), path, zipped)
					if err != nil {
						t.Fatalf("%v\n%s", err, w.trace())
					}
					if stored > 0 && (!res.Resumed || res.Parts == nil) || res.BytesSent+stored != res.Object.Size && res.BytesSent > 0 {
						t.Errorf("%d bytes were stored: %+v\n%s", stored, res, w.trace())
					}
					next.wantUnzipped("obj", content, true)
					next.wantSaved(0)
					if n > 3 { // the saved upload names the multipart upload
						next.wantNoUploads()
					}
				})
			})
		}
	}
}

// TestZippedInPartsMade checks that a resume finds the object that the earlier process made, even if this version of the
// program compresses the file to other bytes.
func TestZippedInPartsMade(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, level := range []int{0, 1} {
		lost := faults.Fault{Match: faults.Match{Op: faults.OpPartsComplete}, Do: faults.Action{Effect: faults.EffectLoseReply}}
		stall := faults.Fault{Match: faults.Match{Op: faults.OpGet}, Skip: 1, Do: faults.Action{Effect: faults.EffectStall}}
		inBubble(t, &fakegcs.Options{Faults: []faults.Fault{lost, stall}}, func(w *world) {
			content := data(zippedLarge)
			path := w.file(content)
			w.timeOut(path, zipped, streamParts)
			w.wantSaved(1)
			before, _ := w.srv.Object("bkt", "obj")
			up := w.uploader(streamParts)
			upload.SetGzipLevel(up, level)
			res, err := up.File(w.t.Context(), path, zipped)
			if err != nil || !res.Resumed || res.BytesSent != 0 || res.BytesReread != 0 || res.Object.Generation != before.Generation {
				t.Errorf("%+v, %v\n%s", res, err, w.trace())
			}
			w.wantZipped(content)
		})
	}
}

// TestZippedInPartsOfAReader sends compressed bytes that are in no file. If they have no name, or are read slowly, they
// are sent over one connection.
func TestZippedInPartsOfAReader(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(zippedLarge)
	for _, test := range []struct {
		name  string
		pause time.Duration
		why   string
	}{
		{name: "row 17"},
		{name: "", why: "it is not saved"},
		{name: "row 18", pause: 11 * time.Second, why: "its first bytes took more than 10s"},
	} {
		inBubble(t, slowly, func(w *world) {
			var why []string
			up := w.uploader(streamParts, func(o *upload.Options) {
				o.Observer = func(e upload.Event) {
					if e.Kind == upload.Warning {
						why = append(why, e.Cause)
					}
				}
			})
			send := func(ctx context.Context) (*upload.Result, error) {
				return up.ReaderAt(ctx, &slowReaderAt{ReaderAt: bytes.NewReader(content), pause: test.pause}, zippedLarge, test.name, zipped)
			}
			resumed := int64(0)
			if test.why == "" {
				ctx, stop := context.WithTimeout(w.t.Context(), 3*time.Second)
				defer stop()
				if res, err := send(ctx); !res.Resumable {
					t.Fatalf("%+v, %v", res, err)
				}
				resumed = w.storedParts()
			}
			res, err := send(w.t.Context())
			if err != nil || (res.Parts != nil) != (test.why == "") || res.ResumedFrom != resumed || (resumed > 0) != (test.why == "") {
				t.Errorf("%q: %+v, %v\n%s", test.name, res, err, w.trace())
			}
			if test.why != "" && (len(why) != 1 || !strings.Contains(why[0], test.why)) {
				t.Errorf("%q: warnings %q", test.name, why)
			}
			w.wantZipped(content)
		})
	}
}

// slowReaderAt pauses before its first bytes are read.
type slowReaderAt struct {
	io.ReaderAt
	pause time.Duration
}

func (r *slowReaderAt) ReadAt(p []byte, at int64) (int, error) {
	if at == 0 && len(p) > 4096 { // not for the type of the content
		time.Sleep(r.pause)
	}
	return r.ReaderAt.ReadAt(p, at)
}

// TestZippedInPartsReplaced checks that a part which another client replaced is compressed and sent again.
func TestZippedInPartsReplaced(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content, plain := data(zippedLarge), w.http.Transport
		var once sync.Once
		w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodGet && req.URL.Query().Has("uploadId") {
				once.Do(func() {
					other, err := http.NewRequest(http.MethodPut, req.URL.String()+"&partNumber=2", strings.NewReader("other"))
					if err != nil {
						t.Error(err)
						return
					}
					other.Header = req.Header.Clone()
					if resp, err := plain.RoundTrip(other); err != nil || resp.StatusCode != http.StatusOK {
						t.Errorf("%v, %v", resp, err)
					}
				})
			}
			return plain.RoundTrip(req)
		})}
		res, err := w.uploader(streamParts).File(w.t.Context(), w.file(content), zipped)
		if err != nil || res.Parts.Count != 5 || res.BytesSent != res.Object.Size+multipart.MinPart || strings.Count(w.operations(), "parts-put") != 7 {
			t.Errorf("%+v, %v\n%s", res, err, w.trace())
		}
		w.wantZipped(content)
	})
}

// TestZippedInPartsFreesMemory checks that uploads that fail give their memory back, also that of parts which wait for
// their turn, or whose sizes cannot be saved: another one of the Uploader has the same parts as before. It would have one
// connection if half of the memory was lost.
func TestZippedInPartsFreesMemory(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(zippedLarge)
	for _, test := range []struct {
		name string
		with func(*upload.Options)
		full bool // no part can be saved
	}{
		{name: "sent"},
		{name: "waiting", with: func(o *upload.Options) { o.AtRisk = upload.ScaledAtRisk(partedWindow, partedWindow, q) }},
		{name: "not saved", full: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, distant(mib), func(w *world) {
				path := w.file(content)
				var saves atomic.Int64
				with := []func(*upload.Options){streamParts, func(o *upload.Options) {
					o.Memory = 32 * mib
					o.Store = hook(w.store, func(context.Context) error {
						if saves.Add(1) > 1 && test.full {
							return errFull
						}
						return nil
					}, "Save")
				}}
				if test.with != nil {
					with = append(with, test.with)
				}
				up := w.uploader(with...)
				for range 6 {
					saves.Store(0)
					ctx, stop := context.WithTimeout(w.t.Context(), 3*time.Second)
					res, err := up.File(ctx, path, zipped)
					stop()
					if errors.Is(err, errFull) != test.full || !res.Resumable {
						t.Fatalf("%+v, %v\n%s", res, err, w.trace())
					}
					saves.Store(-1e6)
					if err := up.Cancel(w.t.Context(), res.ID); err != nil {
						t.Fatal(err)
					}
				}
				if res, err := up.File(w.t.Context(), path, zipped); err != nil || res.Parts == nil || res.Parts.Count != 5 {
					t.Errorf("%+v, %v\n%s", res, err, w.trace())
				}
				w.wantZipped(content)
			})
		})
	}
}

// storedParts returns how many bytes the multipart uploads to obj have.
func (w *world) storedParts() (n int64) {
	w.t.Helper()
	for _, id := range w.uploadIDs() {
		var list struct {
			Part []struct{ Size int64 }
		}
		w.getXML("/bkt/obj?uploadId="+id, &list)
		for _, part := range list.Part {
			n += part.Size
		}
	}
	return n
}

// interruptZippedParts interrupts a compressed file in parts when the service has two of them.
func (w *world) interruptZippedParts(path string) *upload.Result {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	done := 0
	res, err := w.uploader(streamParts, func(o *upload.Options) {
		o.Parallel = &upload.Parts{Connections: 2, MinPart: multipart.MinPart}
		o.Observer = func(e upload.Event) {
			if e.Kind == upload.PartDone {
				if done++; done == 2 {
					stop()
				}
			}
		}
	}).File(ctx, path, zipped)
	if !errors.Is(err, context.Canceled) || !res.Resumable {
		w.t.Fatalf("%+v, %v", res, err)
	}
	w.wantSaved(1)
	return res
}

// TestZippedInPartsResume checks what a resume compares and sends.
func TestZippedInPartsResume(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(zippedLarge)
	for _, test := range []struct {
		name      string
		change    func(w *world, path string, content []byte) []byte // returns the content that the object must have
		level     int
		with      func(*upload.Options)
		err       error
		discarded string // the cause of the event, if the upload starts over
	}{
		{name: "the same file"},
		{name: "touched", change: func(w *world, path string, content []byte) []byte {
			if err := os.Chmod(path, 0o400); err != nil {
				w.t.Fatal(err)
			}
			return content
		}},
		{name: "another compressor", level: 1, discarded: "this version of the program compresses the first 6291456 bytes differently"},
		{name: "edited quietly", change: func(w *world, path string, content []byte) []byte {
			if err := editQuietly(path, mib); err != nil {
				w.t.Fatal(err)
			}
			return flipped(content, mib)
		}, err: session.ErrSourceChanged},
		{name: "edited, and restarted", change: func(w *world, path string, content []byte) []byte {
			if err := editQuietly(path, mib); err != nil {
				w.t.Fatal(err)
			}
			return flipped(content, mib)
		}, with: func(o *upload.Options) { o.RestartChanged = true }, discarded: "have changed"},
		{name: "restarted", with: func(o *upload.Options) { o.Restart = true }, discarded: "discarded, as requested"},
		{name: "a lost upload", change: func(w *world, path string, content []byte) []byte {
			w.abortAll()
			return content
		}},
		{name: "without parts", with: func(o *upload.Options) { o.Parallel = nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubbleWithMD5(t, slowly, func(w *world) {
				path, want := w.file(content), content
				first := w.interruptZippedParts(path)
				stored := w.storedParts()
				if h, err := w.uploader().Query(w.t.Context(), first.ID); err != nil || h.State != upload.SessionOpen || h.Stored != stored {
					t.Errorf("Query: %+v, %v, want %d", h, err, stored)
				}
				if test.change != nil {
					want = test.change(w, path, content)
				}
				var causes []string
				with := []func(*upload.Options){streamParts, func(o *upload.Options) {
					o.Observer = func(e upload.Event) {
						if e.Kind == upload.Discarded {
							causes = append(causes, e.Cause)
						}
					}
				}}
				if test.with != nil {
					with = append(with, test.with)
				}
				up := w.uploader(with...)
				upload.SetGzipLevel(up, test.level)
				res, err := up.File(w.t.Context(), path, zipped)
				if test.err != nil {
					if !errors.Is(err, test.err) || !res.Resumable {
						t.Errorf("%+v, %v", res, err)
					}
					if err := up.Cancel(w.t.Context(), first.ID); err != nil {
						t.Error(err)
					}
					w.wantNoObject("obj")
					w.wantSaved(0)
					w.wantNoUploads()
					return
				}
				if err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				if again := test.discarded != ""; len(causes) != 0 != again || again && !strings.Contains(causes[0], test.discarded) || res.Resumed == again || res.Parts == nil {
					t.Errorf("%+v, discarded %q\n%s", res, causes, w.trace())
				}
				if test.discarded == "" && test.name != "a lost upload" && (res.BytesSent+stored != res.Object.Size || res.BytesReread == 0 || res.ResumedFrom != stored) {
					t.Errorf("%d bytes were stored: %+v", stored, res)
				}
				w.wantZipped(want)
			})
		})
	}
}

// TestZippedInPartsFails checks that an upload that cannot succeed leaves nothing, and that another one is kept.
func TestZippedInPartsFails(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content, broken := data(zippedLarge), errors.New("broken")
	refuse := func(op faults.Op, status int) faults.Fault {
		return faults.Fault{Match: faults.Match{Op: op}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: status}}
	}
	for _, test := range []struct {
		name  string
		call  upload.CallOptions
		crc   *uint32
		fault faults.Fault
		err   error
		kept  bool
	}{
		{name: "the checksum", crc: new(uint32(1)), err: session.ErrChecksum},
		{name: "the confirmation", call: upload.CallOptions{Confirm: func(context.Context) error { return broken }}, err: broken, kept: true},
		{name: "a part", fault: refuse(faults.OpPartsPut, 403), err: session.ErrPermission, kept: true},
		{name: "an outage", fault: refuse(faults.OpPartsPut, 503), err: session.ErrRetriesExhausted, kept: true},
		{name: "the completion", fault: refuse(faults.OpPartsComplete, 403), err: session.ErrPermission, kept: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubbleWithMD5(t, &fakegcs.Options{}, func(w *world) {
				if test.fault.Times != 0 {
					w.addFaults(test.fault)
				}
				s := zipped
				s.CRC32C = test.crc
				path := w.file(content)
				res, err := withCall(w.uploader(streamParts), test.call).File(w.t.Context(), path, s)
				if !errors.Is(err, test.err) || res.Object != nil || res.Leftover != nil || res.Resumable != test.kept {
					t.Errorf("%v, %+v\n%s", err, res, w.trace())
				}
				w.wantNoObject("obj")
				if test.kept {
					w.srv.ClearFaults()
					if res, err := w.uploader(streamParts).Resume(w.t.Context(), res.ID); err != nil || !res.Resumed {
						t.Errorf("Resume: %+v, %v\n%s", res, err, w.trace())
					}
					w.wantZipped(content)
				}
				w.wantSaved(0)
				w.wantNoUploads()
			})
		})
	}
}

// TestZippedInPartsSaves checks that every part is saved with its size before it is sent.
func TestZippedInPartsSaves(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(zippedLarge)
		sizes := map[int]int64{}
		store := &seen{w.store, func(doc *state.Upload) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for i, part := range doc.Parts.List {
				sizes[i+1] = part.Size
			}
		}}
		plain := w.http.Transport
		w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			if number, err := strconv.Atoi(req.URL.Query().Get("partNumber")); err == nil {
				w.mu.Lock()
				defer w.mu.Unlock()
				if sizes[number] != req.ContentLength {
					t.Errorf("part %d of %d bytes is sent, and saved with %d", number, req.ContentLength, sizes[number])
				}
			}
			return plain.RoundTrip(req)
		})}
		if _, err := w.uploader(streamParts, func(o *upload.Options) { o.Store, o.Observer = store, nil }).File(w.t.Context(), w.file(content), zipped); err != nil {
			t.Fatal(err)
		}
		if len(sizes) != 5 {
			t.Errorf("parts %v", sizes)
		}
		w.wantZipped(content)
	})
}

// seen is a store that shows what it has saved.
type seen struct {
	state.Store
	saved func(*state.Upload)
}

func (s *seen) Save(ctx context.Context, doc *state.Upload) error {
	err := s.Store.Save(ctx, doc)
	if err == nil {
		s.saved(doc)
	}
	return err
}

// TestZippedPartsAreThoseOfOneRequest checks that the object does not depend on the way.
func TestZippedPartsAreThoseOfOneRequest(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(zippedLarge)
		path := w.file(content)
		var objects [][]byte
		for _, with := range []func(*upload.Options){streamParts, func(*upload.Options) {}} {
			if _, err := w.uploader(with).File(w.t.Context(), path, zipped); err != nil {
				t.Fatal(err)
			}
			got, err := w.srv.ReadObject("bkt", "obj")
			if err != nil {
				t.Fatal(err)
			}
			objects = append(objects, got)
		}
		if !bytes.Equal(objects[0], objects[1]) {
			t.Error("parts make another object")
		}
	})
}
