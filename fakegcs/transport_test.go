package fakegcs_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
)

// TestTLS uploads with TLS and the generated authority, over HTTP/1.1 and HTTP/2, and
// checks that a reset arrives as one.
func TestTLS(t *testing.T) {
	t.Parallel()
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			gcs, err := fakegcs.New(&fakegcs.Options{Faults: []faults.Fault{
				{Match: faults.Match{Op: faults.OpBucketGet}, Do: faults.Action{Effect: faults.EffectReset}},
				{Match: faults.Match{Op: faults.OpBucketGet}, Do: faults.Action{Effect: faults.EffectGoAway}},
				{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectCutReply, Bytes: 7}},
			}})
			require.NoError(t, err)
			require.NoError(t, gcs.CreateBucket(fakegcs.Bucket{Name: "bkt"}))
			cert, ca, err := fakegcs.NewCertificate("localhost", "127.0.0.1")
			require.NoError(t, err)
			pool := x509.NewCertPool()
			if !pool.AppendCertsFromPEM(ca) {
				t.Fatal("the authority is no PEM")
			}
			var protocols http.Protocols
			protocols.SetHTTP1(proto == "HTTP/1.1")
			protocols.SetHTTP2(proto == "HTTP/2.0")
			srv := &http.Server{Handler: gcs, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}, Protocols: &protocols}
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			go srv.ServeTLS(ln, "", "")
			defer srv.Close()
			defer gcs.Close()
			// Do not depend on how this machine resolves localhost.
			dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, ln.Addr().String())
			}
			tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, Protocols: &protocols, DialContext: dial}
			defer tr.CloseIdleConnections()
			w := &world{T: t, gcs: gcs, url: "https://localhost:" + strings.TrimPrefix(ln.Addr().String(), "127.0.0.1:"), client: &http.Client{Transport: tr}}

			if _, err := w.try("GET", "/storage/v1/b/bkt", nil); err == nil || proto == "HTTP/1.1" && !errors.Is(err, connReset) {
				t.Errorf("reset: %v", err)
			}
			if a := w.do("GET", "/storage/v1/b/bkt", nil); a.StatusCode != 200 || a.Proto != proto {
				t.Errorf("%s %d", a.Proto, a.StatusCode)
			}
			uri := w.start("x")
			if !strings.HasPrefix(uri, w.url) {
				t.Errorf("session URI %s", uri)
			}
			if a, err := w.try("PUT", uri, data(5*q+1)); err == nil || len(a.body) != 7 {
				t.Errorf("cut reply: %q %v", a.body, err)
			}
			w.want(200, "", "PUT", uri, nil, "Content-Range: bytes */*")
			if got, err := gcs.ReadObject("bkt", "x"); err != nil || !bytes.Equal(got, data(5*q+1)) {
				t.Errorf("object has %d bytes, %v", len(got), err)
			}
		})
	}
}

// TestLink checks the link model in virtual time: a rate for each connection, one for
// all connections, and a latency for each reply.
func TestLink(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		opts    fakegcs.Options
		clients int
		want    time.Duration // for 1 MiB from each
	}{
		{"rate", fakegcs.Options{Rate: 1 << 20}, 3, time.Second},
		{"total", fakegcs.Options{TotalRate: 1 << 20}, 4, 4 * time.Second},
		{"both", fakegcs.Options{Rate: 1 << 18, TotalRate: 1 << 20}, 2, 4 * time.Second},
		{"latency", fakegcs.Options{Latency: 70 * time.Millisecond}, 2, 70 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, &test.opts, func(w *world) {
				start := time.Now()
				done := make(chan bool)
				for i := range test.clients {
					go func() {
						w.insert("x"+string(rune('0'+i)), string(data(1<<20)))
						done <- true
					}()
				}
				for range test.clients {
					<-done
				}
				if d := time.Since(start); d < test.want-time.Microsecond || d > test.want*11/10 {
					t.Errorf("upload took %v, want %v", d, test.want)
				}
				if test.opts.Rate == 0 {
					return
				}
				start = time.Now()
				if a := w.do("GET", "/bkt/x0", nil); len(a.body) != 1<<20 {
					t.Errorf("read %d bytes", len(a.body))
				}
				if d, want := time.Since(start), time.Second*(1<<20)/time.Duration(test.opts.Rate); d < want-time.Microsecond || d > want*11/10 {
					t.Errorf("download took %v, want %v", d, want)
				}
			})
		})
	}
}

// Discard mode keeps sizes and checksums, and refuses to return bytes.
func TestDiscard(t *testing.T) {
	w := newWorld(t, &fakegcs.Options{Discard: true, NoMD5: true})
	uri := w.start("x")
	w.put(uri, 0, 2*q, "*")
	if a, err := w.put(uri, 2*q, 3*q+1, "786433"); err != nil || a.json(t)["crc32c"] != crc(data(3*q+1)) || a.json(t)["md5Hash"] != nil {
		t.Errorf("%s %v", a.body, err)
	}
	w.want(400, "discard mode", "GET", "/bkt/x", nil)
	if _, err := w.gcs.ReadObject("bkt", "x"); err == nil {
		t.Error("ReadObject returned no error")
	}
	w.want(400, "", "PUT", w.start("y"), data(5), "X-Goog-Hash: md5=1B2M2Y8AsgTpgAmY7PhCfg==")
}

func TestOptionsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, opts := range []*fakegcs.Options{
		{Dir: t.TempDir(), Discard: true}, {Rate: -1}, {Latency: -1}, {BucketRate: -1}, {SplitAfter: -1}, {Faults: []faults.Fault{{}}}, {Dir: file},
	} {
		if _, err := fakegcs.New(opts); err == nil || !strings.HasPrefix(err.Error(), "fakegcs: ") {
			t.Errorf("New(%+v) = %v", opts, err)
		}
	}
}

// TestTranscoding checks decompressive transcoding,
// https://cloud.google.com/storage/docs/transcoding.
func TestTranscoding(t *testing.T) {
	w := newWorld(t, nil)
	const zipped = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xcaH\xcd\xc9\xc9\x07\x04\x00\x00\xff\xff\x86\xa6\x106\x05\x00\x00\x00"
	w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=z&contentEncoding=gzip", []byte(zipped))
	w.client = &http.Client{Transport: &http.Transport{DisableCompression: true}}
	if a := w.do("GET", "/bkt/z", nil); a.body != "hello" || a.Header.Get("Content-Encoding") != "" || a.Header.Get("x-goog-stored-content-encoding") != "gzip" {
		t.Errorf("%q %v", a.body, a.Header)
	}
	if a := w.do("GET", "/bkt/z", nil, "Accept-Encoding: gzip"); a.body != zipped || a.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%q %v", a.body, a.Header)
	}
	w.gcs.AddFaults(faults.Fault{Do: faults.Action{Effect: faults.EffectCutReply, Bytes: 3}})
	if a, err := w.try("GET", "/bkt/z", nil); a.body != "hel" || err == nil {
		t.Errorf("cut after 3 bytes: %q %v", a.body, err)
	}
}
