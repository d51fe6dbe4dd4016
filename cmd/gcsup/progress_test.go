package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/upload"
)

// TestProgressInALog checks that a log gets a line every ten seconds, and no line
// for a faster upload.
func TestProgressInALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		c := newConsole(&b, false)
		p := startProgress(c, newProgressView("a.bin"), true)
		p.note(upload.Event{Kind: upload.Progress, Size: 100, Sent: 50})
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if b.Len() > 0 {
			t.Errorf("after 9 s: %q, want nothing", b.String())
		}
		p.note(upload.Event{Kind: upload.Waiting, Size: 100, Sent: 50, Delay: 8 * time.Second, Retry: 3, Cause: "503"})
		time.Sleep(12 * time.Second)
		synctest.Wait()
		p.stop()
		want := "gcsup: a.bin  50%  50 B sent, 0 B durable of 100 B  waiting: 503, retry 3, 7 s left\n" +
			"gcsup: a.bin  50%  50 B sent, 0 B durable of 100 B  retrying: 503, retry 3\n"
		if b.String() != want {
			t.Errorf("after 21 s:\n%swant\n%s", b.String(), want)
		}
		time.Sleep(time.Minute)
		if b.String() != want {
			t.Errorf("output after stop: %q", b.String())
		}
	})
}
