package examples

import (
	"bytes"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/memnet"
	"gcsup/upload"
)

// TestOutage tests a program in an outage of an hour, which takes no real time:
// inside the bubble the clock is virtual, and memnet replaces sockets.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := fakegcs.New(&fakegcs.Options{CreateBuckets: true, Faults: []faults.Fault{
			{Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: http.StatusServiceUnavailable}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		ln, dial := memnet.Listen()
		web := &http.Server{Handler: srv}
		go web.Serve(ln)
		defer web.Close()
		transport := &http.Transport{DialContext: dial}
		defer transport.CloseIdleConnections()
		time.AfterFunc(time.Hour, srv.ClearFaults)

		up, err := upload.New(&http.Client{Transport: transport}, &upload.Options{Endpoint: "http://gcs.test", RetryFor: 2 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		data := content(20 << 20)
		result, err := up.Reader(t.Context(), bytes.NewReader(data), upload.Spec{Bucket: "bucket", Object: "o"})
		if err != nil {
			t.Fatal(err)
		}
		if result.Elapsed < time.Hour || result.Elapsed > time.Hour+time.Minute {
			t.Errorf("the upload took %v, want an hour and at most a minute", result.Elapsed)
		}
		if got, err := srv.ReadObject("bucket", "o"); !bytes.Equal(got, data) {
			t.Errorf("the object has %d bytes, %v, want %d", len(got), err, len(data))
		}
	})
}
