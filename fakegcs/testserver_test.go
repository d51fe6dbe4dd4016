package fakegcs_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
)

// recorder is a TB that records its calls.
type recorder struct {
	cleanups []func()
	failed   string
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
}

func TestNewServer(t *testing.T) {
	srv := fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true})
	for _, client := range []*http.Client{srv.Client(), http.DefaultClient} {
		resp, err := client.Post(srv.URL+"/upload/storage/v1/b/demo/o?uploadType=media&name=x", "", strings.NewReader("bytes"))
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if o, ok := srv.Object("demo", "x"); resp.StatusCode != 200 || !ok || o.Size != 5 {
			t.Errorf("%s, object %v %v", resp.Status, ok, o.Size)
		}
	}
}

// The cleanup ends a stalled request and closes the listener.
func TestNewServerCleanup(t *testing.T) {
	r := &recorder{}
	srv := fakegcs.NewServer(r, &fakegcs.Options{Faults: []faults.Fault{{Do: faults.Action{Effect: faults.EffectStall}}}})
	stalled := make(chan error, 1)
	go func() {
		_, err := srv.Client().Get(srv.URL + "/storage/v1/b")
		stalled <- err
	}()
	for srv.FaultReport()[0].Fired == 0 {
		time.Sleep(time.Millisecond)
	}
	if len(r.cleanups) != 1 {
		t.Fatalf("%d cleanups", len(r.cleanups))
	}
	r.cleanups[0]()
	if err := <-stalled; err == nil || r.failed != "" {
		t.Errorf("the stalled request: %v; the test failed with %q", err, r.failed)
	}
	if _, err := http.Get(srv.URL); err == nil {
		t.Error("the server answers after the test")
	}
	if err := srv.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}

func TestNewServerFails(t *testing.T) {
	r, bad := &recorder{}, &fakegcs.Options{Rate: -1}
	fakegcs.NewServer(r, bad)
	if !strings.Contains(r.failed, "negative") || len(r.cleanups) != 0 {
		t.Errorf("failed with %q, %d cleanups", r.failed, len(r.cleanups))
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic without a test")
		}
	}()
	fakegcs.NewServer(nil, bad)
}
