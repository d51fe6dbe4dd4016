package result_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gcsup/internal/cli/result"
	"gcsup/session"
	"gcsup/upload"
)

const mib = 1 << 20

// TestTextClaimsNoChecksum checks that the line of an upload has a CRC32C only if
// the service sent one. It had that of an empty object.
func TestTextClaimsNoChecksum(t *testing.T) {
	o := &session.Object{Generation: 7, Size: 5}
	res := &upload.Result{Object: o, Elapsed: time.Second, BytesSent: 5}
	if got, want := result.Text("gs://b/o", res), "gs://b/o#7  5 B in 1s, 5 B/s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	o.CRC32C, o.HasCRC32C = 1, true
	if got, want := result.Text("gs://b/o", res), "gs://b/o#7  5 B in 1s, 5 B/s  crc32c AAAAAQ=="; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTextHasNoSumOfWaits checks that the line of a file in parts has no sum of waits at the same time.
func TestTextHasNoSumOfWaits(t *testing.T) {
	res := &upload.Result{
		Object: &session.Object{Generation: 7, Size: mib}, Elapsed: 71 * time.Second, BytesSent: mib, Retries: 60, Waited: 1408 * time.Second,
		Throttled: time.Hour, Parts: &upload.PartsResult{},
	}
	want := "gs://b/o#7  1.0 MiB in 1m11s, 14 KiB/s  60 retries  waited for the request rate of the bucket"
	if got := result.Text("gs://b/o", res); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTextIsReadable checks the line of an upload that was not simple.
func TestTextIsReadable(t *testing.T) {
	const size = 100 * mib
	res := &upload.Result{
		Object: &session.Object{Generation: 7, Size: size}, Elapsed: 12345 * time.Millisecond, Resumed: true, ResumedFrom: 40 * mib,
		BytesSent: 80 * mib, BytesResent: 20 * mib, Retries: 2, Waited: 3 * time.Second,
	}
	want := "gs://b/o#7  100 MiB in 12s, 6.5 MiB/s  resumed at 40 MiB  2 retries, waited 3s, 20 MiB sent again"
	if got := result.Text("gs://b/o", res); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTextOfAnUnverifiedObject checks that people and programs see that the checksum was not compared.
func TestTextOfAnUnverifiedObject(t *testing.T) {
	res := &upload.Result{Object: &session.Object{Generation: 7, Size: 5}, Unverified: errors.New("why")}
	if text := result.Text("gs://bkt/a", res); !strings.HasSuffix(text, "  not verified") {
		t.Errorf("got %q", text)
	}
	if _, fields := line(t, result.NewLine(1, result.File{}, result.OK, res, nil)); fields["unverified"] != "why" || fields["crc32c"] != nil {
		t.Errorf("got %v", fields)
	}
}
