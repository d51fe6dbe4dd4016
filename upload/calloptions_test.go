package upload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload"
)

// TestExpectedSize checks that a source without the expected size is never published,
// in any way to send it.
func TestExpectedSize(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, size := range []int64{0, 1, q, 9 * mib} {
		for _, off := range []int64{-1, 0, 1} {
			want := size + off
			if want < 0 {
				continue
			}
			inBubble(t, nil, func(w *world) {
				up := withCall(w.uploader(), upload.CallOptions{Size: &want})
				errs := map[string]error{}
				for _, zipped := range []bool{false, true} {
					s := spec
					s.Gzip = zipped
					s.Object = fmt.Sprint("file ", zipped)
					_, errs[s.Object] = up.File(w.t.Context(), w.file(data(size)), s)
					s.Object = fmt.Sprint("stream ", zipped)
					_, errs[s.Object] = up.Reader(w.t.Context(), bytes.NewReader(data(size)), s)
					s.Object = fmt.Sprint("bytes ", zipped)
					_, errs[s.Object] = up.ReaderAt(w.t.Context(), bytes.NewReader(data(size)), size, "", s)
				}
				for name, err := range errs {
					var kind error
					switch off {
					case 0:
						if err != nil {
							t.Errorf("%s of %d bytes: %v", name, size, err)
						}
						continue
					case 1:
						kind = upload.ErrTruncated
					default:
						kind = session.ErrInvalid
					}
					if !errors.Is(err, kind) {
						t.Errorf("%s of %d bytes, expected %d: error = %v, want %v", name, size, want, err, kind)
					}
					w.wantNoObject(name)
				}
			})
		}
	}
}

// TestLongStream checks that a stream that is longer than expected is not read
// to its end.
func TestLongStream(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		r := strings.NewReader(strings.Repeat("x", 8<<20))
		up := withCall(w.uploader(), upload.CallOptions{Size: new(int64(10)), Window: int(q)})
		w.fails(session.ErrInvalid)(up.Reader(w.t.Context(), r, spec))
		if r.Len() < 6<<20 {
			t.Errorf("%d bytes are not read", r.Len())
		}
	})
}

// TestConfirm checks that Confirm is called once, when the source has ended, and
// that an upload that is not confirmed publishes nothing.
func TestConfirm(t *testing.T) {
	t.Parallel()
	skipShort(t)
	exit := errors.New("exit status 1")
	for _, size := range []int64{0, 10, 9 * mib} {
		for _, refuse := range []error{nil, exit} {
			inBubble(t, nil, func(w *world) {
				// The last request fails once, and the session is lost.
				w.addFaults(
					faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
					faults.Fault{Match: faults.Match{Op: faults.OpInsert}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
				)
				calls, object := 0, "obj"
				up := withCall(w.uploader(), upload.CallOptions{Confirm: func(context.Context) error {
					calls++
					w.wantNoObject(object)
					return refuse
				}})
				r := bytes.NewReader(data(size))
				_, err := up.Reader(w.t.Context(), r, spec)
				if !errors.Is(err, refuse) || (err == nil) != (refuse == nil) {
					t.Errorf("error = %v, want %v", err, refuse)
				}
				if calls != 1 || r.Len() > 0 {
					t.Errorf("called %d times, %d bytes are not read", calls, r.Len())
				}
				if refuse != nil {
					w.wantNoObject("obj")
				}
				file := spec
				file.Object = "file"
				calls, object = 0, "file"
				if _, err := up.File(w.t.Context(), w.file(data(size)), file); !errors.Is(err, refuse) || calls != 1 {
					t.Errorf("file: error = %v, want %v; called %d times", err, refuse, calls)
				}
			})
		}
	}
}

// TestWith checks that the options of one call do not change another.
func TestWith(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		var seen, audit int
		transport := w.http.Transport
		w.http.Transport = roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("X-Goog-Custom-Audit-Job") == "nightly" {
				audit++
			}
			return transport.RoundTrip(req)
		})
		up := w.uploader()
		own := withCall(up, upload.CallOptions{
			Observer: func(upload.Event) { seen++ },
			Header:   http.Header{"X-Goog-Custom-Audit-Job": {"nightly"}},
			RetryFor: time.Minute,
		})
		conditional := spec
		conditional.IfGenerationMatch = new(int64)
		w.done(own.File(w.t.Context(), w.file(data(9*mib)), conditional))
		if seen == 0 || w.saw(upload.Started) != 0 {
			t.Errorf("%d events for the observer of the call, and others for that of the Uploader", seen)
		}
		if audit != 4 {
			t.Errorf("%d requests had the header, want 4: look, start, send, finalize", audit)
		}
		if _, err := up.File(w.t.Context(), w.file(data(10)), spec); err != nil || audit != 4 {
			t.Errorf("the Uploader has the header of the call: %v", err)
		}
		for _, bad := range []upload.CallOptions{
			{RetryFor: -1}, {RetryFor: time.Minute, Retries: 1}, {Window: 1}, {Skip: 99}, {SourceVersion: "\xff"}, {Size: new(int64(-1))}, {Header: http.Header{"Content-Range": {"bytes */*"}}},
		} {
			if _, err := up.With(bad); !errors.Is(err, session.ErrInvalid) {
				t.Errorf("%+v: error = %v, want ErrInvalid", bad, err)
			}
		}
	})
}
