package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/internal/require"
)

// answer is a transport that answers all requests with a status and counts them.
type answer struct{ status, requests, closed int }

func (a *answer) RoundTrip(req *http.Request) (*http.Response, error) {
	a.requests++
	return &http.Response{StatusCode: a.status, Status: fmt.Sprint(a.status, " ", http.StatusText(a.status)), Body: io.NopCloser(strings.NewReader("")), Request: req}, nil
}

func (a *answer) CloseIdleConnections() { a.closed++ }

// send makes one request of a task with a claim.
func send(t *testing.T, g *guard, ctx context.Context) error {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://service/x", strings.NewReader("data"))
	require.NoError(t, err)
	resp, err := g.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// TestSuspendedWorker checks that a worker that was suspended until its claim expired makes no more
// requests, even if its heartbeat runs first when it resumes.
func TestSuspendedWorker(t *testing.T) {
	for _, beatFirst := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			service := &answer{status: 200}
			g := &guard{base: service, health: newHealth()}
			ctx, end := context.WithCancelCause(t.Context())
			c := &claim{wait: time.Minute, end: end, beat: time.Now()}
			ctx = withClaim(ctx, c)
			for range 5 {
				time.Sleep(20 * time.Second)
				if !c.renew(time.Now()) {
					t.Fatal("a claim expired in spite of heartbeats")
				}
				require.NoError(t, send(t, g, ctx))
			}
			time.Sleep(time.Minute) // suspended
			if beatFirst && c.renew(time.Now()) {
				t.Error("a heartbeat renewed an expired claim")
			}
			if err := send(t, g, ctx); !errors.Is(err, errClaimLost) {
				t.Errorf("request after the claim: %v, want errClaimLost", err)
			}
			if service.requests != 5 {
				t.Errorf("the service got %d requests, want 5", service.requests)
			}
			if !errors.Is(context.Cause(ctx), errClaimLost) {
				t.Error("the task continues")
			}
		})
	}
}

// TestGuardClosesIdleConnections checks that an upload of a worker can close the idle
// connections, as it must after one of them turned out stale.
func TestGuardClosesIdleConnections(t *testing.T) {
	service := new(answer)
	(&http.Client{Transport: &guard{base: service, health: newHealth()}}).CloseIdleConnections()
	if service.closed != 1 {
		t.Errorf("idle connections closed %d times, want once", service.closed)
	}
}

// TestElapsed checks that elapsed uses the clock that did not stop during a suspension.
func TestElapsed(t *testing.T) {
	then := time.Now()
	later := then.Add(time.Second) // by both clocks
	if got := elapsed(then, later); got != time.Second {
		t.Errorf("elapsed %v, want 1s", got)
	}
	if got := elapsed(then, then.Round(0).Add(time.Hour)); got != time.Hour {
		t.Errorf("elapsed %v by the wall clock, want 1h", got)
	}
	if got := elapsed(then.Round(0).Add(time.Hour), later); got > 0 {
		t.Errorf("elapsed %v, want none: the wall clock was set back", got)
	}
}

// TestProof checks that only an answer to the same kind of request proves that the service answers.
func TestProof(t *testing.T) {
	request := func(method, url, contentRange string) *http.Request {
		req := httptest.NewRequest(method, url, nil)
		req.Header.Set("Content-Range", contentRange)
		return req
	}
	const uploads, objects = "http://service/upload/storage/v1/b/data/o", "http://service/storage/v1/b/data/o"
	insert := request("POST", uploads+"?uploadType=multipart&name=a", "")
	for name, c := range map[string]struct {
		failed, other *http.Request
		proves        bool
	}{
		"another object":    {insert, request("POST", uploads+"?uploadType=multipart&name=b", ""), true},
		"a read":            {insert, request("GET", objects+"/a", ""), false},
		"a list":            {insert, request("GET", objects+"?prefix=a", ""), false},
		"another bucket":    {insert, request("POST", "http://service/upload/storage/v1/b/state/o?uploadType=multipart", ""), false},
		"a session":         {insert, request("POST", uploads+"?uploadType=resumable", ""), false},
		"a status query":    {request("PUT", uploads+"?uploadType=resumable&upload_id=x", "bytes 0-9/10"), request("PUT", uploads+"?uploadType=resumable&upload_id=x", "bytes */*"), false},
		"another read":      {request("GET", objects+"/a", ""), request("GET", objects+"/b?alt=json", ""), true},
		"a list for a read": {request("GET", objects+"/a", ""), request("GET", objects+"?prefix=a", ""), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHealth()
			h.answered(kindOfRequest(c.failed)) // before the delivery
			time.Sleep(time.Second)
			d := &claim{began: time.Now()}
			d.answered.Store(true)
			if !h.proves(d) {
				t.Errorf("%s: nothing failed, and no proof", name)
			}
			d.failed.Store(kindOfRequest(c.failed), true)
			if h.proves(d) {
				t.Errorf("%s: an answer before the delivery is a proof", name)
			}
			h.answered(kindOfRequest(c.other))
			if h.proves(d) != c.proves {
				t.Errorf("%s: proof %v, want %v", name, h.proves(d), c.proves)
			}
		})
	}
}

// TestOutage checks that an outage of writes is logged once, with the bucket, the status and the time, and that the status
// of the worker has it until the service answers such a request.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		h := &health{log: slog.New(slog.NewTextHandler(&log, nil))}
		write := func(status int) {
			req := httptest.NewRequest("POST", "http://service/upload/storage/v1/b/data/o?uploadType=media", nil)
			resp, err := (&guard{base: &answer{status: status}, health: h}).RoundTrip(req)
			require.NoError(t, err)
			_ = resp.Body.Close()
		}
		for range 12 {
			write(503)
			h.answered("read")
			time.Sleep(5 * time.Second)
		}
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "bucket=data") || !strings.Contains(text, "503") || !strings.Contains(text, "for=20s") {
			t.Errorf("log %q, want one line with the bucket, the status and the time", text)
		}
		if all := h.current(time.Now()); len(all) != 1 || all[0].Bucket != "data" || !strings.HasPrefix(all[0].Reason, "503") || time.Since(all[0].Since) != time.Minute {
			t.Errorf("outages %+v", all)
		}
		write(200)
		if all := h.current(time.Now()); len(all) != 0 || !strings.Contains(log.String(), "answers again") {
			t.Errorf("outages after an answer: %+v, log %s", all, &log)
		}
	})
}

func newHealth() *health { return &health{log: slog.New(slog.DiscardHandler)} }
