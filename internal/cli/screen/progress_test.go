package screen

import (
	"os"
	"regexp"
	"strings"
	"syscall"
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
		c := NewConsole(&b, false)
		d := NewDisplay(Run{Work: Uploading, Files: 1})
		stop, _ := ShowLines(c, d)
		note := func(e upload.Event) { d.Note(1, "a.bin", e, time.Now()) }
		note(upload.Event{Kind: upload.Progress, Size: 100, Sent: 50, Arrived: 50})
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if b.Len() > 0 {
			t.Errorf("after 9 s: %q, want nothing", b.String())
		}
		note(upload.Event{Kind: upload.Waiting, Size: 100, Sent: 50, Arrived: 50, Delay: 8 * time.Second, Retry: 3, Cause: "503", Err: unavailable})
		time.Sleep(12 * time.Second)
		synctest.Wait()
		stop()
		want := "gcsup: 2000-01-01T00:00:10Z  a.bin  50%  50 B sent, 0 B committed of 100 B  retry 3 in 7 s: 503\n" +
			"gcsup: 2000-01-01T00:00:20Z  a.bin  50%  50 B sent, 0 B committed of 100 B  retry 3: 503\n"
		b2 := regexp.MustCompile(`(T\d\d:\d\d:\d\d)\S*`).ReplaceAllString(b.String(), "${1}Z") // of any time zone
		if b2 = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d`).ReplaceAllString(b2, "2000-01-01T00:00"); b2 != want {
			t.Errorf("after 21 s:\n%swant\n%s", b.String(), want)
		}
		n := b.Len()
		time.Sleep(time.Minute)
		if b.Len() != n {
			t.Errorf("output after stop: %q", b.String())
		}
	})
}

// TestFrameIsHiddenBeforeStop checks that the frame is removed before the process stops, because the
// shell then writes at the cursor.
func TestFrameIsHiddenBeforeStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		c := NewConsole(&b, false)
		stops := make(chan os.Signal, 1)
		stopped := ""
		stop, _ := start(c, frameEvery, jobControl{stops: stops, stop: func() { stopped = b.String() }, end: func() {}}, func() {
			c.show([]liveLine{{text: "a"}})
		})
		time.Sleep(2 * frameEvery)
		stops <- syscall.SIGTERM // any signal
		synctest.Wait()
		if !strings.HasSuffix(stopped, "\r"+eraseRest) {
			t.Errorf("written before the stop: %q", stopped)
		}
		time.Sleep(2 * frameEvery)
		stop()
		if strings.Count(b.String(), "a") != 2 {
			t.Errorf("not drawn again: %q", b.String())
		}
	})
}
