package metrics_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/metrics"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

const mib = 1 << 20

// served is a server of metrics.
type served struct {
	*metrics.Metrics
	t   *testing.T
	url string
}

// serve serves metrics on a free port until the test ends.
func serve(t *testing.T, o metrics.Options) *served {
	t.Helper()
	m := metrics.New(o)
	s, err := metrics.Serve("127.0.0.1:0", m)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return &served{Metrics: m, t: t, url: "http://" + s.Addr()}
}

// get returns the body of a page, whose status must be this one.
func (s *served) get(path string, status int) string {
	s.t.Helper()
	resp, err := http.Get(s.url + path)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		s.t.Fatalf("GET %s: %s, %v, want %d:\n%s", path, resp.Status, err, status, body)
	}
	return string(body)
}

// scrape returns the values of all series of gcsup that are not 0.
func (s *served) scrape() map[string]float64 {
	s.t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(s.get("/metrics", http.StatusOK)))
	require.NoError(s.t, err)
	all := map[string]float64{}
	for name, family := range families {
		if !strings.HasPrefix(name, "gcsup_") {
			continue
		}
		for _, m := range family.Metric {
			series := name
			for _, l := range m.Label {
				series += fmt.Sprintf("{%s=%s}", l.GetName(), l.GetValue())
			}
			if v := m.GetCounter().GetValue() + m.GetGauge().GetValue(); v != 0 {
				all[series] = v
			}
		}
	}
	return all
}

// want checks that exactly these series are not 0.
func (s *served) want(when string, want map[string]float64) {
	s.t.Helper()
	have := s.scrape()
	for name, value := range want {
		if have[name] != value {
			s.t.Errorf("%s: %s is %v, want %v", when, name, have[name], value)
		}
		delete(have, name)
	}
	if len(have) > 0 {
		s.t.Errorf("%s: other series are not 0: %v", when, have)
	}
}

// TestUploads makes uploads with each outcome, and scrapes the metrics while one is under way and at the
// end.
func TestUploads(t *testing.T) {
	t.Parallel()
	stalled := make(chan struct{})
	srv := fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true, Faults: []faults.Fault{
		{Match: faults.Match{Op: faults.OpInsert, Object: "retried"}, Times: 2, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
		{Match: faults.Match{Op: faults.OpInsert, Object: "denied"}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}},
		{Match: faults.Match{Op: faults.OpPut, Object: "large", From: 2 * mib}, Times: 1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
	}})
	m := serve(t, metrics.Options{})
	up, err := upload.New(srv.Client(), &upload.Options{
		Endpoint: srv.URL, ChunkSize: mib, Observer: m.Observe,
		Policy: backoff.Policy{Initial: time.Millisecond, Maximum: time.Millisecond},
		Exchange: func(x upload.Exchange) {
			if x.Status == 503 && x.Spec.Object == "large" {
				<-stalled // the wait comes after it
			}
		},
	})
	require.NoError(t, err)
	ctx := t.Context()
	small, large := file(t, "small", 1000), file(t, "large", 12*mib)
	spec := func(object string) upload.Spec { return upload.Spec{Bucket: "private-bucket", Object: object} }

	done := make(chan error, 1)
	go func() {
		_, err := up.File(ctx, large, spec("large"))
		done <- err
	}()
	until(t, "two chunks are committed", func() bool { return m.scrape()["gcsup_active_committed_bytes"] == 2*mib })
	now := m.scrape()
	if now["gcsup_active_uploads"] != 1 || now["gcsup_active_size_bytes"] != 12*mib || now["gcsup_sent_bytes_total"] < 2*mib {
		t.Errorf("under way: %v", now)
	}
	close(stalled)
	require.NoError(t, <-done)

	for object, fails := range map[string]bool{"retried": false, "denied": true} {
		if _, err := up.File(ctx, small, spec(object)); (err != nil) != fails {
			t.Errorf("%s: %v", object, err)
		}
	}
	skipping, err := up.With(upload.CallOptions{Skip: upload.SkipIdentical})
	require.NoError(t, err)
	_, err = skipping.File(ctx, small, spec("retried"))
	require.NoError(t, err)
	canceled := filepath.Join(t.TempDir(), "gone")
	if _, err := up.File(ctx, canceled, spec("gone")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	all := m.scrape()
	resent := all["gcsup_resent_bytes_total"]
	if seconds := all["gcsup_wait_seconds_total{reason=failure}"]; seconds <= 0 || seconds > 1 {
		t.Errorf("waited %v s for three retries of at most 1 ms", seconds)
	}
	m.want("at the end", map[string]float64{
		"gcsup_files_total{outcome=done}": 2, "gcsup_files_total{outcome=skipped}": 1, "gcsup_files_total{outcome=failed}": 2,
		"gcsup_failures_total{kind=permission}": 1, "gcsup_failures_total{kind=no_input}": 1,
		"gcsup_file_bytes_total": 12*mib + 1000,
		"gcsup_sent_bytes_total": 12*mib + 1000*2 + resent, "gcsup_resent_bytes_total": resent,
		"gcsup_retries_total": 3, "gcsup_waits_total{reason=failure}": 3,
		"gcsup_wait_seconds_total{reason=failure}": all["gcsup_wait_seconds_total{reason=failure}"],
	})
	for _, name := range []string{"private-bucket", "retried", "large", "small"} {
		if text := m.get("/metrics", http.StatusOK); strings.Contains(text, name) {
			t.Errorf("the metrics have the name %s", name)
		}
	}
}

