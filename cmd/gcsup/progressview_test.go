package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gcsup/upload"
)

func TestProgressView(t *testing.T) {
	const mib = 1 << 20
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	type step struct {
		after time.Duration
		event upload.Event
	}
	at := func(kind upload.EventKind, sent, committed int64) upload.Event {
		return upload.Event{Kind: kind, Size: 100 * mib, Sent: sent * mib, Committed: committed * mib}
	}
	waiting := at(upload.Waiting, 40, 30)
	waiting.Delay, waiting.Retry, waiting.Cause = 8*time.Second, 3, "503\x1b[2J"
	comparing := func(compared int64) upload.Event {
		return upload.Event{Kind: upload.Verifying, Size: 100 * mib, Compared: compared * mib, ToCompare: 80 * mib}
	}
	for _, c := range []struct {
		name  string
		steps []step
		look  time.Duration
		want  string
	}{
		{"nothing yet", nil, 0, "a.bin  0 B sent, 0 B durable"},
		{"started", []step{{0, at(upload.Started, 0, 0)}}, 0, "a.bin  0%  0 B sent, 0 B durable of 100 MiB"},
		{"under way", []step{{0, at(upload.Started, 0, 0)}, {2 * time.Second, at(upload.Progress, 20, 10)}}, 2 * time.Second,
			"a.bin  20%  20 MiB sent, 10 MiB durable of 100 MiB  10 MiB/s  ETA 8s"},
		{"no bytes for a while", []step{{0, at(upload.Started, 0, 0)}, {2 * time.Second, at(upload.Progress, 20, 10)}}, 4 * time.Second,
			"a.bin  20%  20 MiB sent, 10 MiB durable of 100 MiB  5.0 MiB/s  ETA 16s"},
		{"a resume has no speed yet", []step{{0, at(upload.Resumed, 60, 60)}}, time.Second, "a.bin  60%  60 MiB sent, 60 MiB durable of 100 MiB"},
		{"and then only its own", []step{{0, at(upload.Resumed, 60, 60)}, {time.Second, at(upload.Progress, 70, 60)}}, time.Second,
			"a.bin  70%  70 MiB sent, 60 MiB durable of 100 MiB  10 MiB/s  ETA 3s"},
		{"back after a failure", []step{{0, at(upload.Started, 0, 0)}, {time.Second, at(upload.Progress, 50, 0)}, {time.Second, at(upload.Progress, 30, 30)}}, 2 * time.Second,
			"a.bin  30%  30 MiB sent, 30 MiB durable of 100 MiB"},
		{"waiting", []step{{0, waiting}}, 100 * time.Millisecond, "a.bin  40%  40 MiB sent, 30 MiB durable of 100 MiB  waiting: 503?[2J, retry 3, 8 s left"},
		{"waited", []step{{0, waiting}}, 9 * time.Second, "a.bin  40%  40 MiB sent, 30 MiB durable of 100 MiB  retrying: 503?[2J, retry 3"},
		{"a stream", []step{{0, upload.Event{Kind: upload.Started, Size: -1}}, {time.Second, upload.Event{Kind: upload.Progress, Size: -1, Sent: mib}}}, time.Second,
			"a.bin  1.0 MiB sent, 0 B durable  1.0 MiB/s"},
		{"comparing", []step{{0, comparing(10)}, {2 * time.Second, comparing(30)}}, 2 * time.Second,
			"a.bin  comparing with what was sent: 30 MiB of 80 MiB  10 MiB/s  ETA 5s"},
		{"comparing once more", []step{{0, comparing(10)}, {2 * time.Second, comparing(30)}, {2 * time.Second, comparing(8)}}, 2 * time.Second,
			"a.bin  comparing with what was sent: 8.0 MiB of 80 MiB"},
		{"compared", []step{{0, comparing(10)}, {2 * time.Second, at(upload.Resumed, 80, 80)}}, 3 * time.Second,
			"a.bin  80%  80 MiB sent, 80 MiB durable of 100 MiB"},
		{"settling", []step{{0, at(upload.Settling, 0, 0)}}, time.Second, "a.bin  waiting for the file's latest changes to reach its disk"},
		{"settled", []step{{0, at(upload.Settling, 0, 0)}, {time.Second, at(upload.Started, 0, 0)}}, time.Second, "a.bin  0%  0 B sent, 0 B durable of 100 MiB"},
		{"an empty file", []step{{0, upload.Event{Kind: upload.Started}}}, 0, "a.bin  0 B sent, 0 B durable of 0 B"},
	} {
		m := newProgressView("a.bin")
		for _, s := range c.steps {
			m.note(s.event, start.Add(s.after))
		}
		now := start.Add(c.look)
		if got := m.plainLine(now); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
		for _, columns := range []int{1, 2, 10, 40, 80, 120, 300} {
			if bar := m.bar(now, columns); utf8.RuneCountInString(bar) >= max(columns, 2) {
				t.Errorf("%s: the bar for %d columns is %q", c.name, columns, bar)
			}
		}
	}
}

