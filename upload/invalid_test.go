package upload_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// TestHugeChunkSize checks that a chunk size near the greatest integer does not
// overflow. In an earlier version it became 256 KiB.
func TestHugeChunkSize(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStatusAfter, Status: 503, Bytes: mib}})
		res, err := w.uploader(func(o *upload.Options) { o.ChunkSize = math.MaxInt64 }).File(w.t.Context(), w.file(data(9*mib)), spec)
		if err != nil || res.Requests > 6 {
			t.Errorf("%d requests, %v", res.Requests, err)
		}
	})
}

func truncate(path string, size int64) error { return os.Truncate(path, size) }

// TestBadInput checks that bad sources, names and options are refused without
// a request.
func TestBadInput(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		up := w.uploader()
		w.fails(os.ErrNotExist)(up.File(w.t.Context(), filepath.Join(w.dir, "missing"), spec))
		w.fails(chunk.ErrNotRegular)(up.File(w.t.Context(), w.dir, spec))
		for _, s := range []upload.Spec{{}, {Bucket: "bkt"}, {Bucket: "b/kt", Object: "o"}, {Bucket: "bkt", Object: strings.Repeat("x", 1025)}, {Bucket: "bkt", Object: "a\nb"}, {Bucket: "bkt", Object: "a\xffb"}, {Bucket: "bkt", Object: "o", ContentType: "text/plain\r\n\r\nextra"}} {
			if _, err := up.File(w.t.Context(), w.file(data(1)), s); !errors.Is(err, session.ErrInvalid) {
				t.Errorf("%q: %v, want ErrInvalid", s.URL(), err)
			}
		}
		huge := w.file(nil)
		require.NoError(t, truncate(huge, 5<<40+1))
		w.fails(session.ErrInvalid)(up.File(w.t.Context(), huge, spec))
		spooling := w.uploader(func(o *upload.Options) { o.Spool = &upload.Spool{Dir: huge} })
		if _, err := spooling.Reader(w.t.Context(), strings.NewReader("x"), spec); err == nil {
			t.Error("a spool in a file: accepted")
		}
		if n := len(w.srv.Requests()); n != 0 {
			t.Errorf("%d requests were made", n)
		}
		w.fails(session.ErrNotFound)(up.File(w.t.Context(), w.file(data(1)), upload.Spec{Bucket: "nobucket", Object: "o"}))
	})
	store := hook(nil, nil) // is not called
	for name, o := range map[string]upload.Options{
		"endpoint": {Endpoint: "ftp://x"}, "retry for": {RetryFor: -1}, "chunk size": {ChunkSize: -1}, "window": {Window: 5}, "stall rate": {StallRate: -1},
		"policy that waits a minute": {Policy: backoff.Policy{Maximum: time.Minute}}, "zero rate limit": {RateLimit: &upload.RateLimit{}},
		"spool without a store": {Spool: &upload.Spool{Dir: "x"}}, "small spool": {Store: store, Spool: &upload.Spool{Dir: "x", Limit: 1}},
		"spool in no text": {Store: store, Spool: &upload.Spool{Dir: "\xff"}}, "spool in no directory": {Store: store, Spool: &upload.Spool{}},
	} {
		if _, err := upload.New(nil, &o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