// TestEvents checks what each event adds.
func TestEvents(t *testing.T) {
	t.Parallel()
	const second = time.Second
	end := func(kind upload.EventKind, r upload.Result, err error) upload.Event {
		return upload.Event{Kind: kind, Upload: 1, Result: &r, Err: err}
	}
	began := upload.Event{Kind: upload.Started, Upload: 1, Size: 10}
	made := &session.Object{}
	for name, c := range map[string]struct {
		events []upload.Event
		want   map[string]float64
	}{
		"under way":            {[]upload.Event{began, {Kind: upload.Progress, Upload: 1, Size: 10, Committed: 4, SentDelta: 7}}, map[string]float64{"active_uploads": 1, "active_size_bytes": 10, "active_committed_bytes": 4, "sent_bytes_total": 7}},
		"two under way":        {[]upload.Event{began, {Kind: upload.Resumed, Upload: 2, Size: 5, Committed: 3}}, map[string]float64{"active_uploads": 2, "active_size_bytes": 15, "active_committed_bytes": 3}},
		"size is not known":    {[]upload.Event{{Kind: upload.Progress, Upload: 1, Size: -1, Committed: 4}}, map[string]float64{"active_uploads": 1, "active_committed_bytes": 4}},
		"lost bytes":           {[]upload.Event{{Kind: upload.Progress, Upload: 1, Committed: 4}, {Kind: upload.Restarted, Upload: 1, CommittedDelta: -4}}, map[string]float64{"active_uploads": 1, "restarts_total": 1}},
		"done":                 {[]upload.Event{began, end(upload.Done, upload.Result{Object: made, Size: 10, BytesResent: 2}, nil)}, map[string]float64{"files_total{outcome=done}": 1, "file_bytes_total": 10, "resent_bytes_total": 2}},
		"skipped":              {[]upload.Event{end(upload.Done, upload.Result{Skipped: upload.SkipIdentical, Size: 10}, nil)}, map[string]float64{"files_total{outcome=skipped}": 1}},
		"planned":              {[]upload.Event{end(upload.Done, upload.Result{Planned: true, Size: 10}, nil)}, map[string]float64{"files_total{outcome=planned}": 1}},
		"canceled":             {[]upload.Event{end(upload.Done, upload.Result{Size: 10}, nil)}, map[string]float64{"files_total{outcome=canceled}": 1}},
		"interrupted":          {[]upload.Event{began, end(upload.Interrupted, upload.Result{Size: -1}, io.EOF)}, map[string]float64{"files_total{outcome=interrupted}": 1}},
		"failed":               {[]upload.Event{began, end(upload.Failed, upload.Result{Size: 10}, session.ErrPrecondition)}, map[string]float64{"files_total{outcome=failed}": 1, "failures_total{kind=precondition}": 1}},
		"unknown error":        {[]upload.Event{end(upload.Failed, upload.Result{}, errors.New("x"))}, map[string]float64{"files_total{outcome=failed}": 1, "failures_total{kind=local_io}": 1}},
		"wait":                 {[]upload.Event{{Kind: upload.Waiting, Delay: second}}, map[string]float64{"retries_total": 1, "waits_total{reason=failure}": 1, "wait_seconds_total{reason=failure}": 1}},
		"wait for the breaker": {[]upload.Event{{Kind: upload.Waiting, Delay: second, Blocked: true}}, map[string]float64{"waits_total{reason=circuit_breaker}": 1, "wait_seconds_total{reason=circuit_breaker}": 1}},
		"wait for the store":   {[]upload.Event{{Kind: upload.Waiting, Delay: second, Store: true}}, map[string]float64{"waits_total{reason=state}": 1, "wait_seconds_total{reason=state}": 1}},
		"wait for the lease":   {[]upload.Event{{Kind: upload.LeaseHeld, Delay: second, Err: &state.HeldError{}}}, map[string]float64{"waits_total{reason=lease}": 1, "wait_seconds_total{reason=lease}": 1}},
		"wait for the rate":    {[]upload.Event{end(upload.Interrupted, upload.Result{Throttled: second}, io.EOF)}, map[string]float64{"files_total{outcome=interrupted}": 1, "waits_total{reason=rate}": 1, "wait_seconds_total{reason=rate}": 1}},
		"listing of a bucket":  {[]upload.Event{{Kind: upload.Warning}}, nil},
	} {
		m := serve(t, metrics.Options{})
		for _, e := range c.events {
			m.Observe(e)
		}
		want := map[string]float64{}
		for series, value := range c.want {
			want["gcsup_"+series] = value
		}
		m.want(name, want)
	}
}

