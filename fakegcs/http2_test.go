package fakegcs_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
)

// secureBubble is bubble with TLS, and a client for only HTTP/2 or only HTTP/1.1.
func secureBubble(t *testing.T, cert tls.Certificate, http2 bool, opts *fakegcs.Options, f func(w *world)) {
	t.Helper()
	var protocols http.Protocols
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	bubbleOf(t, opts,
		&http.Server{TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}, Protocols: &protocols},
		&http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: &protocols}, f)
}

// Each effect has the same result over HTTP/2 as over HTTP/1.1, except for the state of
// the connection.
func TestEffectsOverHTTP2(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB")
	}
	cert, _, err := fakegcs.NewCertificate("pipe")
	require.NoError(t, err)
	var all []faults.Action // each effect with each of the settings that are valid for it
	for _, effect := range faults.Effects() {
		for _, do := range []faults.Action{
			{}, {Status: 503, RetryAfter: "7"}, {Status: 503, Early: true}, {Status: 503, Bytes: q + 1000},
			{Bytes: 5}, {Bytes: q + 5}, {For: 9 * time.Second}, {For: time.Second, Bytes: q + 5}, {For: time.Hour, Bytes: q},
		} {
			do.Effect = effect
			later := effect == faults.EffectCloseAfter || effect == faults.EffectCutReply && do.Bytes > q // the reply is whole, and its connection ends
			if !later && (faults.Fault{Do: do}).Validate() == nil {
				all = append(all, do)
			}
		}
	}
	for _, do := range all {
		t.Run(fmt.Sprint(do.Effect, do.Bytes, do.For), func(t *testing.T) {
			outcome := func(http2 bool) (seen string) {
				opts := &fakegcs.Options{Faults: []faults.Fault{{Match: faults.Match{Op: faults.OpFinalize}, Do: do}}}
				secureBubble(t, cert, http2, opts, func(w *world) {
					uri := w.start("x")
					start := time.Now()
					ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
					w.ctx = ctx
					a, err := w.put(uri, 0, 2*q, fmt.Sprint(2*q))
					cancel()
					w.ctx = nil
					if a.Response != nil {
						seen = fmt.Sprintf("%d %q %d bytes, ", a.StatusCode, a.Header.Get("Range"), len(a.body))
					}
					seen += fmt.Sprintf("failed %v after %v, ", err != nil, time.Since(start).Round(time.Second))
					a = w.do("PUT", uri, nil, "Content-Range: bytes */*")
					seen += fmt.Sprintf("then %d %q", a.StatusCode, a.Header.Get("Range"))
				})
				return seen
			}
			if one, two := outcome(false), outcome(true); one != two {
				t.Errorf("HTTP/1.1: %s\nHTTP/2:   %s", one, two)
			}
		})
	}
}

// The requests on one HTTP/2 connection share its rate.
func TestLinkOverHTTP2(t *testing.T) {
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	cert, _, err := fakegcs.NewCertificate("pipe")
	require.NoError(t, err)
	for _, test := range []struct {
		http2 bool
		want  time.Duration // for 1 MiB from each of three
	}{{false, time.Second}, {true, 3 * time.Second}} {
		secureBubble(t, cert, test.http2, &fakegcs.Options{Rate: 1 << 20, Latency: 70 * time.Millisecond}, func(w *world) {
			w.do("GET", "/bkt", nil) // opens the connection that HTTP/2 shares
			start := time.Now()
			done := make(chan bool)
			for i := range 3 {
				go func() {
					w.insert(fmt.Sprint("x", i), string(data(1<<20)))
					done <- true
				}()
			}
			for range 3 {
				<-done
			}
			want := test.want + 70*time.Millisecond
			if d := time.Since(start); d < want-50*time.Millisecond || d > want*11/10 {
				t.Errorf("HTTP/2 %v: took %v, want %v", test.http2, d, want)
			}
		})
	}
}
