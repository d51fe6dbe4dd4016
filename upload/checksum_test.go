package upload_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload"
)

// withoutChecksum removes the CRC32C of objects from replies.
type withoutChecksum struct{ http.RoundTripper }

func (w withoutChecksum) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(req)
	if err != nil || resp.StatusCode != 200 {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	body = regexp.MustCompile(`"crc32c": *"[^"]*",`).ReplaceAll(body, nil)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, err
}

// TestResultHasNoChecksumOfOurs checks that a Result has a CRC32C only if the
// service sent one. It had that of the source.
func TestResultHasNoChecksumOfOurs(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{10, large} {
		inBubble(t, nil, func(w *world) {
			content := data(size)
			w.http.Transport = withoutChecksum{w.http.Transport}
			res, err := w.uploader(largeChunks).File(w.t.Context(), w.file(content), spec)
			if err != nil || res.Object.Size != size || res.Object.HasCRC32C || res.Object.CRC32C != 0 {
				t.Errorf("%d bytes: %+v, %v", size, res.Object, err)
			}
			w.wantObject("obj", content)
		})
	}
}

// TestRunningHash checks that damage is detected at the first reply after it. A file
// is sent again in a new session. A stream cannot be sent again.
func TestRunningHash(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		inBubble(t, &fakegcs.Options{}, func(w *world) {
			content := data(12*q + 1)
			w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Skip: 1, Do: faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}})
			if stream {
				_, err := w.uploader(smallWindow).Reader(w.t.Context(), pieces(content), spec)
				if !errors.Is(err, session.ErrChecksum) || strings.Count(w.trace(), "put ") != 2 {
					t.Errorf("stream: error = %v, want ErrChecksum after the second part\n%s", err, w.trace())
				}
				w.wantNoObject("obj")
				return
			}
			res, err := w.uploader(func(o *upload.Options) { o.ChunkSize = 2 * q }).File(w.t.Context(), w.file(content), spec)
			if err != nil || w.saw(upload.Restarted) != 1 || res.BytesResent != 4*q {
				t.Errorf("%+v, %v, want one new session after the second part\n%s", res, err, w.trace())
			}
			w.wantObject("obj", content)
		})
	}
}

// TestRunningHashAfterRestart checks that a new session remembers no comparison of the one
// before: damage at the same offset is noticed at the first reply after it, too.
func TestRunningHashAfterRestart(t *testing.T) {
	t.Parallel()
	inBubble(t, &fakegcs.Options{}, func(w *world) {
		content := data(12*q + 1)
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Times: 2, Do: faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}})
		res, err := w.uploader(func(o *upload.Options) { o.ChunkSize = 2 * q }).File(w.t.Context(), w.file(content), spec)
		if err != nil || w.saw(upload.Restarted) != 2 || res.BytesResent != 4*q {
			t.Errorf("%+v, %v, want two new sessions, each after the first part\n%s", res, err, w.trace())
		}
		w.wantObject("obj", content)
	})
}

// TestRangeMD5 checks that a short prefix is compared after a failure if the
// server reports only an MD5.
func TestRangeMD5(t *testing.T) {
	t.Parallel()
	inBubbleWithMD5(t, &fakegcs.Options{NoRunningHash: true}, func(w *world) {
		content := data(12*q + 1)
		w.addFaults(
			faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}},
			faults.Fault{Match: faults.Match{Op: faults.OpPut, From: 2 * q}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
		)
		_, err := w.uploader(func(o *upload.Options) { o.ChunkSize = 2 * q }).File(w.t.Context(), w.file(content), spec)
		if err != nil || !strings.Contains(w.trace(), "query */* -> 200 bytes=0-524287\nstart ") {
			t.Errorf("error = %v, want a new session after the query\n%s", err, w.trace())
		}
		w.wantObject("obj", content)
	})
}

// TestDamageAtTheEndStartsOver checks that a checksum which the service refuses at
// the end causes a new session, and does not end the upload.
func TestDamageAtTheEndStartsOver(t *testing.T) {
	skipShort(t)
	t.Parallel()
	for _, op := range []faults.Op{faults.OpPut, faults.OpFinalize} {
		inBubble(t, &fakegcs.Options{NoMD5: true, NoRunningHash: true}, func(w *world) {
			const size = 9 * mib
			content := data(size)
			w.addFaults(faults.Fault{Match: faults.Match{Op: op}, Do: faults.Action{Effect: faults.EffectCorrupt, Bytes: 100}})
			res, err := w.uploader().File(w.t.Context(), w.file(content), spec)
			if err != nil || res.BytesSent != 2*size || w.saw(upload.Restarted) != 1 {
				t.Errorf("%s: %+v, %v\n%s", op, res, err, w.trace())
			}
			w.wantObject("obj", content)
			w.wantSaved(0)
		})
	}
}

// TestRejectedDataKeepsTheToken checks that data which the service refuses, in a
// session that is open, ends the run and keeps the saved upload. If the next run gets
// the same refusal, it starts a new session.
func TestRejectedDataKeepsTheToken(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(9 * mib)
		path := w.file(content)
		w.interrupt(path, 2*mib)
		refuse := faults.Fault{Match: faults.Match{Op: faults.OpPut}, Times: 2, Do: faults.Action{Effect: faults.EffectStatus, Status: 400, Reason: "invalid"}}
		w.addFaults(refuse)
		res, err := w.uploader().File(w.t.Context(), path, spec)
		if !errors.Is(err, session.ErrProtocol) || !res.Resumable {
			t.Errorf("%+v, %v", res, err)
		}
		w.wantSaved(1)
		if res, err = w.uploader().File(w.t.Context(), path, spec); err != nil || w.saw(upload.Restarted) != 1 {
			t.Errorf("the next run: %+v, %v\n%s", res, err, w.trace())
		}
		w.wantObject("obj", content)
		w.wantSaved(0)
	})
}