// TestBacklog checks the metrics of what waits.
func TestBacklog(t *testing.T) {
	t.Parallel()
	var now metrics.Backlog
	m := serve(t, metrics.Options{Version: "v1.2.3", Backlog: func() metrics.Backlog { return now }})
	version := "gcsup_build_info{version=v1.2.3}"
	m.want("empty", map[string]float64{version: 1})
	now = metrics.Backlog{Files: 3, Bytes: 500, Oldest: time.Now().Add(-time.Hour)}
	have := m.scrape()
	if age := have["gcsup_backlog_oldest_age_seconds"]; age < 3600 || age > 3700 {
		t.Errorf("age %v s, want an hour", age)
	}
	delete(have, "gcsup_backlog_oldest_age_seconds")
	if have["gcsup_backlog_files"] != 3 || have["gcsup_backlog_bytes"] != 500 || len(have) != 3 {
		t.Errorf("backlog %v, want 3 files of 500 bytes", have)
	}
	now.Oldest = time.Now().Add(time.Hour)
	m.want("a clock that was set back", map[string]float64{version: 1, "gcsup_backlog_files": 3, "gcsup_backlog_bytes": 500})
}

// TestSeriesFromTheStart checks that all series are there before the first event, so that the first failure is
// an increase.
func TestSeriesFromTheStart(t *testing.T) {
	t.Parallel()
	text := serve(t, metrics.Options{}).get("/metrics", http.StatusOK)
	for _, series := range []string{`gcsup_failures_total{kind="quota"} 0`, `gcsup_failures_total{kind="local_io"} 0`, `gcsup_files_total{outcome="failed"} 0`, `gcsup_waits_total{reason="circuit_breaker"} 0`} {
		if !strings.Contains(text, series+"\n") {
			t.Errorf("no series %s", series)
		}
	}
}

// TestHealth checks when a command is unhealthy.
func TestHealth(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration, e upload.Event) upload.Event {
		e.Time = time.Now().Add(-d)
		return e
	}
	wait, sent, stored := upload.Event{Kind: upload.Waiting}, upload.Event{Kind: upload.Progress, SentDelta: 9}, upload.Event{Kind: upload.Progress, CommittedDelta: 9}
	const minute = time.Minute
	for name, c := range map[string]struct {
		events []upload.Event
		status int
	}{
		"nothing has happened": {nil, 200},
		"a failure":            {[]upload.Event{ago(0, wait)}, 200},
		"failures for 4 min":   {[]upload.Event{ago(4*minute, wait), ago(0, wait)}, 200},
		"failures for 6 min":   {[]upload.Event{ago(6*minute, wait), ago(3*minute, wait), ago(0, wait)}, 503},
		"bytes are sent":       {[]upload.Event{ago(6*minute, wait), ago(3*minute, sent), ago(0, wait)}, 503},
		"bytes are committed":  {[]upload.Event{ago(6*minute, wait), ago(3*minute, stored), ago(0, wait)}, 200},
		"works again":          {[]upload.Event{ago(9*minute, wait), ago(1*minute, wait), ago(0, stored)}, 200},
		"a long request":       {[]upload.Event{ago(19*minute, wait), ago(18*minute, wait)}, 200},
		"old failures":         {[]upload.Event{ago(19*minute, wait), ago(6*minute, wait)}, 200},
	} {
		m := serve(t, metrics.Options{})
		for _, e := range c.events {
			m.Observe(e)
		}
		if text := m.get("/healthz", c.status); c.status == 503 && text != "requests have failed for 6m0s, and nothing was committed meanwhile\n" || c.status == 200 && text != "ok\n" {
			t.Errorf("%s: %q", name, text)
		}
	}
	m := serve(t, metrics.Options{Healthy: func() error { return errors.New("the queue is gone") }})
	if text := m.get("/healthz", 503); text != "the queue is gone\n" {
		t.Errorf("%q", text)
	}
}

