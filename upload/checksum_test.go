package upload_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"regexp"
	"testing"

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
