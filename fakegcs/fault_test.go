package fakegcs_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/memnet"
	"gcsup/internal/require"
)

// bubble runs f with a server and a client in virtual time.
func bubble(t *testing.T, opts *fakegcs.Options, f func(w *world)) {
	t.Helper()
	bubbleOf(t, opts, &http.Server{}, &http.Transport{}, f)
}

// bubbleOf is bubble with the caller's server and transport. It sets their handler
// and dial function. A server with a certificate uses TLS.
func bubbleOf(t *testing.T, opts *fakegcs.Options, srv *http.Server, tr *http.Transport, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		gcs, err := fakegcs.New(opts)
		require.NoError(t, err)
		require.NoError(t, gcs.CreateBucket(fakegcs.Bucket{Name: "bkt"}))
		ln, dial := memnet.Listen()
		srv.Handler, tr.DialContext = gcs, dial
		url := "http://pipe"
		if srv.TLSConfig != nil {
			url = "https://pipe"
			go srv.ServeTLS(ln, "", "")
		} else {
			go srv.Serve(ln)
		}
		f(&world{T: t, gcs: gcs, url: url, client: &http.Client{Transport: tr, CheckRedirect: plainClient.CheckRedirect}})
		start := time.Now()
		if err := gcs.Close(); err != nil || time.Since(start) > time.Second {
			t.Errorf("Close took %v, %v", time.Since(start), err)
		}
		tr.CloseIdleConnections()
		srv.Close()
		time.Sleep(time.Minute) // net/http waits before it closes a connection with unread data, and has timers
	})
}

func chunkRange(from, to int, total string) string {
	return fmt.Sprintf("Content-Range: bytes %d-%d/%s", from, to-1, total)
}

func (w *world) put(uri string, from, to int, total string) (answer, error) {
	w.Helper()
	return w.try("PUT", uri, data(to)[from:], chunkRange(from, to, total))
}

// committed returns the Range of a status query.
func (w *world) committed(uri string) string {
	w.Helper()
	a := w.do("PUT", uri, nil, "Content-Range: bytes */*")
	if a.StatusCode != 308 {
		return a.Status
	}
	return a.Header.Get("Range")
}