// TestAddress checks which values --listen has.
func TestAddress(t *testing.T) {
	t.Parallel()
	for text, valid := range map[string]bool{
		"127.0.0.1:9464": true, ":9464": true, "[::1]:0": true, "localhost:65535": true,
		"": false, "9464": false, "127.0.0.1": false, "127.0.0.1:": false, "127.0.0.1:http": false, ":65536": false, "::1:9464": false, ":-1": false,
	} {
		var a metrics.Address
		if err := a.Set(text); (err == nil) != valid || valid && a.String() != text {
			t.Errorf("%q: %v, %q", text, err, a.String())
		}
	}
}

// TestClose closes a server while a client has sent half a request. Until then, its port is in use, and afterwards it is free.
func TestClose(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Options{})
	s, err := metrics.Serve("127.0.0.1:0", m)
	require.NoError(t, err)
	client, err := net.Dial("tcp", s.Addr())
	if err == nil {
		_, err = io.WriteString(client, "GET /metrics HTTP/1.1\r\n")
	}
	require.NoError(t, err)
	defer client.Close()
	address := metrics.Address(s.Addr())
	if _, err := metrics.Serve(address, m); err == nil || exit.Classify(err).Code != exit.IO || !strings.HasSuffix(err.Error(), "; give another HOST:PORT, or port 0 for a free one") {
		t.Errorf("a port in use: %v", err)
	}
	begun := time.Now()
	s.Close()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("Close took %v, want about 1s", took)
	}
	if n, err := client.Read(make([]byte, 1)); err == nil {
		t.Errorf("the connection is open: %d bytes", n)
	}
	again, err := metrics.Serve(address, m)
	require.NoError(t, err)
	again.Close()
}

// TestDocumented compares the table in docs/reference/metrics.md with what is served, and checks that the rest of the page
// has no other metrics.
func TestDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "metrics.md"))
	require.NoError(t, err)
	var listed, served []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(gcsup_\\w+)(?:\\{[^}]*\\})?` \\| (.*) \\|$").FindAllSubmatch(page, -1) {
		listed = append(listed, string(row[1])+" "+string(row[2]))
	}
	m := serve(t, metrics.Options{Version: "v1", Backlog: func() metrics.Backlog { return metrics.Backlog{} }})
	for _, row := range regexp.MustCompile(`(?m)^# HELP (gcsup_\S+) (.*)$`).FindAllStringSubmatch(m.get("/metrics", http.StatusOK), -1) {
		served = append(served, row[1]+" "+row[2])
	}
	for _, name := range regexp.MustCompile(`\bgcsup_\w+`).FindAllString(string(page), -1) {
		if !slices.ContainsFunc(served, func(row string) bool { return strings.HasPrefix(row, name+" ") }) {
			t.Errorf("docs/reference/metrics.md has the metric %s, which is not served", name)
		}
	}
	slices.Sort(listed)
	slices.Sort(served)
	if !slices.Equal(listed, served) || len(served) == 0 {
		t.Errorf("docs/reference/metrics.md has\n%s\nand served are\n%s", strings.Join(listed, "\n"), strings.Join(served, "\n"))
	}
}

// file makes a file of n bytes.
func file(t *testing.T, name string, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte{'x'}, n), 0o600))
	return path
}

// until waits until a condition is true.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after 30 s: %s", what)
		}
	}
}
