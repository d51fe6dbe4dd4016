package gcs_test

import (
	"strings"
	"testing"

	"gcsup/upload/gcs"
)

// TestCongestionControl checks that New refuses what the system refuses.
func TestCongestionControl(t *testing.T) {
	for name, want := range map[string]string{"auto": "", "reno": "", "nosuch": "tcp_available_congestion_control"} {
		client, err := gcs.New(t.Context(), &gcs.Options{Anonymous: true, CongestionControl: name})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
		if err == nil {
			_ = client.Close()
		}
	}
}