// TestEffects applies each effect to the second of three requests of an upload. It
// checks the client's result and the next query, and finishes the upload.
func TestEffects(t *testing.T) {
	t.Parallel()
	const size = 4 * q
	for _, test := range []struct {
		do     faults.Action
		status int           // of the faulty request; 0 if there is no reply
		err    error         // of the client, if there is no reply
		says   string        // the Range of the reply, if it is not that of the next query
		after  string        // the Range of the next query
		took   time.Duration // virtual
		dead   bool
	}{
		{do: faults.Action{Effect: faults.EffectStatus, Status: 503, RetryAfter: "7"}, status: 503, after: "bytes=0-262143"},
		{do: faults.Action{Effect: faults.EffectStatus, Status: 429, Early: true}, status: 429, after: "bytes=0-262143"},
		{do: faults.Action{Effect: faults.EffectStatusAfter, Status: 503, Bytes: q + 1000}, status: 503, after: "bytes=0-263143"},
		{do: faults.Action{Effect: faults.EffectRevoke}, status: 401, after: "bytes=0-262143"},
		{do: faults.Action{Effect: faults.EffectReset}, err: connReset, after: "bytes=0-262143"},
		{do: faults.Action{Effect: faults.EffectClose}, err: io.EOF, after: "bytes=0-262143"},
		{do: faults.Action{Effect: faults.EffectCutRequest, Bytes: q + 5}, err: connReset, after: "bytes=0-524287"},
		{do: faults.Action{Effect: faults.EffectCutRequest}, err: connReset, after: "bytes=0-262143"},
		{do: faults.Action{Effect: faults.EffectLateCommit, Bytes: q, For: time.Minute}, err: connReset, after: "bytes=0-262143"},
		{do: faults.Action{Effect: faults.EffectLoseReply}, err: connReset, after: "bytes=0-786431"},
		{do: faults.Action{Effect: faults.EffectGoAway}, status: 308, after: "bytes=0-786431"},
		{do: faults.Action{Effect: faults.EffectStall}, err: context.DeadlineExceeded, took: time.Minute, after: "bytes=0-262143"},
		{do: faults.Action{Effect: faults.EffectStall, For: 9 * time.Second}, status: 308, took: 9 * time.Second, after: "bytes=0-786431"},
		{do: faults.Action{Effect: faults.EffectStallBody, Bytes: q + 5}, err: context.DeadlineExceeded, took: time.Minute, after: "bytes=0-524287"},
		{do: faults.Action{Effect: faults.EffectStallBody, Bytes: q + 5, For: time.Second}, status: 308, took: time.Second, after: "bytes=0-786431"},
		{do: faults.Action{Effect: faults.EffectStallReply}, err: context.DeadlineExceeded, took: time.Minute, after: "bytes=0-786431"},
		{do: faults.Action{Effect: faults.EffectDelay, For: 3 * time.Second}, status: 308, took: 3 * time.Second, after: "bytes=0-786431"},
		{do: faults.Action{Effect: faults.EffectShortCommit, Bytes: q}, status: 308, after: "bytes=0-524287"},
		{do: faults.Action{Effect: faults.EffectShortCommit, Bytes: 1}, status: 308, after: "bytes=0-786430"},
		{do: faults.Action{Effect: faults.EffectNoRange}, status: 308, says: "none", after: "bytes=0-786431"},
		{do: faults.Action{Effect: faults.EffectWrongRange, Bytes: -q}, status: 308, says: "bytes=0-524287", after: "bytes=0-786431"},
		{do: faults.Action{Effect: faults.EffectWrongRange, Bytes: 100}, status: 308, says: "bytes=0-786531", after: "bytes=0-786431"},
		{do: faults.Action{Effect: faults.EffectWrongHash}, status: 308, after: "bytes=0-786431"},
		{do: faults.Action{Effect: faults.EffectGone, Status: 429, Reason: "rateLimitExceeded"}, status: 410, after: "410 Gone", dead: true},
		{do: faults.Action{Effect: faults.EffectNotFound}, status: 404, after: "404 Not Found", dead: true},
		{do: faults.Action{Effect: faults.EffectCanceled}, status: 499, after: "499 status code 499", dead: true},
	} {
		t.Run(string(test.do.Effect), func(t *testing.T) {
			bubble(t, &fakegcs.Options{Faults: []faults.Fault{{Match: faults.Match{Op: faults.OpPut}, Skip: 1, Do: test.do}}}, func(w *world) {
				uri := w.start("x")
				w.chunk(308, uri, 0, q, "*")
				start := time.Now()
				ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
				w.ctx = ctx
				a, err := w.put(uri, q, 3*q, "*")
				cancel()
				w.ctx = nil
				switch {
				case test.err != nil && !errors.Is(err, test.err) && !(test.err == connReset && errors.Is(err, brokenPipe)):
					t.Errorf("error = %v, want %v", err, test.err)
				case test.err == nil && err != nil:
					t.Errorf("error = %v, want status %d", err, test.status)
				case test.err == nil && a.StatusCode != test.status:
					t.Errorf("status = %d, want %d", a.StatusCode, test.status)
				case test.status == 308:
					if got, want := cmp.Or(a.Header.Get("Range"), "none"), cmp.Or(test.says, test.after); got != want {
						t.Errorf("the reply has the Range %q, want %q", got, want)
					}
				}
				if d := time.Since(start); d < test.took || d > test.took+200*time.Millisecond {
					t.Errorf("took %v, want %v", d, test.took)
				}
				if got := w.committed(uri); got != test.after {
					t.Errorf("query returned %q, want %q", got, test.after)
				}
				if n := w.gcs.FaultReport(); n[0].Fired != 1 || !n[0].Done {
					t.Errorf("report = %+v", n)
				}
				if test.dead {
					if _, ok := w.gcs.Object("bkt", "x"); ok {
						t.Error("the object exists")
					}
					return
				}
				from := 0
				fmt.Sscanf(test.after, "bytes=0-%d", &from)
				w.chunk(200, uri, from+1, size, fmt.Sprint(size))
				w.holds("x", data(size))
			})
		})
	}
}

