// Package cloudtest serves an emulator in the virtual time of tests.
package cloudtest

import (
	"net/http"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/memnet"
)

// Serve starts an emulator with the bucket bkt in the bubble of t. Connections of the transport lead to it,
// whatever the host. The caller must call stop before the bubble ends.
func Serve(t testing.TB, opts *fakegcs.Options) (srv *fakegcs.Server, tr *http.Transport, stop func()) {
	t.Helper()
	srv, err := fakegcs.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.CreateBucket(fakegcs.Bucket{Name: "bkt"}); err != nil {
		t.Fatal(err)
	}
	ln, dial := memnet.Listen()
	hs := &http.Server{Handler: srv}
	go func() { _ = hs.Serve(ln) }()
	tr = &http.Transport{DialContext: dial}
	return srv, tr, func() {
		tr.CloseIdleConnections()
		_ = srv.Close()
		_ = hs.Close()
		time.Sleep(time.Second) // virtual: net/http waits half a second before it closes a connection that it cuts
	}
}
