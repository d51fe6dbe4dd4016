package backoff_test

import (
	"math"
	"testing"
	"time"

	"gcsup/backoff"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	tests := []struct {
		header string
		want   time.Duration
		ok     bool
	}{
		{"", 0, false},
		{"0", 0, true},
		{"1", time.Second, true},
		{" 120 ", 2 * time.Minute, true},
		{"007", 7 * time.Second, true},
		{"86400", 24 * time.Hour, true},
		{"9223372036", 9223372036 * time.Second, true},
		{"9223372037", math.MaxInt64, true},
		{"99999999999999999999999", math.MaxInt64, true},
		{"-1", 0, false},
		{"+1", 0, false},
		{"1.5", 0, false},
		{"1s", 0, false},
		{"soon", 0, false},
		{"Sat, 21 Nov 2026 10:00:30 GMT", 30 * time.Second, true},
		{"Saturday, 21-Nov-26 10:00:30 GMT", 30 * time.Second, true},
		{"Sat Nov 21 10:00:30 2026", 30 * time.Second, true},
		{"Sat, 21 Nov 2026 10:00:00 GMT", 0, true},
		{"Sat, 21 Nov 2026 09:00:00 GMT", 0, true},
		{"Fri, 31 Dec 9999 23:59:59 GMT", math.MaxInt64, true},
		{"2026-11-21T10:00:30Z", 0, false},
	}
	for _, test := range tests {
		got, ok := backoff.RetryAfter(test.header, now)
		if got != test.want || ok != test.ok {
			t.Errorf("RetryAfter(%q) = %v, %v, want %v, %v", test.header, got, ok, test.want, test.ok)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, header := range []string{"", "0", "120", "-1", "Sat, 21 Nov 2026 10:00:30 GMT", "9223372037"} {
		f.Add(header, int64(0))
	}
	f.Fuzz(func(t *testing.T, header string, unix int64) {
		got, ok := backoff.RetryAfter(header, time.Unix(unix, 0))
		if got < 0 || !ok && got != 0 {
			t.Errorf("RetryAfter(%q) = %v, %v", header, got, ok)
		}
		if wait := (backoff.Policy{}).Wait(0, 0, got); wait < 0 || wait >= backoff.Limit {
			t.Errorf("Wait(0, 0, RetryAfter(%q)) = %v, want under %v", header, wait, backoff.Limit)
		}
	})
}
