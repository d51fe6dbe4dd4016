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
		l.Replied(time.Millisecond + time.Microsecond)
		want(One, "answers within 1ms,")
		measure(20)
		want(Several, "")
		limited = true
		want(One, "rate limit")
	})
}

// TestMeasure checks when the rate of one connection is known. Over a far link it must send 8 MiB within 16 ms, and over a near one
// within 125 ms. The first 8 MiB may only fill buffers, so that only those after them count, unless the connection is slow.
func TestMeasure(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	type step struct {
		mib, ms int64 // sent so far, and how long that took
		rate    int64 // MiB/s; 0 if it is not known
	}
	far, near := 100*time.Millisecond, 2*time.Millisecond
	for name, test := range map[string]struct {
		reply time.Duration // 0 if there was none
		steps []step
	}{
		"fast":                    {far, []step{{1, 1, 0}, {7, 7, 0}, {8, 8, 0}, {15, 12, 0}, {16, 16, 1000}}},
		"slow from the beginning": {far, []step{{1, 8, 0}, {2, 15, 0}, {3, 16, 187}}},
		"slow at once":            {far, []step{{8, 16, 500}}},
		"slow later":              {far, []step{{8, 4, 0}, {9, 12, 0}, {10, 20, 125}}},
		"no reply":                {0, []step{{1, 15, 0}, {2, 16, 125}}},
		"near":                    {near, []step{{1, 20, 0}, {7, 124, 0}, {8, 124, 0}, {15, 150, 0}, {16, 156, 250}}},
		"near and slow":           {near, []step{{1, 124, 0}, {2, 125, 16}}},
		"3 ms are far":            {3 * time.Millisecond, []step{{1, 16, 62}}},
	} {
		l := &Link{}
		if l.Replied(time.Hour); test.reply > 0 {
			l.Replied(test.reply)
			l.Replied(time.Hour) // only the fastest one counts
		}
		measure := l.Measure()
		for _, s := range test.steps {
			rate, done := measure(s.mib*mib, time.Duration(s.ms)*time.Millisecond)
			if done != (s.rate > 0) || rate/mib != s.rate {
				t.Errorf("%s: %d MiB/s after %d MiB, known %t; want %d", name, rate/mib, s.mib, done, s.rate)
			}
		}
	}
}

// TestReplied checks what the response time decides: whether a link is long, and the length of an interval of the tuner.
func TestReplied(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reply    time.Duration
		long     bool
		interval time.Duration
	}{
		{0, false, 100 * time.Millisecond}, {25 * time.Millisecond, false, 100 * time.Millisecond}, {50 * time.Millisecond, false, 200 * time.Millisecond},
		{100*time.Millisecond - 1, false, 400*time.Millisecond - 4}, {100 * time.Millisecond, true, 400 * time.Millisecond}, {time.Second, true, time.Second},
	} {
		l := &Link{}
		if test.reply > 0 {
			l.Replied(test.reply)
		}
		if l.Long() != test.long || l.interval() != test.interval {
			t.Errorf("after %v: long %t, intervals of %v", test.reply, l.Long(), l.interval())
		}
	}
}