// TestEffectsOnReplies checks effects that change only the reply.
func TestEffectsOnReplies(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	on := func(op faults.Op, do faults.Action) *fakegcs.Options { return &fakegcs.Options{Faults: fault(op, do)} }
	rewinding := func(dir string) *fakegcs.Options {
		opts := on(faults.OpPut, faults.Action{Effect: faults.EffectRewind, Bytes: q + 1})
		opts.Faults[0].Skip, opts.Dir = 1, dir
		return opts
	}
	rewound := func(w *world) {
		uri := w.start("x")
		w.put(uri, 0, 3*q, "*")
		w.chunk(503, uri, 3*q, 4*q, "*")
		a := w.do("PUT", uri, nil, "Content-Range: bytes */*")
		if a.Header.Get("Range") != "bytes=0-524286" || a.Header.Get("x-goog-running-hash") != "crc32c="+crc(data(2*q-1)) {
			w.Errorf("query: %v", a.Header)
		}
		if a = w.chunk(200, uri, 2*q-1, 4*q, fmt.Sprint(4*q)); a.json(w)["crc32c"] != crc(data(4*q)) {
			w.Errorf("%v", a)
		}
		if sum := md5.Sum(data(4 * q)); a.json(w)["md5Hash"] != base64.StdEncoding.EncodeToString(sum[:]) {
			w.Errorf("md5 %v", a.json(w)["md5Hash"])
		}
		w.holds("x", data(4*q))
	}
	for name, test := range map[string]struct {
		opts  *fakegcs.Options
		check func(w *world)
	}{
		"retry-after": {on("", faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "userRateLimitExceeded", RetryAfter: "+5s"}), func(w *world) {
			a := w.do("GET", "/storage/v1/b/bkt", nil)
			want := time.Now().Add(5 * time.Second).UTC().Format(http.TimeFormat)
			if a.StatusCode != 403 || a.Header.Get("Retry-After") != want || !strings.Contains(a.body, `"reason": "userRateLimitExceeded"`) || !strings.Contains(a.body, `"domain": "usageLimits"`) {
				w.Errorf("%d %q %s", a.StatusCode, a.Header.Get("Retry-After"), a.body)
			}
		}},
		"wrong-hash": {on(faults.OpPut, faults.Action{Effect: faults.EffectWrongHash}), func(w *world) {
			uri := w.start("x")
			a, err := w.put(uri, 0, q, "*")
			good := w.do("PUT", uri, nil, "Content-Range: bytes */*")
			if err != nil || a.Header.Get("X-Range-MD5") == good.Header.Get("X-Range-MD5") || a.Header.Get("x-goog-running-hash") == good.Header.Get("x-goog-running-hash") {
				w.Errorf("%v\n%v %v", a.Header, good.Header, err)
			}
		}},
		"not-final": {on(faults.OpFinalize, faults.Action{Effect: faults.EffectNotFinal}), func(w *world) {
			uri := w.start("x")
			if a := w.chunk(308, uri, 0, 100, "100"); a.Header.Get("Range") != "bytes=0-99" {
				w.Errorf("%v", a.Header)
			}
			w.want(200, "", "PUT", uri, nil, "Content-Range: bytes */100")
		}},
		"slow-finalize": {on(faults.OpFinalize, faults.Action{Effect: faults.EffectSlowFinalize, For: time.Hour}), func(w *world) {
			uri := w.start("x")
			var last sync.WaitGroup
			last.Go(func() { w.want(200, "", "PUT", uri, data(100)) })
			time.Sleep(time.Minute)
			if got := w.committed(uri); got != "bytes=0-99" {
				w.Errorf("committed while it finalizes: %q", got)
			}
			last.Wait()
		}},
		"late-commit": {on(faults.OpPut, faults.Action{Effect: faults.EffectLateCommit, Bytes: q, For: time.Minute}), func(w *world) {
			uri := w.start("x")
			w.put(uri, 0, 2*q, "*")
			early := w.committed(uri)
			time.Sleep(time.Minute)
			if late := w.committed(uri); early != "" || late != "bytes=0-262143" {
				w.Errorf("committed %q early and %q late", early, late)
			}
		}},
		"corrupt": {on(faults.OpFinalize, faults.Action{Effect: faults.EffectCorrupt, Bytes: 50}), func(w *world) {
			w.want(400, "", "PUT", w.start("x"), data(100), "X-Goog-Hash: crc32c="+crc(data(100)))
		}},
		"cut-reply": {on(faults.OpFinalize, faults.Action{Effect: faults.EffectCutReply, Bytes: 10}), func(w *world) {
			uri := w.start("x")
			if a, err := w.try("PUT", uri, data(100)); !errors.Is(err, connReset) || len(a.body) != 10 || a.StatusCode != 200 {
				w.Errorf("%v %v", a, err)
			}
			w.want(200, `"size": "100"`, "PUT", uri, nil, "Content-Range: bytes */100")
		}},
		"truncate-reply": {on(faults.OpFinalize, faults.Action{Effect: faults.EffectTruncateReply, Bytes: 10}), func(w *world) {
			uri := w.start("x")
			if a := w.do("PUT", uri, data(100)); len(a.body) != 10 || a.StatusCode != 200 || a.ContentLength != 10 {
				w.Errorf("%v", a)
			}
			w.want(200, `"size": "100"`, "PUT", uri, nil, "Content-Range: bytes */100")
		}},
		"truncate-reply of a read": {on(faults.OpRead, faults.Action{Effect: faults.EffectTruncateReply, Bytes: 10}), func(w *world) {
			w.insert("x", string(data(100)))
			if a := w.do("GET", "/bkt/x", nil); a.body != string(data(10)) || a.ContentLength != 10 {
				w.Errorf("read %d bytes of %d", len(a.body), a.ContentLength)
			}
		}},
		"foreign-write": {on(faults.OpQuery, faults.Action{Effect: faults.EffectForeignWrite, Bytes: 2*q + 9}), func(w *world) {
			uri := w.start("x")
			w.put(uri, 0, q, "786450")
			if got := w.committed(uri); got != "bytes=0-786440" {
				w.Errorf("committed %q", got)
			}
			want := append(data(q), make([]byte, 2*q+9)...)
			want = append(want, data(786450)[786441:]...)
			w.want(200, crc(want), "PUT", uri, data(786450)[786441:], chunkRange(786441, 786450, "786450"))
			w.holds("x", want)
		}},
		"foreign-write beyond the total": {on(faults.OpQuery, faults.Action{Effect: faults.EffectForeignWrite, Bytes: 9 * q}), func(w *world) {
			uri := w.start("x")
			w.put(uri, 0, q, fmt.Sprint(2*q))
			if got := w.committed(uri); got != "bytes=0-524287" {
				w.Errorf("committed %q", got)
			}
		}},
		"rewind":                {rewinding(""), rewound},
		"rewind in a directory": {rewinding(t.TempDir()), rewound},
		"rewind in discard mode": {&fakegcs.Options{Discard: true, Faults: fault(faults.OpQuery, faults.Action{Effect: faults.EffectRewind, Bytes: q})}, func(w *world) {
			uri := w.start("x")
			w.put(uri, 0, q, "*")
			w.want(400, "", "PUT", uri, nil, "Content-Range: bytes */*")
		}},
		"offset range": {&fakegcs.Options{Faults: []faults.Fault{{Match: faults.Match{From: q, To: q + 1}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 500}}}}, func(w *world) {
			uri := w.start("x")
			for _, step := range []struct{ from, to, status int }{{0, q, 308}, {q, 2 * q, 500}, {0, 2 * q, 500}, {q + 1, 2 * q, 503}} {
				w.chunk(step.status, uri, step.from, step.to, "*")
			}
		}},
	} {
		t.Run(name, func(t *testing.T) { bubble(t, test.opts, test.check) })
	}
}