func TestBarShowsDurableAndSent(t *testing.T) {
	m := newProgressView("a.bin")
	m.note(upload.Event{Kind: upload.Progress, Size: 200, Sent: 100, Committed: 50}, time.Time{})
	if bar := m.bar(time.Time{}, 80); !strings.Contains(bar, "[=====-----          ]") {
		t.Errorf("bar %q, want a quarter of '=' and a quarter of '-'", bar)
	}
}

// TestBarOfANarrowTerminal checks that a bar on 20 columns has no name, but shows
// the progress.
func TestBarOfANarrowTerminal(t *testing.T) {
	start := time.Time{}.Add(time.Hour)
	m := newProgressView("disk-image-of-november-2026.img")
	m.note(upload.Event{Kind: upload.Progress, Size: 200 << 20, Sent: 8 << 20}, start)
	m.note(upload.Event{Kind: upload.Progress, Size: 200 << 20, Sent: 56 << 20}, start.Add(2*time.Second))
	if bar, want := m.bar(start.Add(2*time.Second), 20), "28% 24 MiB/s"; bar != want {
		t.Errorf("sending: %q, want %q", bar, want)
	}
	m.note(upload.Event{Kind: upload.Waiting, Size: 200 << 20, Sent: 56 << 20, Cause: "503", Retry: 3, Delay: 8 * time.Second}, start)
	if bar, want := m.bar(start, 20), "28% 8s: 503, retry…"; bar != want {
		t.Errorf("waiting: %q, want %q", bar, want)
	}
}

// TestBarKeepsWhatMatters checks that a bar on 80 columns shows the cause of a wait
// and the time left in full.
func TestBarKeepsWhatMatters(t *testing.T) {
	start := time.Time{}.Add(time.Hour)
	m := newProgressView("disk-image-of-november-2026.img")
	m.note(upload.Event{Kind: upload.Progress, Size: 95 << 20, Sent: 8 << 20}, start)
	m.note(upload.Event{Kind: upload.Progress, Size: 95 << 20, Sent: 32 << 20, Committed: 24 << 20}, start.Add(2*time.Second))
	if bar := m.bar(start.Add(2*time.Second), 80); !strings.HasPrefix(bar, "disk") || !strings.HasSuffix(bar, "ETA 5s") {
		t.Errorf("sending: %q", bar)
	}
	m.note(upload.Event{Kind: upload.Waiting, Size: 95 << 20, Sent: 32 << 20, Committed: 24 << 20, Cause: "503", Retry: 3, Delay: 8 * time.Second}, start)
	if bar := m.bar(start, 80); !strings.HasPrefix(bar, "disk") || !strings.HasSuffix(bar, "503, retry 3, 8 s left") {
		t.Errorf("waiting: %q", bar)
	}
}

func TestConsoleKeepsTheLiveLineBelow(t *testing.T) {
	var b strings.Builder
	c := newConsole(&b, false)
	c.show("half way")
	c.message("hello %s", "you\x1b")
	c.show("done")
	c.show("")
	want := "\rhalf way" + "\r        \r" + "gcsup: hello you?\n" + "\rhalf way" + "\rdone    " + "\r    \r"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	b.Reset()
	q := newConsole(&b, true)
	q.message("not this")
	q.fail("but this")
	if got, want := b.String(), "gcsup: but this\n"; got != want {
		t.Errorf("quiet: got %q, want %q", got, want)
	}
}
