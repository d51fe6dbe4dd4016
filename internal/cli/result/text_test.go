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

// TestText checks the line of an upload.
func TestText(t *testing.T) {
	for _, c := range []struct {
		res  upload.Result
		want string
	}{
		// It has a CRC32C only if the service sent one. It had that of an empty object.
		{upload.Result{Object: &session.Object{Generation: 7, Size: 5}, Elapsed: time.Second, BytesSent: 5}, "5 B in 1s, 5 B/s"},
		{upload.Result{Object: &session.Object{Generation: 7, Size: 5, CRC32C: 1, HasCRC32C: true}, Elapsed: time.Second, BytesSent: 5},
			"5 B in 1s, 5 B/s  crc32c AAAAAQ=="},
		// The parts of a file wait at the same time: there is no sum.
		{upload.Result{Object: &session.Object{Generation: 7, Size: mib}, Elapsed: 71 * time.Second, BytesSent: mib, Retries: 60,
			Waited: 1408 * time.Second, Throttled: time.Hour, Parts: &upload.PartsResult{}},
			"1.0 MiB in 1m11s, 14 KiB/s  60 retries  waited for the request rate of the bucket"},
		{upload.Result{Object: &session.Object{Generation: 7, Size: 100 * mib}, Elapsed: 12345 * time.Millisecond, Resumed: true,
			ResumedFrom: 40 * mib, BytesSent: 80 * mib, BytesResent: 20 * mib, Retries: 2, Waited: 3 * time.Second},
			"100 MiB in 12s, 6.5 MiB/s  resumed at 40 MiB  2 retries, waited 3s, 20 MiB sent again"},
	} {
		if got, want := result.Text("gs://b/o", &c.res), "gs://b/o#7  "+c.want; got != want {
			t.Errorf("%q, want %q", got, want)
		}
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
