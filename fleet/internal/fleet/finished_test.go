package fleet_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

// leased is a transport that calls acquired after the first lease was acquired.
type leased struct {
	base     http.RoundTripper
	acquired func()
}

func (l leased) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.base.RoundTrip(req)
	if req.Method == http.MethodPost && strings.Contains(req.URL.Path, "/b/"+stateBucket+"/") && strings.Contains(req.URL.RawQuery, ".gcsup") {
		l.acquired()
	}
	return resp, err
}

// TestFinishedByAnother lets another worker, which has lost its link to the queue, finish a file and release the
// lease after a second worker has looked at the destination, and before that one has the lease. The file is
// not sent again.
func TestFinishedByAnother(t *testing.T) {
	t.Parallel()
	w, q := submitted(t, nil, map[string]int{"large": 9 << 20})
	hc := *w.gcs.Client()
	hc.Transport = leased{hc.Transport, sync.OnceFunc(func() { put(t, w, "tree/large", content(9<<20, 1)) })}
	received := int64(0)
	w.run(t.Context(), w.workerOf(q, &hc, "second", nil))
	for _, r := range w.gcs.Requests() {
		if r.Object == "tree/large" {
			received += r.Received
		}
	}
	if received > 10<<20 {
		t.Errorf("%d bytes were sent for a file of %d", received, 9<<20)
	}
	w.check()
	if s := w.status(q); s.Done.Files != 1 || s.Skipped != 1 || s.Retried != 0 {
		t.Errorf("status %+v, want one file that existed", s)
	}
	w.wantSaved(0)
}