// TestCutReadResets checks over a real socket that a cut body ends with a reset, after all the
// bytes that were to be sent, even if the client receives them slowly.
func TestCutReadResets(t *testing.T) {
	t.Parallel()
	const cut = 700 << 10
	w := newWorld(t, &fakegcs.Options{Faults: []faults.Fault{{Match: faults.Match{Op: faults.OpRead}, Do: faults.Action{Effect: faults.EffectCutReply, Bytes: cut}}}})
	w.insert("x", string(data(1<<20)))
	w.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(64 << 10) // most bytes wait in the server's socket
		}
		return conn, err
	}}}
	resp, err := w.client.Get(w.url + "/bkt/x")
	require.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if !errors.Is(err, connReset) {
		t.Errorf("the body ends with %v, want ECONNRESET", err)
	}
	if runtime.GOOS == "linux" && !bytes.Equal(got, data(1 << 20)[:cut]) {
		t.Errorf("read %d bytes before the reset, want %d", len(got), cut)
	}
}

// Over real sockets a reset is ECONNRESET, even with TLS and HTTP/2.
func TestResetIsAReset(t *testing.T) {
	w := newWorld(t, &fakegcs.Options{Faults: []faults.Fault{
		{Do: faults.Action{Effect: faults.EffectReset}},
		{Do: faults.Action{Effect: faults.EffectClose}},
	}})
	if _, err := w.try("GET", "/storage/v1/b/bkt", nil); !errors.Is(err, connReset) {
		t.Errorf("reset: %v, want ECONNRESET", err)
	}
	if _, err := w.try("GET", "/storage/v1/b/bkt", nil); !errors.Is(err, io.EOF) {
		t.Errorf("close: %v, want EOF", err)
	}
}

