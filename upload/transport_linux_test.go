package upload_test

import (
	"net/http"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/upload"
)

// TestCongestionControl checks that connections work with a congestion control that each kernel has, and fail with
// one that none has.
func TestCongestionControl(t *testing.T) {
	server := fakegcs.NewServer(t, nil)
	for name, want := range map[string]string{"": "", "system": "", "auto": "", "reno": "", "nosuch": `congestion control "nosuch"`} {
		transport := upload.NewTransport(&upload.TransportOptions{CongestionControl: name})
		resp, err := (&http.Client{Transport: transport}).Get(server.URL)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
		transport.CloseIdleConnections()
	}
}
