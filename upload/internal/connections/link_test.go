package connections

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLinkConnections checks the maximum of connections that the memory allows.
func TestLinkConnections(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		memory      int64
		connections int
		want        int
	}{
		{128 << 20, Max, 256}, // the defaults
		{1 << 30, Max, 256},
		{32 << 20, Max, 64},
		{128 << 20, 8, 8},
		{1, Max, 1},
	} {
		l := &Link{Memory: test.memory}
		if got := l.Pool(test.connections).tuner.limit; got != test.want {
			t.Errorf("%d bytes, at most %d connections: %d, want %d", test.memory, test.connections, got, test.want)
		}
	}
}

// TestLinkNeed checks whether a file needs several connections, after the rate of one was measured over a near and a far link.
func TestLinkNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := false
		l := &Link{Memory: 128 << 20, Limited: func() bool { return limited }}
		want := func(need Need, why string) {
			t.Helper()
			if got, text := l.Need(Max); got != need || !strings.Contains(text, why) || (text == "") != (need != One) {
				t.Errorf("Need = %d, %q; want %d, %q", got, text, need, why)
			}
		}
		measure := func(mibps int) {
			t.Helper()
			m, each := l.Measure(), time.Duration(firstBytes/(mibps<<20/1000))*time.Millisecond
			m(firstBytes, each)
			if _, done := m(2*firstBytes, 2*each); !done {
				t.Fatalf("the rate of %d MiB/s is not known", mibps)
			}
		}
		want(Unmeasured, "")
		measure(100)
		want(Several, "")
		measure(1000)
		want(One, "one connection is fast enough")
		time.Sleep(measuredFor + time.Second)
		want(Unmeasured, "")
		measure(100)
		l.Replied(time.Millisecond)
		want(One, "answers within 1ms")
		measure(20)
		want(Several, "")
		limited = true
		want(One, "rate limit")
	})
}