// Bytes that are lost while the last step waits do not become part of an object.
func TestRewindDuringSlowFinalize(t *testing.T) {
	bubble(t, &fakegcs.Options{Faults: []faults.Fault{
		{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectSlowFinalize, For: time.Minute}},
		{Match: faults.Match{Op: faults.OpQuery}, Do: faults.Action{Effect: faults.EffectRewind, Bytes: q}},
	}}, func(w *world) {
		uri := w.start("x")
		last := make(chan answer, 1)
		go func() { last <- w.chunk(308, uri, 0, 2*q, fmt.Sprint(2*q)) }()
		time.Sleep(time.Second)
		if got := w.committed(uri); got != "bytes=0-262143" {
			w.Errorf("after the rewind: %q", got)
		}
		if a := <-last; a.Header.Get("Range") != "bytes=0-262143" {
			w.Errorf("the last request: %v", a.Header)
		}
		w.want(200, crc(data(2*q)), "PUT", uri, data(2 * q)[q:], chunkRange(q, 2*q, fmt.Sprint(2*q)))
	})
}

// A fault can change the checksum in every reply that has one.
func TestWrongHashEverywhere(t *testing.T) {
	const object = "/storage/v1/b/bkt/o/x"
	for name, ask := range map[string]func(w *world) answer{
		"insert": func(w *world) answer {
			return w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=x", data(9))
		},
		"get":   func(w *world) answer { return w.do("GET", object, nil) },
		"head":  func(w *world) answer { return w.do("HEAD", "/bkt/x", nil) },
		"read":  func(w *world) answer { return w.do("GET", object+"?alt=media", nil) },
		"list":  func(w *world) answer { return w.do("GET", "/storage/v1/b/bkt/o", nil) },
		"patch": func(w *world) answer { return w.do("PATCH", object, []byte("{}")) },
		"compose": func(w *world) answer {
			return w.do("POST", object+"/compose", []byte(`{"sourceObjects":[{"name":"x"}]}`))
		},
		"rewrite":  func(w *world) answer { return w.do("POST", object+"/rewriteTo/b/bkt/o/x", nil) },
		"finalize": func(w *world) answer { return w.do("PUT", w.start("x"), data(9)) },
		"XML put":  func(w *world) answer { return w.do("PUT", "/bkt/x", data(9)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.insert("x", string(data(9)))
			for _, right := range []bool{true, false, true} {
				if !right {
					w.addFaults(faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectWrongHash}})
				}
				if a := ask(w); strings.Contains(a.body+fmt.Sprint(a.Header), crc(data(9))) != right {
					t.Errorf("the reply has the right checksum: %v, want %v", !right, right)
				}
				w.gcs.ClearFaults()
			}
		})
	}
}

// If a reply stalls in the middle, its first bytes arrive at once, and the rest after
// the stall.
func TestStallInReply(t *testing.T) {
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	for _, lasts := range []time.Duration{time.Minute, 0} {
		for _, at := range []int64{1, q - 1, q, q + 1} {
			t.Run(fmt.Sprint(lasts, at), func(t *testing.T) {
				bubble(t, nil, func(w *world) {
					w.insert("x", string(data(2*q)))
					fault := faults.Fault{Match: faults.Match{Op: faults.OpRead}, Do: faults.Action{Effect: faults.EffectStallReply, Bytes: at, For: lasts}}
					w.addFaults(fault)
					start := time.Now()
					resp, err := w.client.Get(w.url + "/bkt/x")
					require.NoError(t, err)
					defer resp.Body.Close()
					got := make([]byte, at)
					if _, err := io.ReadFull(resp.Body, got); err != nil || !bytes.Equal(got, data(int(at))) || time.Since(start) > time.Second {
						t.Errorf("the first bytes after %v: %v", time.Since(start), err)
					}
					if lasts == 0 {
						go func() {
							time.Sleep(time.Hour)
							w.gcs.Close()
						}()
					}
					rest, err := io.ReadAll(resp.Body)
					switch {
					case lasts == 0 && (err == nil || time.Since(start) < time.Hour):
						t.Errorf("after the server was closed: %v after %v", err, time.Since(start))
					case lasts > 0 && (err != nil || !bytes.Equal(rest, data(2 * q)[at:]) || time.Since(start) < lasts):
						t.Errorf("the rest: %d bytes, %v after %v", len(rest), err, time.Since(start))
					}
				})
			})
		}
	}
}
